"""What cells of `tf.contrib.rnn` have in common: sizes of states, normalised gates, kernels in several variables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from timberframe.api.arrays import concat
from timberframe.api.initializers import constant_initializer
from timberframe.api.nn import batch_normalization, moments
from timberframe.recurrent.base import RNNCell
from timberframe.recurrent.cells import LSTMStateTuple
from timberframe_core.errors import InvalidArgumentError


class LSTMStateCell(RNNCell):
    """Base of cells whose state is an `LSTMStateTuple`: c of num_units, and h of num_proj, or of num_units for None."""

    def __init__(self, num_units: int, num_proj: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._num_units, self._num_proj = num_units, num_proj

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self.output_size)

    @property
    def output_size(self) -> int:
        return self._num_units if self._num_proj is None else self._num_proj


class LayerNorms:
    """Normalisation of a cell's gates over their units (Ba et al. 2016); each has a gamma and a beta in its own scope.

    gain and shift: the first values of gamma and beta.
    """

    def __init__(self, gain: float, shift: float) -> None:
        self._gain, self._shift = gain, shift
        self._variables: dict[str, tuple[Any, Any]] = {}

    def build(self, cell: RNNCell, parts: Iterable[str], units: int) -> None:
        """Makes the variables of a cell's parts."""
        for part in parts:
            gamma = cell.add_weight(f"{part}/gamma", [units], initializer=constant_initializer(self._gain))
            beta = cell.add_weight(f"{part}/beta", [units], initializer=constant_initializer(self._shift))
            self._variables[part] = gamma, beta

    def __call__(self, part: str, x: Any) -> Any:
        """Returns a part normalised, or as it is where it has no variables."""
        if part not in self._variables:
            return x
        gamma, beta = self._variables[part]
        mean, variance = moments(x, [1], keep_dims=True)
        return batch_normalization(x, mean, variance, beta, gamma, 1e-12)


def sharded_weight(cell: RNNCell, name: str, shape: list[int], shards: int, initializer: Any = None) -> list[Any]:
    """Returns the variables name_0, name_1, ...

    of a kernel's rows; the first ones have a row more where they differ.
    """
    if not 1 <= shards <= shape[0]:
        raise InvalidArgumentError(
            f"cell '{cell.name}': {shards} shards for the {shape[0]} rows of {name}; 1 to {shape[0]} are required"
        )
    rows, more = divmod(shape[0], shards)
    return [
        cell.add_weight(f"{name}_{i}", [rows + (i < more), *shape[1:]], initializer=initializer) for i in range(shards)
    ]


def joined_rows(shards: list[Any]) -> Any:
    """Returns the kernel of which `sharded_weight` made the variables."""
    return shards[0] if len(shards) == 1 else concat(shards, 0)
