"""The Ftrl optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from timberframe.api.initializers import constant_initializer
from timberframe.train.optimizer import Optimizer, as_dtype_of
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Operation

_SMALLEST_RATE = 1e-36


class FtrlOptimizer(Optimizer):
    """Follows the regularised leader: sparse solutions for linear models.

    McMahan et al. 2013, Ad click prediction: a view from the trenches; l2_shrinkage_regularization_strength adds a
    penalty on the size of the gradient's variable, `beta` is the paper's. Slots: "accum", "linear".
    """

    def __init__(
        self,
        learning_rate: Any,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "Ftrl",
        accum_name: str | None = None,
        linear_name: str | None = None,
        l2_shrinkage_regularization_strength: float = 0.0,
        beta: Any = None,
    ) -> None:
        super().__init__(use_locking, name)
        for what, value in (
            ("initial_accumulator_value", initial_accumulator_value),
            ("l1_regularization_strength", l1_regularization_strength),
            ("l2_regularization_strength", l2_regularization_strength),
            ("l2_shrinkage_regularization_strength", l2_shrinkage_regularization_strength),
        ):
            if value < 0:
                raise InvalidArgumentError(f"{name}: {what} is {value}; it must not be negative")
        if learning_rate_power > 0:
            raise InvalidArgumentError(f"{name}: learning_rate_power is {learning_rate_power}; it must not be above 0")
        self._learning_rate = learning_rate
        self._power = learning_rate_power
        self._initial = initial_accumulator_value
        self._l1 = l1_regularization_strength
        self._l2 = l2_regularization_strength
        self._shrinkage = l2_shrinkage_regularization_strength
        self._beta = 0.0 if beta is None else beta
        self._accum_name = accum_name or name
        self._linear_name = linear_name or name

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for v in var_list:
            self._get_or_make_slot_with_initializer(
                v, constant_initializer(self._initial), v.shape, v.dtype.base_dtype, "accum", self._accum_name
            )
            self._zeros_slot(v, "linear", self._linear_name)

    def _prepare(self) -> None:
        rate = self._number(self._learning_rate, "learning_rate")
        # Beta enters the update as a part of l2 that grows as the learning rate falls.
        lowest = convert_to_tensor(_SMALLEST_RATE, rate.dtype)
        l2 = self._l2 + self._beta / (2.0 * apply_op("Maximum", [rate, lowest]))
        numbers = [rate, self._number(self._l1, "l1_regularization_strength"), l2]
        if self._shrinkage > 0:
            numbers.append(self._number(self._shrinkage, "l2_shrinkage_regularization_strength"))
        self._numbers = [*numbers, self._number(self._power, "learning_rate_power")]

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Operation:
        return self._apply("ResourceApplyFtrl", grad, handle, [])

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Operation:
        return self._apply("ResourceSparseApplyFtrl", grad, handle, [indices])

    def _apply(self, op: str, grad: Any, variable: Any, indices: list[Any]) -> Operation:
        states = [variable, self.get_slot(variable, "accum"), self.get_slot(variable, "linear")]
        numbers = [as_dtype_of(x, grad) for x in self._numbers]
        version = "V2" if self._shrinkage > 0 else ""
        done: Operation = apply_op(op + version, [*(s.handle for s in states), grad, *indices, *numbers])
        return done
