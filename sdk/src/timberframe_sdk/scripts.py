"""Parts of programs that show a failure without Timberframe, for devices that write them: see `Device.script`.

Such a program has the names `expected` and `allowed`, of `judged_entries`, and `got`: outputs by name.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping

import numpy as np

from timberframe_core.plugin.contracts import Judged

MOST_LITERALS = 64
"""Arrays of more elements are packed."""
PACKING = "import base64\nimport zlib\n"
"""Imports that `UNPACK` needs."""
UNPACK = """
def unpack(text, dtype, shape):
    return np.frombuffer(zlib.decompress(base64.b85decode(text)), dtype).reshape(shape)

"""
COMPARISON = """
wrong = False
for name, want in expected.items():
    y = np.asarray(got[name])
    if y.shape != want.shape:
        print(name, "has shape", y.shape, "and must have", want.shape)
        wrong = True
        continue
    with np.errstate(all="ignore"):
        right = (y == want) | (y == want.astype(y.dtype)) | ((y != y) & (want != want))  # as rounded: it may overflow
        if name in allowed:
            limit = np.asarray(allowed[name])
            right |= np.isinf(limit) | (np.abs(y.astype(np.float64) - want) <= limit)
    for index in list(zip(*np.nonzero(~right)))[:5] if right.ndim else [()] * int(not right):
        at = tuple(map(int, index))
        print(f"{name}{list(at)}: got {y[at]!r}, expected {want[at]!r}")
    if not right.all():
        print(int((~right).sum()), "of", right.size, "elements of", name, "are wrong")
        wrong = True
print("wrong" if wrong else "right")
sys.exit(wrong)
"""
"""The end of a program: its status is 1 where an output is wrong."""


def without_packing(text: str) -> str:
    """Returns a program without what unpacks arrays, where it has no packed ones."""
    if "unpack(" in text.replace(UNPACK, ""):
        return text
    return text.replace(UNPACK + "\n", "").replace(PACKING, "")


def quoted(title: str) -> str:
    """Returns a text as it may stand in a docstring."""
    return title.replace("\\", "\\\\").replace('"""', "'''")


def judged_entries(judged: Mapping[str, Judged]) -> str:
    """Returns the lines that say what outputs must be, and how far each element may be off."""
    expected = entries({name: array_text(_plain(j.expected)) for name, j in judged.items()})
    limits = entries(_limits(judged))
    return (
        f"expected = {expected}\n# The absolute error that each element may have; no entry: none.\nallowed = {limits}"
    )


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


def array_text(x: np.ndarray) -> str:
    """Returns an expression for an array of a dtype that NumPy has, bit for bit where it has numbers so written."""
    dtype = "np.bool_" if x.dtype == bool else f"np.{x.dtype.name}"
    if x.size > MOST_LITERALS:
        text = base64.b85encode(zlib.compress(np.ascontiguousarray(x).tobytes(), 9)).decode()
        return f"unpack({text!r}, {dtype}, {x.shape})"
    if x.dtype.kind in "fc" and not np.isfinite(x).all():
        return f"np.array({_numbers(x)}, {dtype}).reshape({x.shape})"
    return f"np.array({x.tolist()!r}, {dtype})" + (f".reshape({x.shape})" if x.size == 0 else "")


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
