"""Optimizers that shrink weights after each step: towards zero by L1, and in proportion by L2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from timberframe.api.initializers import constant_initializer
from timberframe.train.optimizer import Optimizer, as_dtype_of
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Operation


class _Proximal(Optimizer):
    """What both have in common: the strengths, and the op of an update."""

    _op = ""

    def __init__(self, learning_rate: Any, l1: Any, l2: Any, use_locking: bool, name: str) -> None:
        super().__init__(use_locking, name)
        self._given = {"learning_rate": learning_rate, "l1": l1, "l2": l2}
        self._numbers: list[Any] = []

    def _prepare(self) -> None:
        self._numbers = [self._number(value, name) for name, value in self._given.items()]

    def _states(self, variable: Any) -> list[Any]:
        return []

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Operation:
        return self._apply(f"ResourceApply{self._op}", grad, handle, [])

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Operation:
        return self._apply(f"ResourceSparseApply{self._op}", grad, handle, [indices])

    def _apply(self, op: str, grad: Any, variable: Any, indices: list[Any]) -> Operation:
        numbers = [as_dtype_of(x, grad) for x in self._numbers]
        done: Operation = apply_op(op, [variable.handle, *self._states(variable), *numbers, grad, *indices])
        return done


class ProximalGradientDescentOptimizer(_Proximal):
    """variable -= learning_rate * gradient, then shrunk. Duchi and Singer 2009, forward-backward splitting."""

    _op = "ProximalGradientDescent"

    def __init__(
        self,
        learning_rate: Any,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:
        super().__init__(learning_rate, l1_regularization_strength, l2_regularization_strength, use_locking, name)


class ProximalAdagradOptimizer(_Proximal):
    """Adagrad's step, then shrunk at its rate. initial_accumulator_value must be above 0. Slot: "accumulator"."""

    _op = "ProximalAdagrad"

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "ProximalAdagrad",
    ) -> None:
        if initial_accumulator_value <= 0:
            raise InvalidArgumentError(
                f"{name}: initial_accumulator_value is {initial_accumulator_value}; it must be above 0"
            )
        super().__init__(learning_rate, l1_regularization_strength, l2_regularization_strength, use_locking, name)
        self._initial = initial_accumulator_value

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for v in var_list:
            self._get_or_make_slot_with_initializer(
                v, constant_initializer(self._initial), v.shape, v.dtype.base_dtype, "accumulator", self._name
            )

    def _states(self, variable: Any) -> list[Any]:
        return [self.get_slot(variable, "accumulator").handle]
