"""CTCBeamSearchDecoder: the most probable sequences of labels, over all alignments that a beam keeps."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.shapes import Shape
from timberframe_ops.nn.ctc import lengths_of, sparse_rows

_ZERO = -math.inf


def _sum(a: float, b: float) -> float:
    """log(exp(a) + exp(b))."""
    if a == _ZERO or b == _ZERO:
        return max(a, b)
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


class _Prefix:
    """A sequence of labels, with the log probabilities of all alignments up to a step and to the one before.

    label, blank: of those that end with the last label, and with a blank; total: of all.
    """

    __slots__ = ("blank", "children", "label", "last", "old_blank", "old_total", "parent", "total")

    def __init__(self, parent: _Prefix | None, last: int) -> None:
        self.parent = parent
        self.last = last
        self.children: dict[int, _Prefix] = {}
        self.reset()
        self.old_blank = self.old_total = _ZERO

    def reset(self) -> None:
        """Leaves the beam."""
        self.label = self.blank = self.total = _ZERO

    def labels(self, merge_repeated: bool) -> list[int]:
        """Returns the labels from the first to the last."""
        found: list[int] = []
        node: _Prefix = self
        before = -1
        while node.parent is not None:
            if not merge_repeated or node.last != before:
                found.append(node.last)
            before = node.last
            node = node.parent
        return found[::-1]


class _Beam:
    """The best prefixes, at most `width`."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._order = itertools.count()
        self._heap: list[tuple[float, int, _Prefix]] = []

    def takes(self, total: float) -> bool:
        """Returns whether a prefix of this probability would be among them."""
        return total > _ZERO and (len(self._heap) < self._width or total > self._heap[0][0])

    def push(self, prefix: _Prefix) -> None:
        """Adds one; the worst one leaves if there are too many."""
        entry = (prefix.total, -next(self._order), prefix)
        if len(self._heap) < self._width:
            heapq.heappush(self._heap, entry)
        else:
            heapq.heapreplace(self._heap, entry)[2].reset()

    def prefixes(self) -> list[_Prefix]:
        """Returns all, the best first."""
        return [p for _, _, p in sorted(self._heap, key=lambda e: e[:2], reverse=True)]


def _step(beam: _Beam, logs: Sequence[float], width: int) -> _Beam:
    """Returns the beam after a step with these log probabilities, of which the last is the blank's."""
    branches, made = beam.prefixes(), _Beam(width)
    blank = logs[-1]
    for b in branches:
        b.old_blank, b.old_total = b.blank, b.total
    for b in branches:
        parent = b.parent
        if parent is not None:
            if parent.total != _ZERO:
                b.label = _sum(b.label, parent.old_blank if b.last == parent.last else parent.old_total)
            b.label += logs[b.last]
        b.blank = b.old_total + blank
        b.total = _sum(b.blank, b.label)
        made.push(b)
    for b in branches:
        if made.takes(b.old_total):
            for child in _grown(b, logs):
                if made.takes(child.total):
                    made.push(child)
                else:
                    child.reset()
    return made


def _grown(prefix: _Prefix, logs: Sequence[float]) -> Iterator[_Prefix]:
    """Yields the prefixes with one label more that are in no beam."""
    for label in range(len(logs) - 1):
        child = prefix.children.get(label)
        if child is None:
            child = prefix.children[label] = _Prefix(prefix, label)
        if child.total == _ZERO:
            child.blank = _ZERO
            child.label = logs[label] + (prefix.old_blank if label == prefix.last else prefix.old_total)
            child.total = child.label
            yield child


def _search(logits: np.ndarray, width: int) -> list[_Prefix]:
    root = _Prefix(None, -1)
    root.total = root.blank = 0.0
    beam = _Beam(width)
    beam.push(root)
    for row in logits.astype(np.float64):
        shifted = row - row.max()
        beam = _step(beam, (shifted - np.log(np.exp(shifted).sum())).tolist(), width)
    return beam.prefixes()


def _decode(attrs: Attrs, inputs: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, ...]:
    width, count = attrs["beam_width"], attrs["top_paths"]
    if count > width:
        raise InvalidArgumentError(f"top_paths is {count} and beam_width {width}; it must not be larger")
    paths: list[list[list[int]]] = [[] for _ in range(count)]
    logs = np.zeros((inputs.shape[1], count), inputs.dtype)
    for b, size in enumerate(lengths_of(inputs, lengths)):
        found = _search(inputs[:size, b], width)
        if len(found) < count:
            raise InvalidArgumentError(f"row {b} has {len(found)} paths; top_paths asks for {count}")
        for i, prefix in enumerate(found[:count]):
            paths[i].append(prefix.labels(attrs["merge_repeated"]))
            logs[b, i] = prefix.total
    parts = [sparse_rows(rows) for rows in paths]
    return (*(p[0] for p in parts), *(p[1] for p in parts), *(p[2] for p in parts), logs)


def _shape(c: InferenceContext) -> Sequence[Shape]:
    batch, count = c.require_rank(0, 3)[1], c.attrs["top_paths"]
    c.require_rank(1, 1)
    return [*[(None, 2)] * count, *[(None,)] * count, *[(2,)] * count, (batch, count)]


define_op(
    "CTCBeamSearchDecoder",
    inputs=["inputs: T", "sequence_length: int32"],
    outputs=[
        "decoded_indices: top_paths * int64", "decoded_values: top_paths * int64", "decoded_shape: top_paths * int64",
        "log_probability: T",
    ],
    attrs=[
        "beam_width: int >= 1", "top_paths: int >= 1", "merge_repeated: bool = true",
        "T: {float, double} = DT_FLOAT",
    ],
    doc="The top_paths most probable sequences of labels under logits [time, batch, classes], whose last class is the "
    "blank, as sparse matrices, with their log probabilities. merge_repeated: equal labels that follow each other "
    "count once.",
    shape=_shape,
    reference=_decode,
    gradient=NotDifferentiable("labels are integers"),
    on_host=True,
)  # fmt: skip
