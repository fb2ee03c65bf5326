"""Optimizers whose step adapts to each element by its past gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from timberframe.api.framework import group
from timberframe.api.initializers import constant_initializer, ones_initializer
from timberframe.train.optimizer import Optimizer, as_dtype_of
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.operation import Operation, Tensor


class AdagradOptimizer(Optimizer):
    """accumulator += gradient^2; variable -= learning_rate * gradient / sqrt(accumulator).

    Duchi, Hazan and Singer 2011. initial_accumulator_value must be above 0. Slot: "accumulator".
    """

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:
        if initial_accumulator_value <= 0:
            raise InvalidArgumentError(
                f"{name}: initial_accumulator_value is {initial_accumulator_value}; it must be above 0"
            )
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial = initial_accumulator_value

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for v in var_list:
            self._get_or_make_slot_with_initializer(
                v, constant_initializer(self._initial), v.shape, v.dtype.base_dtype, "accumulator", self._name
            )

    def _prepare(self) -> None:
        self._rate = self._number(self._learning_rate, "learning_rate")

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Operation:
        return self._apply("ResourceApplyAdagrad", grad, handle, [])

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Operation:
        return self._apply("ResourceSparseApplyAdagrad", grad, handle, [indices])

    def _apply(self, op: str, grad: Any, variable: Any, indices: list[Any]) -> Operation:
        states = [variable.handle, self.get_slot(variable, "accumulator").handle]
        done: Operation = apply_op(op, [*states, as_dtype_of(self._rate, grad), grad, *indices])
        return done


class AdadeltaOptimizer(Optimizer):
    """Steps by the ratio of decaying averages of squared updates and squared gradients.

    Zeiler 2012, arXiv 1212.5701. Slots: "accum", "accum_update".
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: Any = 0.95,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adadelta",
    ) -> None:
        super().__init__(use_locking, name)
        self._given = learning_rate, rho, epsilon

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for variable in var_list:
            self._zeros_slot(variable, "accum", self._name)
            self._zeros_slot(variable, "accum_update", self._name)

    def _prepare(self) -> None:
        self._numbers = [self._number(x, n) for x, n in zip(self._given, ("lr", "rho", "epsilon"), strict=True)]

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Operation:
        return self._apply("ResourceApplyAdadelta", grad, handle, [])

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Operation:
        return self._apply("ResourceSparseApplyAdadelta", grad, handle, [indices])

    def _apply(self, op: str, grad: Any, variable: Any, indices: list[Any]) -> Operation:
        states = [variable, self.get_slot(variable, "accum"), self.get_slot(variable, "accum_update")]
        numbers = [as_dtype_of(x, grad) for x in self._numbers]
        done: Operation = apply_op(op, [*(s.handle for s in states), *numbers, grad, *indices])
        return done


