"""An einsum planned as copies and a batch of matrix products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from timberframe_core.plugin.contracts import KernelNode
from timberframe_core.shapes import row_major_strides

Label = str | int
Sizes = dict[Label, int]


@dataclass(frozen=True)
class Walk:
    """A walk over a tensor in memory: the size and the stride, in elements, of each of its dimensions."""

    counts: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of positions."""
        return math.prod(self.counts)


@dataclass(frozen=True)
class Copy:
    """How an operand becomes dense: the walk that gives its elements, and the one over which each of them is summed.

    direct: whether it lies so already.
    """

    walk: Walk
    summed: Walk
    direct: bool


@dataclass(frozen=True)
class Products:
    """A batch of products of matrices, and whether each operand lies transposed."""

    rows: int
    columns: int
    depth: int
    batch: int
    swaps: tuple[bool, bool]


@dataclass(frozen=True)
class EinsumPlan:
    """The steps of an einsum of one or two operands.

    Copies, one for each operand; products of the two, None for one operand; `scatter` leads the dense result to its
    positions in the output, None where it is the output. diagonal: the output is zero elsewhere.
    """

    copies: tuple[Copy, ...]
    products: Products | None
    scatter: Walk | None
    diagonal: bool


@dataclass
class _Operand:
    """One input: the strides of its labels (of a repeated one: its diagonal's), less dimensions that only broadcast."""

    labels: list[Label]
    strides: dict[Label, int]
    repeats: bool

    @classmethod
    def of(cls, labels: tuple[Label, ...], shape: tuple[int, ...], sizes: Sizes) -> _Operand:
        strides: dict[Label, int] = {}
        kept = []
        for label, size, step in zip(labels, shape, row_major_strides(shape), strict=True):
            if size == 1 and sizes[label] != 1:
                continue
            kept.append(label)
            strides[label] = strides.get(label, 0) + step
        return cls(list(dict.fromkeys(kept)), strides, len(set(kept)) < len(kept))

    def walk(self, labels: Sequence[Label], sizes: Sizes) -> Walk:
        return Walk(tuple(sizes[a] for a in labels), tuple(self.strides[a] for a in labels))

    def copy(self, layout: Sequence[Label], sizes: Sizes, dense: bool) -> Copy:
        """Returns what brings the operand into this layout; labels that it lacks are summed."""
        summed = [a for a in self.labels if a not in layout]
        direct = dense and self.labels == list(layout) and not self.repeats
        return Copy(self.walk(layout, sizes), self.walk(summed, sizes), direct)


def plan_einsum(node: KernelNode, dense: bool = True) -> EinsumPlan:
    """Returns the plan of an Einsum node. dense: whether products take operands and write the output as they lie."""
    from timberframe_ops.linalg.einsum import label_sizes, parse_equation

    shapes = [value.shape for value in node.inputs]
    equation = parse_equation(node.attrs["equation"], [len(s) for s in shapes])
    sizes = {label: size or 0 for label, size in label_sizes(equation, shapes).items()}
    operands = [_Operand.of(labels, s, sizes) for labels, s in zip(equation.inputs, shapes, strict=True)]
    wanted = list(dict.fromkeys(equation.output))
    output = _Operand.of(equation.output, node.outputs[0].shape, sizes)
    if len(operands) == 1:
        layout = [a for a in wanted if a in operands[0].labels]
        copy = operands[0].copy(layout, sizes, dense=False)
        return EinsumPlan((copy,), None, output.walk(layout, sizes), output.repeats)
    copies, products, result = _product(operands[0], operands[1], wanted, sizes, dense)
    whole = dense and result == list(equation.output)
    return EinsumPlan(copies, products, None if whole else output.walk(result, sizes), output.repeats)


def _product(
    x: _Operand, y: _Operand, wanted: list[Label], sizes: Sizes, dense: bool
) -> tuple[tuple[Copy, Copy], Products, list[Label]]:
    """Copies of both operands, their products, and the labels of the result."""
    both = [a for a in x.labels if a in y.labels]
    batch = [a for a in wanted if a in both]
    depth = [a for a in both if a not in wanted]
    rows = [a for a in wanted if a in x.labels and a not in batch]
    columns = [a for a in wanted if a in y.labels and a not in batch]
    left, right = [*batch, *rows, *depth], [*batch, *depth, *columns]
    swapped_left, swapped_right = [*batch, *depth, *rows], [*batch, *columns, *depth]
    swaps = x.labels == swapped_left, y.labels == swapped_right
    copies = (
        x.copy(swapped_left if swaps[0] else left, sizes, dense),
        y.copy(swapped_right if swaps[1] else right, sizes, dense),
    )
    counts = [math.prod(sizes[a] for a in labels) for labels in (rows, columns, depth, batch)]
    return copies, Products(counts[0], counts[1], counts[2], counts[3], swaps), [*batch, *rows, *columns]
