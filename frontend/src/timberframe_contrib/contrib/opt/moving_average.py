"""An optimizer that also keeps moving averages of what it trains, and saves these in place of the variables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from timberframe.api.framework import group
from timberframe.api.partitioned_variables import PartitionedVariable
from timberframe.train.moving_averages import ExponentialMovingAverage
from timberframe.train.optimizer import Optimizer
from timberframe.train.saver import Saver, VarList, by_name
from timberframe_core.errors import WrongStateError
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.operation import Operation


class MovingAverageOptimizer(Optimizer):
    """Trains as the optimizer `opt` does, and keeps moving averages of the variables.

    average_decay, num_updates: see `tf.train.ExponentialMovingAverage`. sequential_update: the averages take the
    values after the step; where False, those before or after it.

    Train with the saver of `swapping_saver`; what evaluates restores its checkpoints with a `tf.train.Saver` of its own
    and gets the averages as the variables.
    """

    def __init__(
        self, opt: Optimizer, average_decay: Any = 0.9999, num_updates: Any = None, sequential_update: bool = True
    ) -> None:
        super().__init__(False, opt.get_name())
        self._optimizer = opt
        self._average = ExponentialMovingAverage(average_decay, num_updates)
        self._sequential_update = sequential_update
        self._swapped: dict[Any, Any] = {}

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """Returns the pairs that the optimizer computes."""
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None, name: str | None = None
    ) -> Operation:
        """Returns an operation that takes the optimizer's step and updates the averages of the
        variables that it changes.
        """
        pairs = list(grads_and_vars)
        step = self._optimizer.apply_gradients(pairs, global_step, name)
        variables = [variable for gradient, variable in pairs if gradient is not None]
        with get_default_graph().control_dependencies([step] if self._sequential_update else []):
            update = self._average.apply(variables)
        for variable in variables:
            average = self._average.average(variable)
            self._swapped.update({variable: average, average: variable})
        return group(step, update, name="train_with_avg")

    def swapping_saver(self, var_list: VarList = None, name: str = "swapping_saver", **kwargs: Any) -> Saver:
        """Returns a saver that saves averages under the names of their variables and the variables
        under those of the averages.

        It restores them so, too. var_list: by default all global variables. kwargs: for `tf.train.Saver`. Raises
        WrongStateError before `minimize` or `apply_gradients`, which make the averages.
        """
        if not self._swapped:
            raise WrongStateError(
                "MovingAverageOptimizer.swapping_saver: there are no averages yet; call minimize or apply_gradients "
                "before it"
            )
        swapped = {key: self._exchanged(variable) for key, variable in by_name(var_list).items()}
        return Saver(swapped, name=name, **kwargs)

    def _exchanged(self, variable: Any) -> Any:
        if isinstance(variable, PartitionedVariable):
            return [self._swapped.get(part, part) for part in variable]
        return self._swapped.get(variable, variable)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """Returns a slot of the optimizer."""
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> list[str]:
        """Returns the names of the optimizer's slots."""
        return self._optimizer.get_slot_names(*args, **kwargs)

    def variables(self) -> list[Any]:
        """Returns the optimizer's own variables; the averages are none of them."""
        return self._optimizer.variables()
