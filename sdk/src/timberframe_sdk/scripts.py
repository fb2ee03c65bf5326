"""Parts of programs that show a failure without Timberframe, for devices that write them: see `Device.script`.

Such a program has the names `expected`, `allowed` and `looked_at`, of `judged_entries`, and `got`: outputs by name. It
is short enough for a tracker: large inputs that were drawn are drawn once more, and of large outputs some elements are
looked at.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from timberframe_core.plugin.contracts import Judged

MOST_LITERALS = 64
"""Arrays of more elements are packed."""
MOST_COMPARED = 1024
"""Of outputs with more elements some are looked at: as many as may be literals, wrong ones where there are any."""
_DRAWN_FROM = 2048
"""Characters that a packed array has, at least, for it to be drawn once more instead."""
PACKING = "import base64\nimport zlib\n"
"""Imports that `UNPACK` needs."""
UNPACK = """
def unpack(text, dtype, shape):
    return np.frombuffer(zlib.decompress(base64.b85decode(text)), dtype).reshape(shape)

"""
DRAWING = """
def drawn(state, increment, low, high, dtype, shape, at, values, checksum):
    bits = np.random.PCG64()
    bits.state = {
        "bit_generator": "PCG64", "state": {"state": state, "inc": increment}, "has_uint32": 0, "uinteger": 0,
    }
    x = np.random.Generator(bits).uniform(low, high, shape).astype(dtype)
    x.flat[at] = values
    if zlib.crc32(x.tobytes()) != checksum:
        print("this version of NumPy draws other random numbers: the inputs are not those of the failure")
        sys.exit(2)
    return x

"""
COMPARISON = """
wrong = False
for name, want in expected.items():
    y = np.asarray(got[name])
    shape, places = looked_at.get(name, (want.shape, None))
    if y.shape != shape:
        print(name, "has shape", y.shape, "and must have", shape)
        wrong = True
        continue
    y = y if places is None else y.reshape(-1)[places]
    with np.errstate(all="ignore"):
        right = (y == want) | (y == want.astype(y.dtype)) | ((y != y) & (want != want))  # as rounded: it may overflow
        if name in allowed:
            limit = np.asarray(allowed[name])
            right |= np.isinf(limit) | (np.abs(y.astype(np.float64) - want) <= limit)
    for index in list(zip(*np.nonzero(~right)))[:5] if right.ndim else [()] * int(not right):
        at = index if places is None else np.unravel_index(places[index[0]], shape)
        print(f"{name}{[int(i) for i in at]}: got {y[index]!r}, expected {want[index]!r}")
    if not right.all():
        where = "" if places is None else " that are looked at"
        print(int((~right).sum()), "of", right.size, "elements of", name + where, "are wrong")
        wrong = True
print("wrong" if wrong else "right")
sys.exit(wrong)
"""
"""The end of a program: its status is 1 where an output is wrong."""


@dataclass(frozen=True)
class Draw:
    """Numbers that a case drew by `numpy.random.Generator.uniform`. state, increment: of its PCG64 before."""

    state: int
    increment: int
    low: float
    high: float
    count: int

    def array(self) -> np.ndarray:
        """Returns the numbers once more, in float64."""
        bits = np.random.PCG64()
        inside: Any = {"state": self.state, "inc": self.increment}
        bits.state = {"bit_generator": "PCG64", "state": inside, "has_uint32": 0, "uinteger": 0}
        return np.random.Generator(bits).uniform(self.low, self.high, self.count)


def without_packing(text: str) -> str:
    """Returns a program without the functions for packed and for drawn arrays that it does not call."""
    for function, call in ((UNPACK, "unpack("), (DRAWING, "drawn(")):
        if call not in text.replace(function, ""):
            text = text.replace(function + "\n", "")
    if "def unpack(" not in text:
        text = text.replace("import base64\n", "")
    return text if "zlib." in text else text.replace("import zlib\n", "")


def quoted(title: str) -> str:
    """Returns a text as it may stand in a docstring."""
    return title.replace("\\", "\\\\").replace('"""', "'''")


def judged_entries(judged: Mapping[str, Judged]) -> str:
    """Returns the lines that say what outputs must be, and how far each element may be off."""
    places = {name: _places(j) for name, j in judged.items() if j.expected.size > MOST_COMPARED}
    looked_at = entries({name: repr((judged[name].expected.shape, at)) for name, at in places.items()})
    judged = {name: _elements(j, places[name]) if name in places else j for name, j in judged.items()}
    expected = entries({name: array_text(_plain(j.expected)) for name, j in judged.items()})
    limits = entries(_limits(judged))
    return (
        f"expected = {expected}\n# The absolute error that each element may have; no entry: none.\nallowed = {limits}\n"
        f"# The shape of an output, and which of its elements are looked at; no entry: all.\nlooked_at = {looked_at}"
    )


