"""Moving averages of variables during training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from timberframe.api.framework import GraphKeys, group, name_scope
from timberframe.api.initializers import zeros_initializer
from timberframe.api.selection import cast
from timberframe.api.variable_collections import global_variables, trainable_variables
from timberframe.api.variable_scope import AUTO_REUSE, get_variable, variable_scope
from timberframe.api.variables import Variable
from timberframe.train import slots
from timberframe_core.arguments import instance, listed
from timberframe_core.dtypes import float32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.operation import Operation, Tensor

_FLOATING = ("float16", "bfloat16", "float32", "float64")


class ExponentialMovingAverage:
    """Keeps shadow variables: average -= (1 - decay) * (average - variable) at each run of the operation of `apply`.

    num_updates: a count; the decay is then at most (1 + num_updates) / (10 + num_updates), so that averages move faster
    at the start. zero_debias: averages of tensors, which begin at zero, are divided by 1 - decay^n after n updates
    (Kingma and Ba 2015, section 3). A shadow variable is called ``<variable>/<name>`` and begins at the variable's
    initial value.
    """

    def __init__(
        self,
        decay: Any,
        num_updates: Any = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        self._decay = decay
        self._num_updates = num_updates
        self._zero_debias = zero_debias
        self._name = name
        self._averages: dict[Any, Any] = {}
        self._debiased: set[Any] = set()

    @property
    def name(self) -> str:
        """The name of the averages."""
        return self._name

    def apply(self, var_list: Sequence[Any] | None = None) -> Operation:
        """Returns an operation that updates the averages of these variables or tensors, by
        default the trainable variables.
        """
        given = trainable_variables() if var_list is None else listed(var_list, f"{self._name}: var_list", "variables")
        kinds = (Tensor, Variable)
        targets = [instance(t, kinds, f"{self._name}: an item of var_list", "a variable or tensor") for t in given]
        graph = get_default_graph()
        for target in targets:
            if target.dtype.base_dtype.name not in _FLOATING:
                raise InvalidArgumentError(
                    f"{self._name}: '{target.name}' has dtype {target.dtype.base_dtype.name}; "
                    f"it must be one of {', '.join(_FLOATING)}"
                )
            if target not in self._averages:
                self._averages[target] = self._shadow(target)
        with graph.name_scope(self._name) as scope:
            decay: Any = convert_to_tensor(self._decay, float32, "decay")
            if self._num_updates is not None:
                count = cast(self._num_updates, float32)
                decay = apply_op("Minimum", [decay, (1.0 + count) / (10.0 + count)])
            rest = convert_to_tensor(1.0 - decay)
            updates = [self._update(target, rest) for target in targets]
            return group(*updates, name=scope)

    def _shadow(self, target: Any) -> Any:
        if isinstance(target, Variable):
            with target.graph.as_default(), target.graph.control_dependencies(None):
                made = slots.create_slot(target, target.initialized_value(), self._name)
            target.graph.add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, target)
            return made
        if self._zero_debias:
            self._debiased.add(target)
        return slots.create_zeros_slot(target, self._name)

    def _update(self, target: Any, rest: Any) -> Operation:
        average = self._averages[target]
        with get_default_graph().colocate_with(average.op):
            update = _moved_debiased if target in self._debiased else _moved
            done: Operation = update(average, target, cast(rest, average.dtype.base_dtype), read_value=False)
            return done

    def average(self, var: Any) -> Any:
        """Returns the shadow variable of a variable or tensor; None where it has none."""
        return self._averages.get(var)

    def average_name(self, var: Any) -> str:
        """Returns the name that the shadow variable has, or will have where `apply` was not called for it yet."""
        if var in self._averages:
            name: str = self._averages[var].op.name
            return name
        return f"{var.op.name}/{self._name}"

    def variables_to_restore(self, moving_avg_variables: Sequence[Any] | None = None) -> dict[str, Any]:
        """Returns names in a checkpoint to variables, for a Saver that restores averages into the variables themselves.

        moving_avg_variables: those to restore from their averages, by default the trainable variables and those of
        GraphKeys.MOVING_AVERAGE_VARIABLES. All other global variables are there under their own names.
        """
        graph = get_default_graph()
        if moving_avg_variables is None:
            averaged = [*trainable_variables(), *graph.get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES)]
        else:
            averaged = list(moving_avg_variables)
        names = {self.average_name(v): v for v in dict.fromkeys(averaged)}
        for variable in global_variables():
            if variable not in averaged:
                names.setdefault(variable.op.name, variable)
        return names


def assign_moving_average(
    variable: Any, value: Any, decay: Any, zero_debias: bool = True, name: str | None = None
) -> Any:
    """Moves a variable by 1 - decay of its distance from a value: the new value.

    zero_debias: the variable began at zero, which is taken out of the average (Kingma and Ba 2015, section 3); the sum
    and the number of updates that this takes are variables in the scope of the variable's name.
    """
    with name_scope(name, "AssignMovingAvg", [variable, value, decay]):
        rest = cast(apply_op("Sub", [1.0, convert_to_tensor(decay, float32)]), variable.dtype.base_dtype)
        with get_default_graph().colocate_with(variable.op):
            return (_moved_debiased if zero_debias else _moved)(variable, convert_to_tensor(value), rest)


def _moved(average: Any, value: Any, rest: Any, **options: Any) -> Any:
    return average.assign_sub((average - value) * rest, **options)


def _moved_debiased(average: Any, value: Any, rest: Any, **options: Any) -> Any:
    dtype = average.dtype.base_dtype
    with variable_scope(average.op.name, reuse=AUTO_REUSE):
        biased, steps = (
            get_variable(name, shape, dtype, zeros_initializer(), trainable=False)
            for name, shape in (("biased", average.shape), ("local_step", []))
        )
    sums = biased.assign_sub((biased - value) * rest)
    with get_default_graph().control_dependencies([sums.op]):
        count = steps.assign_add(1)
    factor = 1 - apply_op("Pow", [1.0 - rest, count])
    return average.assign(sums / factor, **options)
