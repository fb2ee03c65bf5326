"""Metrics of eager execution: objects that add up from call to call."""

from __future__ import annotations

from typing import Any

from timberframe.api.reduction import reduce_sum
from timberframe.api.selection import cast
from timberframe.api.variables import Variable
from timberframe.saving.trackable import Trackable
from timberframe_core.dtypes import float64, int64
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.shapes import compatible, format_shape


class Metric(Trackable):
    """Base of metrics: a call adds values, `result` gives what they come to, `init_variables` begins again."""

    _untracked = ("variables",)

    def __init__(self, name: str | None = None) -> None:
        self.name = name or type(self).__name__
        self.variables: list[Variable] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Adds values, and gives them back."""
        return self.call(*args, **kwargs)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Adds values."""
        raise NotImplementedError

    def result(self) -> Any:
        """Returns what all values come to."""
        raise NotImplementedError

    def add_variable(self, name: str, dtype: Any = float64) -> Variable:
        """Returns a variable of the metric, 0 at first."""
        made = Variable(convert_to_tensor(0, dtype), trainable=False, name=f"{self.name}/{name}")
        self.variables.append(made)
        return made

    def init_variables(self) -> None:
        """Forgets all values."""
        for v in self.variables:
            v.assign(convert_to_tensor(0, v.dtype))


class Mean(Metric):
    """The mean of all values, weighted where weights are given."""

    def __init__(self, name: str | None = None, dtype: Any = float64) -> None:
        super().__init__(name)
        self.dtype = dtype
        self.numer, self.denom = self.add_variable("numer", dtype), self.add_variable("denom", dtype)

    def call(self, values: Any, weights: Any = None) -> Any:
        """Adds values; weights: of a shape that broadcasts to theirs."""
        given = convert_to_tensor(values)
        numbers = cast(given, self.dtype)
        if weights is None:
            count = cast(apply_op("Size", [numbers], {"out_type": int64}), self.dtype)
        else:
            factors = apply_op("Mul", [cast(weights, self.dtype), apply_op("OnesLike", [numbers])])
            count, numbers = reduce_sum(factors), numbers * factors
        self.numer.assign_add(reduce_sum(numbers))
        self.denom.assign_add(count)
        return given if weights is None else (given, weights)

    def result(self) -> Any:
        """Returns the mean."""
        return apply_op("RealDiv", [self.numer, self.denom])


class Accuracy(Mean):
    """How often predictions equal labels."""

    def __init__(self, name: str | None = None, dtype: Any = float64) -> None:
        super().__init__(name, dtype)

    def call(self, labels: Any, predictions: Any, weights: Any = None) -> Any:  # type: ignore[override]  # as in TensorFlow
        """Adds predictions, of the shape of the labels."""
        wanted, given = convert_to_tensor(labels), convert_to_tensor(predictions)
        if not compatible(wanted.static_shape, given.static_shape):
            raise InvalidArgumentError(
                f"Accuracy '{self.name}': predictions have shape {format_shape(given.static_shape)} and labels "
                f"{format_shape(wanted.static_shape)}; they must be equal"
            )
        super().call(apply_op("Equal", [given, cast(wanted, given.dtype)]), weights)
        return (labels, predictions) if weights is None else (labels, predictions, weights)
