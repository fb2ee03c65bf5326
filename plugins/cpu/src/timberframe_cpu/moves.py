"""Plans for the native kernel `move`: which boxes of elements go where, in the form that csrc/movement/move.h reads."""

from __future__ import annotations

from timberframe_cpu.native import native
from timberframe_sdk import UnimplementedError
from timberframe_sdk.native import Native
from timberframe_sdk.plans.moves import Dim, Stages, View, merged

MAX_RANK = 16
"""Dimensions of a box after merging: MOVE_MAX_RANK in move.h."""

_ROWS, _FILL, _STRIDED, _TRANSPOSE = range(4)
_UNITS = (1, 2, 4, 8, 16)


def move(source: View, target: View, itemsize: int) -> list[int]:
    """Returns the words of one move; none if the box is empty. Raises UnimplementedError above 16 dimensions."""
    if 0 in target.shape:
        return []
    unit = itemsize
    dims = merged(source, target)
    while dims and dims[-1][1] == dims[-1][2] == unit and dims[-1][0] * unit in _UNITS:
        unit *= dims.pop()[0]  # several elements that stay together move as one
    if not dims:
        dims = [(1, unit, unit)]
    if len(dims) > MAX_RANK:
        raise UnimplementedError(f"a box of {len(dims)} dimensions that do not merge; at most {MAX_RANK} are possible")
    kind = _kind(dims, unit)
    words = [source.tensor, target.tensor, unit, kind, len(dims), source.offset, target.offset]
    for dim in dims:
        words += dim
    return words


def _kind(dims: list[Dim], unit: int) -> int:
    """Returns how the innermost dimensions are walked; for a transpose, brings the source's
    contiguous one next to the last.
    """
    _, source, target = dims[-1]
    if target != unit:
        return _STRIDED
    if source in (unit, 0):
        return _ROWS if source else _FILL
    across = next((i for i in range(len(dims) - 1) if dims[i][1] == unit), None)
    if across is None:
        return _STRIDED
    contiguous = dims.pop(across)
    dims.insert(len(dims) - 1, contiguous)
    return _TRANSPOSE


def plan(stages: Stages, itemsize: int, literal: bytes = b"", kernel: str = "move") -> Native:
    """Returns the kernel that performs these moves in order; `literal` holds the element of `element()`."""
    words: list[int] = []
    count = 0
    for moves in stages:
        for source, target in moves:
            record = move(source, target, itemsize)
            if record:
                words += record
                count += 1
    head = literal.ljust(16, b"\0")
    bits = [int.from_bytes(head[i : i + 8], "little", signed=True) for i in (0, 8)]
    return native(kernel, count, *bits, *words)
