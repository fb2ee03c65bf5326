"""Signatures: what a model takes and gives, and checks of what it is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from timberframe_core.dtypes import DType, as_dtype, string
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.shapes import Shape, compatible, format_shape

Array = np.ndarray[Any, Any]
Arrays = Sequence[Array]
PREDICT_METHOD = "tensorflow/serving/predict"
CLASSIFY_METHOD = "tensorflow/serving/classify"
REGRESS_METHOD = "tensorflow/serving/regress"


@dataclass(frozen=True)
class Port:
    """An input or output by its name in the signature. default: what is fed where a request does not give it."""

    name: str
    dtype: DType
    shape: Shape
    default: Array | None = None

    @property
    def takes_rows(self) -> bool:
        """Whether its first size is open, so that rows of several requests can be put one after another."""
        return self.shape is not None and len(self.shape) > 0 and self.shape[0] is None

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype.name} {format_shape(self.shape)}"

    def check(self, array: Array, model: str) -> Array:
        """Returns a given array; raises InvalidArgumentError where dtype or shape are not those of the input."""
        if array.dtype != self.dtype.numpy:
            dtype = as_dtype(array.dtype) if array.dtype != object else string
            raise InvalidArgumentError(
                f"predict '{model}': input '{self.name}' has dtype {dtype.name}; {self.dtype.name} is required"
            )
        if not compatible(array.shape, self.shape):
            raise InvalidArgumentError(
                f"predict '{model}': input '{self.name}' has shape {format_shape(array.shape)}; "
                f"{format_shape(self.shape)} is required"
            )
        return array


@dataclass(frozen=True)
class Signature:
    """A computation of a model under one name.

    call: takes the arrays of `inputs`, in their order, and returns those of `outputs`. definition: the SignatureDef.
    """

    name: str
    method: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    call: Callable[..., Any]
    definition: Any

    @property
    def takes_rows(self) -> bool:
        """Whether all inputs and outputs have rows, as far as their shapes say it."""
        outputs = all(p.shape is None or p.takes_rows for p in self.outputs)
        return bool(self.inputs) and all(p.takes_rows for p in self.inputs) and outputs

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(p.name for p in self.inputs)

    def arranged(self, given: Mapping[str, Array], model: str) -> list[Array]:
        """Returns arrays in the inputs' order; raises InvalidArgumentError where names, dtypes or shapes differ."""
        if given.keys() != self._names:
            self._check_names(given, model)
        return [p.check(given[p.name], model) if p.name in given else self._default(p) for p in self.inputs]

    def _check_names(self, given: Mapping[str, Array], model: str) -> None:
        missing = [p.name for p in self.inputs if p.name not in given and p.default is None]
        extra = sorted(set(given) - {p.name for p in self.inputs})
        if missing or extra:
            takes, named = _listed([p.name for p in self.inputs]), _listed(sorted(given))
            raise InvalidArgumentError(
                f"predict '{model}': inputs are {named}; signature '{self.name}' requires {takes}"
            )

    @staticmethod
    def _default(port: Port) -> Array:
        assert port.default is not None
        return port.default


def _listed(names: Sequence[str]) -> str:
    """Returns names for a message, as many and as much of each as one can read."""
    shown = [f"'{name if len(name) <= 100 else name[:100] + '...'}'" for name in names[:20]]
    return ", ".join(shown + ["..."] * (len(names) > 20)) or "none"
