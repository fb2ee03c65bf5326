"""Arrays from sample specs, in any dtype, from a seeded generator."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from timberframe_core.dtypes import BY_NAME
from timberframe_core.ops.definition.formats import FORMATS
from timberframe_core.ops.definition.samples import Arg
from timberframe_sdk.scripts import Draw

ORDINARY = {"f": (-4.0, 4.0), "i": (-100.0, 100.0), "u": (0.0, 200.0)}
"""Range of random values where a sample states none, by kind: floating, signed and unsigned integers."""

watchers: list[Callable[[Draw], None]] = []
"""Called with each array of floating-point numbers before it is drawn."""


def make_array(
    arg: Arg, dtype: str, rng: np.random.Generator, *, special: bool = False, largest: bool = True
) -> np.ndarray:
    """Returns one input.

    special: some elements become NaN, infinite, subnormal, -0, limits; largest: also the largest.
    """
    numpy = BY_NAME[dtype].numpy
    if arg.values is not None:
        return fixed_array(arg.values, numpy)
    if dtype == "string":
        return _strings(arg.shape, rng)
    if dtype == "bool":
        return rng.integers(0, 2, arg.shape).astype(bool)
    result = _distinct(arg, numpy, rng) if arg.distinct else _random(arg, numpy, rng)
    if special and arg.special and result.size:
        _add_special_values(result, dtype, rng, largest)
    return result


def fixed_array(values: Any, numpy: np.dtype) -> np.ndarray:
    """Returns the values as an array; strings become bytes in an object array."""
    if numpy.hasobject:
        text = np.asarray(values, dtype=object)
        for i, v in enumerate(text.flat):
            if not isinstance(v, bytes):
                text.flat[i] = str(v).encode()
        return text
    if numpy.kind in "iu":
        whole = np.asarray(
            values, dtype=object
        )  # not through float64, which does not hold the limits of 64-bit integers
        if all(isinstance(v, int | np.integer) for v in whole.flat):
            bits = 8 * numpy.itemsize
            wrapped = np.array([int(v) % (1 << bits) for v in whole.flat], np.uint64).reshape(whole.shape)
            return wrapped.astype(f"u{numpy.itemsize}").view(numpy)
    array = np.asarray(values)
    with np.errstate(all="ignore"):
        return array.astype(numpy)


def limits(arg: Arg, numpy: np.dtype) -> tuple[float, float]:
    """Least and greatest random value of an argument in a dtype."""
    kind = numpy.kind if numpy.kind in "iu" else "f"
    low, high = ORDINARY[kind]
    low = low if arg.low is None else arg.low
    high = high if arg.high is None else arg.high
    if kind in "iu":
        info = np.iinfo(numpy)
        least, greatest = float(info.min), float(info.max)
    else:
        greatest = FORMATS[numpy.name].largest
        least = -greatest
    low, high = max(low, least), min(high, greatest)
    return (low, high) if low <= high else (high, high)


def _random(arg: Arg, numpy: np.dtype, rng: np.random.Generator) -> np.ndarray:
    low, high = limits(arg, numpy)
    if numpy.kind in "iu":
        return rng.integers(int(np.ceil(low)), int(np.floor(high)), arg.shape, endpoint=True).astype(numpy)

    def drawn() -> Any:
        _note(rng, low, high, math.prod(arg.shape))
        values = rng.uniform(low, high, arg.shape)
        return np.round(values) if arg.whole else values

    return np.asarray(drawn() + 1j * drawn() if numpy.kind == "c" else drawn()).astype(numpy)


def _note(rng: np.random.Generator, low: float, high: float, count: int) -> None:
    """Tells the watchers which numbers are drawn next."""
    state: Any = rng.bit_generator.state["state"]
    for watch in watchers:
        watch(Draw(state["state"], state["inc"], low, high, count))


def _distinct(arg: Arg, numpy: np.dtype, rng: np.random.Generator) -> np.ndarray:
    """Returns distinct values, as far as the range of the dtype has enough of them."""
    low, high = limits(arg, numpy)
    size = int(np.prod(arg.shape, dtype=np.int64))
    if numpy.kind in "iu":
        info = np.iinfo(numpy)
        first = int(max(low, info.min)) if high - low >= size else int(max(info.min, min(low, info.max - size)))
        ladder = (first + np.arange(size, dtype=np.int64)).astype(numpy)
    else:
        # Steps that the narrowest format (8 bits) can still distinguish in small arrays.
        ladder = (low + (high - low) * (np.arange(size) + 0.5) / max(size, 1)).astype(numpy)
        if np.unique(ladder).size < size:
            ladder = (np.arange(size) - size // 2).astype(numpy)
    return rng.permutation(ladder).reshape(arg.shape)


def _strings(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    out = np.empty(shape, object)
    size = int(np.prod(shape, dtype=np.int64))
    lengths = rng.integers(0, 13, size)
    for i, n in enumerate(lengths):
        out.flat[i] = rng.integers(0, 256, n, dtype=np.uint8).tobytes()
    return out


def special_values(dtype: str, *, largest: bool = True) -> list[Any]:
    """Returns the values at which kernels go wrong: not finite, smallest, signed zeros, limits."""
    numpy = BY_NAME[dtype].numpy
    if numpy.kind in "iu":
        info = np.iinfo(numpy)
        return [info.min, info.max, 0, 1, info.max - 1, info.min + 1]
    form = FORMATS[dtype]
    real = [np.nan, np.inf, -np.inf, -0.0, 0.0, form.smallest, -form.smallest * 3, form.smallest_normal, 1.0, -1.0]
    if largest:
        real += [form.largest, -form.largest]
    if numpy.kind == "c":
        return [complex(a, b) for a, b in zip(real, real[3:] + real[:3], strict=True)] + [
            complex(a, 0.0) for a in real[:3]
        ]
    return real


def _add_special_values(array: np.ndarray, dtype: str, rng: np.random.Generator, largest: bool) -> None:
    values = special_values(dtype, largest=largest)
    count = min(len(values), max(1, array.size // 2))
    positions = rng.choice(array.size, count, replace=False)
    chosen = rng.permutation(len(values))[:count]
    with np.errstate(all="ignore"):
        array.flat[positions] = np.asarray([values[i] for i in chosen]).astype(array.dtype)


def reshaped(arg: Arg, shape: tuple[int, ...]) -> Arg:
    """Returns the same kind of values in another shape."""
    return dataclasses.replace(arg, shape=shape)