class RMSPropOptimizer(Optimizer):
    """Divides the gradient by the root of a decaying average of its square.

    Tieleman and Hinton 2012, lecture 6.5; centered: by the root of the variance (Graves 2013, arXiv 1308.0850).
    Slots: "rms", "momentum", and "mg" when centered.
    """

    def __init__(
        self,
        learning_rate: Any,
        decay: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: Any = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        super().__init__(use_locking, name)
        self._given = learning_rate, decay, momentum, epsilon
        self._centered = centered

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for v in var_list:
            self._get_or_make_slot_with_initializer(
                v, ones_initializer(), v.shape, v.dtype.base_dtype, "rms", self._name
            )
            if self._centered:
                self._zeros_slot(v, "mg", self._name)
            self._zeros_slot(v, "momentum", self._name)

    def _prepare(self) -> None:
        names = ("learning_rate", "decay", "momentum", "epsilon")
        self._numbers = [self._number(x, n) for x, n in zip(self._given, names, strict=True)]

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Operation:
        return self._apply("ResourceApply", grad, handle, [])

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Operation:
        return self._apply("ResourceSparseApply", grad, handle, [indices])

    def _apply(self, kind: str, grad: Any, variable: Any, indices: list[Any]) -> Operation:
        names = ("mg", "rms", "momentum") if self._centered else ("rms", "momentum")
        states = [variable, *(self.get_slot(variable, name) for name in names)]
        numbers = [as_dtype_of(x, grad) for x in self._numbers]
        op = f"{kind}{'Centered' if self._centered else ''}RMSProp"
        done: Operation = apply_op(op, [*(s.handle for s in states), *numbers, grad, *indices])
        return done


class AdamOptimizer(Optimizer):
    """Steps by a decaying average of the gradient over the root of one of its square, both corrected for their bias.

    Kingma and Ba 2015, arXiv 1412.6980, in the form before section 2.1, so epsilon is "epsilon hat" there. A sparse
    gradient makes the averages of all rows decay. Slots: "m", "v"; and the variables beta1_power, beta2_power.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._beta1 = beta1
        self._beta2 = beta2
        self._epsilon = epsilon

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        first = min(var_list, key=lambda v: str(v.name))
        self._create_non_slot_variable(self._call_if_callable(self._beta1), "beta1_power", first)
        self._create_non_slot_variable(self._call_if_callable(self._beta2), "beta2_power", first)
        for variable in var_list:
            self._zeros_slot(variable, "m", self._name)
            self._zeros_slot(variable, "v", self._name)

    def _get_beta_accumulators(self) -> tuple[Any, Any]:
        """Returns the powers of beta1 and beta2, by the name that programs know."""
        return self._get_non_slot_variable("beta1_power"), self._get_non_slot_variable("beta2_power")

    def _prepare(self) -> None:
        self._rate = self._number(self._learning_rate, "learning_rate")
        self._betas = self._number(self._beta1, "beta1"), self._number(self._beta2, "beta2")
        self._epsilon_tensor = self._number(self._epsilon, "epsilon")
        self._powers = [power.value() for power in self._get_beta_accumulators()]

    def _numbers(self, grad: Any) -> list[Any]:
        """Powers of the betas, learning rate, betas, epsilon in the dtype of the gradient."""
        return [as_dtype_of(x, grad) for x in (*self._powers, self._rate, *self._betas, self._epsilon_tensor)]

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Operation:
        states = [handle, self.get_slot(handle, "m"), self.get_slot(handle, "v")]
        done: Operation = apply_op("ResourceApplyAdam", [*(s.handle for s in states), *self._numbers(grad), grad])
        return done

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Operation:
        power1, power2, rate, beta1, beta2, epsilon = self._numbers(grad)
        mean = decayed(self.get_slot(handle, "m"), beta1, indices, grad * (1 - beta1))
        square = decayed(self.get_slot(handle, "v"), beta2, indices, grad * grad * (1 - beta2))
        change = bias_corrected(rate, power1, power2) * mean / (apply_op("Sqrt", [square]) + epsilon)
        done: Operation = handle.assign_sub(change, read_value=False)
        return done

    def _finish(self, update_ops: Sequence[Operation], name_scope: str) -> Operation:
        graph = get_default_graph()
        first, _ = self._get_beta_accumulators()
        with graph.control_dependencies(update_ops), graph.colocate_with(first.op):
            powers = [
                kept.assign(power * beta, read_value=False)
                for kept, power, beta in zip(self._get_beta_accumulators(), self._powers, self._betas, strict=True)
            ]
        return group(*update_ops, *powers, name=name_scope)


def bias_corrected(rate: Any, power1: Any, power2: Any) -> Any:
    """Adam's learning rate, corrected for the bias of both averages by the powers of their betas."""
    return rate * apply_op("Sqrt", [1 - power2]) / (1 - power1)


def decayed(slot: Any, rate: Any, indices: Any, added: Any) -> Tensor:
    """Returns a slot that decays as a whole and has something added to some rows."""
    graph = get_default_graph()
    with graph.control_dependencies([slot.assign(slot * rate, read_value=False)]):
        scattered = apply_op("ResourceScatterAdd", [slot.handle, indices, added])
    with graph.control_dependencies([scattered]):
        value: Tensor = slot.value()
    return value
