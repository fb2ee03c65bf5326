"""The AdagradDA optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from timberframe.api.initializers import constant_initializer
from timberframe.api.selection import cast
from timberframe.train.optimizer import Optimizer, as_dtype_of
from timberframe_core.dtypes import int64
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Operation


class AdagradDAOptimizer(Optimizer):
    """Adagrad by dual averaging: sparse solutions for linear models, from variables that begin at 0.

    Duchi, Hazan and Singer 2011. global_step: how many steps were taken before; minimize must count it.
    initial_gradient_squared_accumulator_value must be above 0. Slots: "gradient_accumulator",
    "gradient_squared_accumulator".
    """

    def __init__(
        self,
        learning_rate: Any,
        global_step: Any,
        initial_gradient_squared_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "AdagradDA",
    ) -> None:
        initial = initial_gradient_squared_accumulator_value
        if initial <= 0:
            raise InvalidArgumentError(
                f"{name}: initial_gradient_squared_accumulator_value is {initial}; it must be above 0"
            )
        super().__init__(use_locking, name)
        self._given = {
            "learning_rate": learning_rate, "l1": l1_regularization_strength, "l2": l2_regularization_strength,
        }  # fmt: skip
        self._global_step = global_step
        self._initial = initial

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for v in var_list:
            self._zeros_slot(v, "gradient_accumulator", self._name)
            self._get_or_make_slot_with_initializer(
                v, constant_initializer(self._initial), v.shape, v.dtype.base_dtype, "gradient_squared_accumulator",
                self._name,
            )  # fmt: skip

    def _prepare(self) -> None:
        self._numbers = [self._number(value, name) for name, value in self._given.items()]
        self._step = apply_op("AddV2", [cast(self._global_step, int64), 1])

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Operation:
        return self._apply("ResourceApplyAdagradDA", handle, grad, [])

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Operation:
        return self._apply("ResourceSparseApplyAdagradDA", handle, grad, [indices])

    def _apply(self, op: str, variable: Any, grad: Any, indices: list[Any]) -> Operation:
        slots = [self.get_slot(variable, name) for name in ("gradient_accumulator", "gradient_squared_accumulator")]
        numbers = [as_dtype_of(x, grad) for x in self._numbers]
        states = [variable.handle, *(slot.handle for slot in slots)]
        done: Operation = apply_op(op, [*states, grad, *indices, *numbers, self._step])
        return done
