"""Optimizers that shrink weights after each step: towards zero by L1, and in proportion by L2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from timberframe.api.initializers import constant_initializer
from timberframe.train.optimizer import Optimizer, as_dtype_of
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Operation


class _Step:
    """The step of an op: a learning rate and the strengths by which it shrinks.

    The optimizers have it rather than a base class: TensorFlow's derive from Optimizer itself, and programs check that.
    """

    def __init__(self, op: str, learning_rate: Any, l1: Any, l2: Any) -> None:
        self._op = op
        self._given = {"learning_rate": learning_rate, "l1": l1, "l2": l2}
        self._numbers: list[Any] = []

    def prepare(self, number: Callable[[Any, str], Any]) -> None:
        """Makes tensors of the numbers."""
        self._numbers = [number(value, name) for name, value in self._given.items()]

    def dense(self, grad: Any, states: list[Any]) -> Operation:
        """Updates a variable and its slot, whose handles are the states."""
        return self._apply(f"ResourceApply{self._op}", grad, states, [])

    def sparse(self, grad: Any, states: list[Any], indices: Any) -> Operation:
        """Updates rows of a variable and of its slot."""
        return self._apply(f"ResourceSparseApply{self._op}", grad, states, [indices])

    def _apply(self, op: str, grad: Any, states: list[Any], indices: list[Any]) -> Operation:
        done: Operation = apply_op(op, [*states, *(as_dtype_of(x, grad) for x in self._numbers), grad, *indices])
        return done


class ProximalGradientDescentOptimizer(Optimizer):
    """variable -= learning_rate * gradient, then shrunk. Duchi and Singer 2009, forward-backward splitting."""

    def __init__(
        self,
        learning_rate: Any,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:
        super().__init__(use_locking, name)
        self._step = _Step(
            "ProximalGradientDescent", learning_rate, l1_regularization_strength, l2_regularization_strength
        )

    def _prepare(self) -> None:
        self._step.prepare(self._number)

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Operation:
        return self._step.dense(grad, [handle.handle])

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Operation:
        return self._step.sparse(grad, [handle.handle], indices)


class ProximalAdagradOptimizer(Optimizer):
    """Adagrad's step, then shrunk at its rate. initial_accumulator_value must be above 0. Slot: "accumulator"."""

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
        super().__init__(use_locking, name)
        self._step = _Step("ProximalAdagrad", learning_rate, l1_regularization_strength, l2_regularization_strength)
        self._initial = initial_accumulator_value

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for v in var_list:
            self._get_or_make_slot_with_initializer(
                v, constant_initializer(self._initial), v.shape, v.dtype.base_dtype, "accumulator", self._name
            )

    def _prepare(self) -> None:
        self._step.prepare(self._number)

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Operation:
        return self._step.dense(grad, self._states(handle))

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Operation:
        return self._step.sparse(grad, self._states(handle), indices)

    def _states(self, variable: Any) -> list[Any]:
        return [variable.handle, self.get_slot(variable, "accumulator").handle]
