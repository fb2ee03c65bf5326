"""Samples: what an op should be tried with. They are specs, from which conformance makes arrays in every dtype.

The case generator itself adds what is common to all ops (every dtype, NaN and infinities, limits of integers, empty and
0-d inputs of elementwise ops, non-contiguous feeds), so samples say what only the op knows: which shapes go together,
what each attr may be, and where its edges are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Arg:
    """One input tensor.

    shape: its sizes.
    values: the exact values, for inputs such as axes or indices; then shape is taken from them.
    low, high: random values lie in [low, high]; the default covers the dtype's ordinary range (-4 to 4 for floats).
    dtype: the dtype's name where no type attr decides it, or where one dtype alone makes sense.
    special: floating values may also be NaN, infinite, subnormal and -0, integers the limits of their dtype.
    distinct: all values differ (so that an order is unique).
    fixed: the stated values hold where derivatives are tried too, which otherwise move a little off them.
    whole: random values are whole numbers, in floating dtypes too, so that several may be equal.
    """

    shape: tuple[int, ...] = ()
    values: Any = None
    low: float | None = None
    high: float | None = None
    dtype: str | None = None
    special: bool = True
    distinct: bool = False
    fixed: bool = False
    whole: bool = False


@dataclass(frozen=True)
class Sample:
    """Inputs (a list input is a list of Arg) and attrs of one trial.

    types: limits type attrs to some dtypes: ``{"T": ("float32",)}``.
    implementation_defined: only "no crash, right shape" is required; with the reason.
    level: `soak` for what takes long or needs much memory.
    """

    inputs: Sequence[Arg | Sequence[Arg]] = ()
    attrs: Mapping[str, Any] = field(default_factory=dict)
    types: Mapping[str, Sequence[str]] = field(default_factory=dict)
    implementation_defined: str = ""
    level: str = ""


@dataclass(frozen=True)
class ErrorSample:
    """A wrong call: building or running it must raise `error` (a class name of tf.errors) with words that match."""

    inputs: Sequence[Arg | Sequence[Arg]]
    match: str
    attrs: Mapping[str, Any] = field(default_factory=dict)
    types: Mapping[str, Sequence[str]] = field(default_factory=dict)
    error: str = "InvalidArgumentError"
