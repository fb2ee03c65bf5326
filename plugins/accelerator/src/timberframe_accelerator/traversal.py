"""How an elementwise kernel goes over the elements of its result: as source code, arguments and numbers of work-items.

Where all operands move with the result or stand still, it takes element after element; where they move along rows and
columns, it goes over those; else it finds each operand's element by strides. On devices whose `Limits.access_bytes` is
set, work-items take packs of neighbouring small elements at once: an operand has a pack of its own, which is read in
one piece, or one element for all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from timberframe_accelerator.launches import GROUP, index_type, spread, spread_rows
from timberframe_sdk.elementwise.fusion import Dim

_LEAST_ROW = 32
"""Elements of a row from which on a launch by rows and columns is worth it."""
_MOST_ROWS = 1 << 15
"""Rows that are taken at a time: devices launch fewer groups along the second dimension."""
_SMALL = 2
"""Bytes of an element up to which work-items take packs: 32 of them that read larger ones singly ask for enough."""


@dataclass(frozen=True)
class Traversal:
    """The loops over the elements of a result.

    position, length: the loop's variable and how far it goes; across: the loop within it, if any; finding: the lines
    that find i, the element's number, and the operands' indices. indices: where each operand's element is.
    parameters, arguments: what the loops need to know. width: the elements of a pack, 1 for none; moves: whether an
    operand moves within a pack; undivided: a condition for packs that do not reach into another row, if one is needed.
    """

    position: str
    length: str
    across: str
    finding: Sequence[str]
    indices: Sequence[str]
    parameters: Sequence[str]
    arguments: Sequence[Any]
    items: tuple[int, ...]
    group: tuple[int, ...]
    width: int = 1
    moves: Sequence[bool] = ()
    undivided: str = ""

    def loops(self, body: Sequence[str], packed: Callable[[], Sequence[str]], aligned: Sequence[str]) -> list[str]:
        """Returns the loops in C around what is done with an element.

        packed: gives what is done with a pack whose first element is i. aligned: conditions for packs to be read.
        """
        within = [*self.finding, *body, "  }"]
        if self.width == 1:
            return [f"  TF_EACH({self.position}, {self.length}){self.across} {{", *within]
        conditions = " && ".join([*aligned, *([self.undivided] if self.undivided else [])])
        return [
            f"  const tf_index packs = {conditions} ? {self.length} / {self.width} : 0;",
            f"  TF_EACH(pack, packs){self.across} {{",
            f"    const tf_index {self.position} = pack * {self.width};",
            *self.finding,
            *packed(),
            "  }",
            f"  TF_EACH_FROM(packs * {self.width}, {self.position}, {self.length}){self.across} {{",
            *within,
        ]


def traversal(device: Any, dims: Sequence[Dim], operands: int, count: int, width: int = 1) -> Traversal:
    """Returns the loops over a result of `count` elements. width: the elements of a pack."""
    index, lanes = index_type(count), device.limits.elementwise_group_size
    steps = [operand_step(k, dims) for k in range(operands)]
    if None not in steps:
        return Traversal(
            "i", "count", "", (), ["i" if step else "0" for step in steps], ["tf_index count"], [index(count)],
            *spread(-(-count // width), lanes), width, [bool(step) for step in steps],
        )  # fmt: skip
    inner = dims[0][0]
    moves = [bool(dims[0][1][k]) for k in range(operands)]
    each = width if inner % width == 0 else 1  # elements that a work-item takes at once
    found = [_row_index(k, dims) for k in range(operands)]
    rows = [index for index in found if index is not None]
    if len(rows) == operands and inner >= _LEAST_ROW:
        return Traversal(
            "column", "columns", " TF_EACH_ROW(row, rows)", ["    const tf_index i = row * columns + column;"], rows,
            ["tf_index columns", "tf_index rows"], [index(inner), index(dims[1][0])],
            *_by_rows(inner // each, dims[1][0], lanes), width, moves, f"columns % {width} == 0",
        )  # fmt: skip
    return Traversal(
        "i", "count", "", search(operands), [f"o{k}" for k in range(operands)],
        ["tf_index count", "TF_GLOBAL const tf_index *walk"], [index(count), device.table(np.array(walk(dims), index))],
        *spread(count // each, lanes), width, moves, f"walk[1] % {width} == 0",
    )  # fmt: skip


def pack_width(access_bytes: int, itemsizes: Sequence[int]) -> int:
    """Returns the elements that a work-item takes at once, for the sizes of those that it reads and
    writes one after the other.

    The smallest are read in one piece; the largest in two at most, which is a sector of memory (32 bytes; CUDA C++ Best
    Practices Guide, coalesced access).
    """
    if not access_bytes or min(itemsizes) > _SMALL:
        return 1
    return max(1, min(access_bytes // min(itemsizes), 2 * access_bytes // max(itemsizes)))


def operand_step(k: int, dims: Sequence[Dim]) -> int | None:
    """1 where operand k moves with the result, 0 where it stands still, None where it has strides of its own."""
    strides = [s[k] for _, s in dims]
    if not any(strides):
        return 0
    step = 1
    for (size, _), stride in zip(dims, strides, strict=True):
        if stride != step:
            return None
        step *= size
    return 1


def walk(dims: Sequence[Dim]) -> list[int]:
    """Returns the dimensions as `search` reads them: their number, and each one's size and strides."""
    return [len(dims), *(n for size, strides in dims for n in (size, *strides))]


def search(count: int) -> list[str]:
    """Returns the statements that find the indices o0, o1, ... of the operands of element i."""
    moves = "".join(f" o{k} += at * walk[d + {k + 1}];" for k in range(count))
    return [
        "    tf_index left = i, " + ", ".join(f"o{k} = 0" for k in range(count)) + ";",
        f"    for (tf_index d = 1; d < 1 + walk[0] * {count + 1}; d += {count + 1}) {{",
        f"      const tf_index rest = left / walk[d], at = left - rest * walk[d];{moves}",
        "      left = rest;",
        "    }",
    ]


def _row_index(k: int, dims: Sequence[Dim]) -> str | None:
    """Returns where operand k of a result of two dimensions is; None where it moves otherwise."""
    if len(dims) != 2:
        return None
    (size, inner), (_, outer) = dims
    return {(1, size): "i", (0, 0): "0", (1, 0): "column", (0, 1): "row"}.get((inner[k], outer[k]))


def _by_rows(columns: int, rows: int, lanes: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Work-items and group size for so many columns and rows, of which a work-item takes single ones."""
    if lanes <= GROUP:  # else a group is a thread of a CPU, for which rows in a group would be slower
        return spread_rows(columns, rows)
    items, group = spread(columns, min(lanes, 1 << (columns - 1).bit_length()))
    return (*items, min(rows, _MOST_ROWS)), (*group, 1)
