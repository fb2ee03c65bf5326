"""Optimizers that go down the gradient, with or without momentum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from timberframe.train.optimizer import Optimizer, as_dtype_of
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Operation


class GradientDescentOptimizer(Optimizer):
    """variable -= learning_rate * gradient."""

    def __init__(self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent") -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate

    def _prepare(self) -> None:
        self._rate = self._number(self._learning_rate, "learning_rate")

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Operation:
        done: Operation = apply_op("ResourceApplyGradientDescent", [handle.handle, as_dtype_of(self._rate, grad), grad])
        return done

    def _resource_apply_sparse_duplicate_indices(self, grad: Any, handle: Any, indices: Any) -> Operation:
        step = -grad * as_dtype_of(self._rate, grad)
        done: Operation = apply_op("ResourceScatterAdd", [handle.handle, indices, step])
        return done


class MomentumOptimizer(Optimizer):
    """accumulator = momentum * accumulator + gradient; variable -= learning_rate * accumulator.

    use_nesterov: steps by the gradient and the accumulator times momentum. Slot: "momentum".
    """

    def __init__(
        self,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._momentum = momentum
        self._use_nesterov = use_nesterov

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for variable in var_list:
            self._zeros_slot(variable, "momentum", self._name)

    def _prepare(self) -> None:
        self._rate = self._number(self._learning_rate, "learning_rate")
        self._momentum_tensor = self._number(self._momentum, "momentum")

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Operation:
        return self._apply("ResourceApplyMomentum", grad, handle, [])

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Operation:
        return self._apply("ResourceSparseApplyMomentum", grad, handle, [indices])

    def _apply(self, op: str, grad: Any, variable: Any, indices: list[Any]) -> Operation:
        rate, momentum = as_dtype_of(self._rate, grad), as_dtype_of(self._momentum_tensor, grad)
        states = [variable.handle, self.get_slot(variable, "momentum").handle]
        attrs = {"use_nesterov": self._use_nesterov}
        done: Operation = apply_op(op, [*states, rate, grad, *indices, momentum], attrs)
        return done