def _places(j: Judged) -> list[int]:
    """Returns the positions of some elements of an output, wrong ones where there are any."""
    got, want = (
        x.reshape(-1).astype(np.complex128 if x.dtype.kind == "c" else np.float64) for x in (j.got, j.expected)
    )
    with np.errstate(all="ignore"):
        limit = np.zeros(()) if j.allowed is None else j.allowed.reshape(-1)
        right = (got == want) | ((got != got) & (want != want)) | np.isinf(limit) | (np.abs(got - want) <= limit)
        right |= got == want.astype(j.got.dtype)  # as rounded: it may overflow
    chosen = np.arange(got.size) if right.all() else np.flatnonzero(~right)
    return [int(p) for p in chosen[:: -(-chosen.size // MOST_LITERALS)]]


def _elements(j: Judged, places: Sequence[int]) -> Judged:
    """Returns an output's elements at these positions."""
    got, expected = (x.reshape(-1)[places] for x in (j.got, j.expected))
    return Judged(got, expected, None if j.allowed is None else j.allowed.reshape(-1)[places])


def _limits(judged: Mapping[str, Judged]) -> dict[str, str]:
    found = {}
    for name, j in judged.items():
        if j.allowed is not None:
            same = j.allowed.size > 0 and bool((j.allowed == j.allowed.flat[0]).all())
            found[name] = (
                repr(float(j.allowed.flat[0])) if same and np.isfinite(j.allowed.flat[0]) else array_text(j.allowed)
            )
    return found


def entries(texts: Mapping[str, str]) -> str:
    """Returns a dict of expressions."""
    lines = [f"    {name!r}: {text}," for name, text in texts.items()]
    return "\n".join(["{", *lines, "}"]) if lines else "{}"


def array_text(x: np.ndarray, draws: Sequence[Draw] = ()) -> str:
    """Returns an expression for an array of a dtype that NumPy has, bit for bit where it has numbers so written.

    draws: numbers that the array may be made of.
    """
    dtype = "np.bool_" if x.dtype == bool else f"np.{x.dtype.name}"
    if x.size > MOST_LITERALS:
        text = base64.b85encode(zlib.compress(np.ascontiguousarray(x).tobytes(), 9)).decode()
        again = _drawn_text(x, draws) if len(text) >= _DRAWN_FROM else ""
        return again or f"unpack({text!r}, {dtype}, {x.shape})"
    if x.dtype.kind in "fc" and not np.isfinite(x).all():
        return f"np.array({_numbers(x)}, {dtype}).reshape({x.shape})"
    return f"np.array({x.tolist()!r}, {dtype})" + (f".reshape({x.shape})" if x.size == 0 else "")


def _drawn_text(x: np.ndarray, draws: Sequence[Draw]) -> str:
    """Returns an expression that draws an array once more, and puts the few other elements into it; else ""."""
    for draw in draws:
        if draw.count == x.size and x.dtype.kind == "f":
            made, flat = draw.array().astype(x.dtype), np.ascontiguousarray(x).reshape(-1)
            at = np.flatnonzero(made.view(np.uint8).reshape(x.size, -1) != flat.view(np.uint8).reshape(x.size, -1))
            at = np.unique(at // x.itemsize)
            if at.size <= MOST_LITERALS:
                numbers = f"{draw.state}, {draw.increment}, {draw.low!r}, {draw.high!r}, np.{x.dtype.name}, {x.shape}"
                return f"drawn({numbers}, {at.tolist()}, {array_text(flat[at])}, {zlib.crc32(flat.tobytes())})"
    return ""


def _numbers(x: np.ndarray) -> str:
    """Returns elements as text: NaN and infinities have no literals."""
    return (
        "[" + ", ".join(repr(v) if np.isfinite(v) else f'{type(v).__name__}("{v}")' for v in x.ravel().tolist()) + "]"
    )


def _plain(x: np.ndarray) -> np.ndarray:
    """Returns an array in a dtype of NumPy's own that holds its numbers."""
    return x if x.dtype.isbuiltin == 1 else x.astype(np.float64)


def same_array(x: np.ndarray, y: np.ndarray) -> bool:
    """Returns whether two arrays are equal bit for bit."""
    return x.dtype == y.dtype and x.shape == y.shape and np.ascontiguousarray(x).tobytes() == y.tobytes()
