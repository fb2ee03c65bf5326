"""The kernel of csrc/linalg/einsum.c: plans an einsum as copies and a batch of matrix products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from timberframe.dtypes import as_dtype
from timberframe.ops.einsum import Equation, label_sizes, parse_equation
from timberframe.plugin.contracts import KernelDef, KernelNode
from timberframe.shapes import row_major_strides
from timberframe_cpu.kernels.linalg import BEYOND_BLAS, aligned, gemm_parameters, is_tiled
from timberframe_cpu.native import native
from timberframe_sdk.native import Native

Label = str | int
Sizes = dict[Label, int]


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

    def walk(self, labels: Sequence[Label], sizes: Sizes) -> list[int]:
        """A walk of einsum.c over these labels."""
        counts = [sizes[a] for a in labels]
        return [len(counts), math.prod(counts), *counts, *(self.strides[a] for a in labels)]


class _Plan:
    """The words of the kernel's parameters, and the workspace that they refer to."""

    def __init__(self, node: KernelNode, equation: Equation, sizes: Sizes) -> None:
        self.node = node
        self.sizes = sizes
        self.output = equation.output
        self.operands = [
            _Operand.of(labels, value.shape, sizes) for labels, value in zip(equation.inputs, node.inputs, strict=True)
        ]
        dtype = as_dtype(node.outputs[0].dtype)
        self.half = dtype.name in ("float16", "bfloat16")
        self.bytes = 4 if self.half else dtype.size
        self.workspace = 0

    def reserve(self, labels: Sequence[Label]) -> int:
        """The offset of room for a dense tensor of these labels."""
        start = self.workspace
        self.workspace += aligned(self.count(labels) * self.bytes)
        return start

    def count(self, labels: Sequence[Label]) -> int:
        return math.prod(self.sizes[a] for a in labels)

    def operand(self, operand: _Operand, layout: Sequence[Label], direct: bool) -> list[int]:
        """The step that brings an operand into this layout; labels that it lacks are summed."""
        summed = [a for a in operand.labels if a not in layout]
        to = 0 if direct else self.reserve(layout)
        return [int(not direct), to, *operand.walk(layout, self.sizes), *operand.walk(summed, self.sizes)]

    def words(self) -> list[int]:
        wanted = list(dict.fromkeys(self.output))
        if len(self.operands) == 1:
            layout = [a for a in wanted if a in self.operands[0].labels]
            return [1, *self.operand(self.operands[0], layout, False), 0, *[0] * 12, *self.scatter(layout)]
        return self.product(wanted)

    def product(self, wanted: list[Label]) -> list[int]:
        x, y = self.operands
        both = [a for a in x.labels if a in y.labels]
        batch = [a for a in wanted if a in both]
        depth = [a for a in both if a not in wanted]
        rows = [a for a in wanted if a in x.labels and a not in batch]
        columns = [a for a in wanted if a in y.labels and a not in batch]
        steps: list[int] = []
        flags = []
        for operand, free, is_left in ((x, rows, True), (y, columns, False)):
            plain = [*batch, *free, *depth] if is_left else [*batch, *depth, *free]
            swapped = [*batch, *depth, *free] if is_left else [*batch, *free, *depth]
            layout = swapped if operand.labels == swapped else plain
            direct = operand.labels == layout and not operand.repeats and not self.half
            flags.append(int(layout is swapped))
            steps += self.operand(operand, layout, direct)
        sizes = self.count(rows), self.count(columns), self.count(depth)
        parameters = gemm_parameters(*sizes, (flags[0], flags[1]), (), (), is_tiled(self.node))
        gemm, blocks = parameters[:5], parameters[6:8]
        count = self.count(batch)
        result = [*batch, *rows, *columns]
        return [2, *steps, 1, *gemm, count, *blocks, 1, count, 1, 1, *self.scatter(result)]

    def scatter(self, result: list[Label]) -> list[int]:
        """The last step: the dense result goes to its places in the output, unless it is the output."""
        multiplied = len(self.operands) == 2
        if multiplied and not self.half and result == list(self.output):
            return [0, 0, 0, 0, 0]
        output = _Operand.of(self.output, self.node.outputs[0].shape, self.sizes)
        to = self.reserve(result) if multiplied else 0
        return [to, 1, int(output.repeats), *output.walk(result, self.sizes)]


def _einsum(node: KernelNode) -> Native:
    shapes = [value.shape for value in node.inputs]
    equation = parse_equation(node.attrs["equation"], [len(s) for s in shapes])
    sizes = {label: size or 0 for label, size in label_sizes(equation, shapes).items()}
    plan = _Plan(node, equation, sizes)
    words = plan.words()
    node.workspace(plan.workspace + 64)  # never empty: the kernel takes it for granted
    return native(f"einsum_{str(node.outputs[0].dtype).removeprefix('u')}", *words, reasons=(BEYOND_BLAS,))


_TYPES = ("float32", "float64", "float16", "bfloat16", "int32", "int64", "complex64", "complex128")

KERNELS = [KernelDef("Einsum", "CPU", _einsum, {"T": _TYPES})]
