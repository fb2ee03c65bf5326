"""Plans of moves as launches of the kernels of move.h."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from timberframe_accelerator.launches import GROUP, MOST_GROUPS, MOST_ITEMS, Source, index_name, index_type, spread
from timberframe_sdk import KernelNode, Launcher, passed_inputs
from timberframe_sdk.plans.moves import LITERAL, Dim, Stages, View, itemsize, literal, merged

Step = Callable[[Sequence[Any]], None]
"""Enqueues a part of a plan on the arrays that a launcher gets."""

_SHORT_ROW = 8
"""Rows of fewer elements leave most work-items of a group idle; they are moved element by element."""
_ANY = 2
_SIDE = 32
_THIN = 8
"""A plane thinner than this leaves most of a tile empty."""
_TENSORS = 8
_MOST_BOXES = 4096


@dataclass(frozen=True)
class Box:
    """One move. kind: the kernel; step: of the source along a row; dims: innermost first, in elements."""

    kind: str
    step: int
    source: int
    target: int
    source_offset: int
    target_offset: int
    dims: list[Dim]

    @property
    def count(self) -> int:
        """Rows, planes or elements, whichever the kernel numbers."""
        return math.prod(size for size, _, _ in self.dims[{"tf_rows": 1, "tf_transpose": 2}.get(self.kind, 0) :])


def _box(source: View, target: View, bytes_each: int) -> Box:
    dims = [(n, s // bytes_each, t // bytes_each) for n, s, t in merged(source, target)[::-1]] or [(1, 1, 1)]
    kind, step = "tf_strided", 0
    if dims[0][2] == 1:
        length, step, _ = dims[0]
        crossing = next((i for i, d in enumerate(dims) if i and d[1] == 1 and d[0] >= _THIN), 0)
        if step not in (0, 1) and length >= _THIN and crossing:
            kind = "tf_transpose"
            dims.insert(1, dims.pop(crossing))
        elif length >= _SHORT_ROW or len(dims) == 1:
            kind = "tf_rows"
        elif all(t == math.prod(d[0] for d in dims[:i]) for i, (_, _, t) in enumerate(dims)):
            kind = "tf_dense"
        step = step if step in (0, 1) and kind == "tf_rows" else _ANY
    return Box(kind, step, source.tensor, target.tensor, source.offset // bytes_each, target.offset // bytes_each, dims)


def _launches(boxes: Sequence[Box]) -> Iterator[list[Box]]:
    """Boxes that one launch can move: of one kind, and of at most 8 tensors on each side."""
    alike: dict[tuple[str, int, int], list[Box]] = {}
    for box in boxes:
        alike.setdefault((box.kind, box.step, len(box.dims)), []).append(box)
    for (kind, _, _), same in alike.items():
        chosen: list[Box] = []
        sources: set[int] = set()
        targets: set[int] = set()
        for box in same:
            sources.add(box.source)
            targets.add(box.target)
            most = max(len(sources), len(targets))
            if chosen and (most > _TENSORS or len(chosen) == _MOST_BOXES or kind == "tf_transpose"):
                yield chosen
                chosen, sources, targets = [], {box.source}, {box.target}
            chosen.append(box)
        yield chosen


def divisor_words(divisor: int) -> tuple[int, int, int]:
    """Arguments for TF_DIVISOR of division.h: a number that a kernel divides by; 0 where it has nothing to divide."""
    return divisor, *quotient_words(max(divisor, 1))


def quotient_words(divisor: int) -> tuple[int, int]:
    """Multiplier (as an int32) and shift of tf_quotient in division.h, for a divisor of 31 bits; larger: zeros."""
    if divisor >= 2**31:
        return 0, 0
    s = (divisor - 1).bit_length()
    return ((1 << (31 + s)) // divisor + 1 + 2**31) % 2**32 - 2**31, 31 + s


def _table(boxes: Sequence[Box], sources: list[int], targets: list[int], index: Any) -> np.ndarray:
    table = np.zeros((len(boxes), 5 + 5 * len(boxes[0].dims)), index)
    for row, b in zip(table, boxes, strict=True):
        head = sources.index(b.source), targets.index(b.target), b.source_offset, b.target_offset, b.count
        words: list[int] = []
        for size, *strides in b.dims:
            words += size, *strides, *quotient_words(size if index is np.int32 else 1)
        row[:] = *head, *words
    return table


def _grid(boxes: Sequence[Box]) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Work-items and groups of a launch of these boxes."""
    count, kind, sizes = max(b.count for b in boxes), boxes[0].kind, [n for n, _, _ in boxes[0].dims]
    if kind in ("tf_dense", "tf_strided"):
        (items,), _ = spread(count)
        return (items, 1, len(boxes)), (GROUP, 1, 1)
    if kind == "tf_transpose":
        tiles = -(-sizes[0] // _SIDE) * -(-sizes[1] // _SIDE)
        return (tiles * _SIDE, min(count, MOST_GROUPS) * _SIDE // 4, 1), (_SIDE, _SIDE // 4, 1)
    length = max(b.dims[0][0] for b in boxes)
    x = min(GROUP, 1 << (length - 1).bit_length())
    wide = min(-(-length // x) * x, MOST_ITEMS)
    y = GROUP // x
    rows = min(-(-count // y), max(1, MOST_ITEMS // (wide * y)), MOST_GROUPS) * y
    return (wide, rows, len(boxes)), (x, y, 1)


def steps(node: KernelNode, stages: Stages, late: int = 0) -> list[Step]:
    """Returns what a plan enqueues. late: 1 or 2 where the workspace holds the offset of the source or target."""
    device: Any = node.device
    passed, bytes_each = passed_inputs(node), itemsize(node)
    values, outputs = [node.inputs[i] for i in passed] + node.outputs, len(passed)
    if not late and len(stages) == len(stages[0]) == 1 and _is_copy(*stages[0][0], bytes_each, values, outputs):
        source, target = stages[0][0][0].tensor, outputs + stages[0][0][1].tensor
        return [lambda arrays: device.copy(arrays[source], arrays[target])]
    one = None
    if any(s.tensor == LITERAL for moves in stages for s, _ in moves):
        one = device.table(np.frombuffer(literal(node)[:bytes_each], f"uint{8 * bytes_each}").copy())
    boxes = [[_box(s, t, bytes_each) for s, t in moves if 0 not in t.shape] for moves in stages]
    launch = _Launches(device, f"uint{8 * bytes_each}", [v.size for v in values], outputs, late, one)
    return [launch.step(chosen) for stage in boxes for chosen in _launches(stage)]


@dataclass(frozen=True)
class _Launches:
    """What the launches of one plan share. sizes: of the arrays that a launcher gets, the outputs from `outputs` on."""

    device: Any
    bits: str
    sizes: Sequence[int]
    outputs: int
    late: int
    literal: Any

    def step(self, boxes: list[Box]) -> Step:
        """Returns one launch."""
        index, outputs, workspace = index_type(*self.sizes), self.outputs, len(self.sizes)
        sources, targets = sorted({b.source for b in boxes}), sorted({b.target for b in boxes})
        counts = [1 if len(used) == 1 else _TENSORS for used in (sources, targets)]
        name = index_name(*self.sizes)
        macros = {"SOURCES": counts[0], "TARGETS": counts[1], "RANK": len(boxes[0].dims), "STEP": boxes[0].step}
        kind = boxes[0].kind.removeprefix("tf_").upper()
        source = Source.file("move.h", T=self.bits, INDEX=name, KIND=kind, LATE=self.late, **macros)
        function = self.device.function(source, boxes[0].kind)
        table = _table(boxes, sources, targets, index)
        on_device, words = self.device.table(table), index(table.shape[1])
        items, group = _grid(boxes)
        positions = [outputs - 2 - t if t < LITERAL else t for t in sources] * _TENSORS
        positions = positions[: counts[0]] + ([outputs + t for t in targets] * _TENSORS)[: counts[1]]
        literal, more = self.literal, (workspace,) if self.late else ()

        def launch(arrays: Sequence[Any]) -> None:
            given = [literal if at == LITERAL else arrays[at] for at in positions]
            function(items, group, *given, on_device, words, *(arrays[i] for i in more))

        return launch


def _is_copy(source: View, target: View, bytes_each: int, values: Sequence[Any], outputs: int) -> bool:
    """Returns whether a move fills a whole output with the first elements of an input."""
    whole = values[outputs + target.tensor].size
    dims = merged(source, target)
    return source.tensor >= 0 and not source.offset and dims == [(whole, bytes_each, bytes_each)]


def launcher(parts: Sequence[Step]) -> Launcher:
    """Returns the launcher that enqueues these steps in order."""

    def launch(*arrays: Any) -> None:
        for part in parts:
            part(arrays)

    return launch
