"""The accelerator kernel of Einsum: copies and matrix products, as the SDK plans them for every device."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_accelerator.launches import Source, index_name, index_type, spread
from timberframe_accelerator.product import Product, add_parts, cut_depth, part_type, written_type
from timberframe_accelerator.stages import Argument, BufferView, Stages, nothing
from timberframe_sdk import KernelDef, KernelNode, Launcher
from timberframe_sdk.declare import kernel
from timberframe_sdk.plans.einsum import Copy, EinsumPlan, Walk, plan_einsum

KERNELS: list[KernelDef] = []


class _Einsum:
    """The stages of one einsum."""

    def __init__(self, node: KernelNode) -> None:
        self.stages = Stages(node)
        self.device = self.stages.device
        self.dtype = node.outputs[0].dtype
        self.part = np.dtype(part_type(self.dtype))
        self.node = node
        self.counts = [v.size for v in (*node.inputs, *node.outputs)]

    def index(self) -> Any:
        return index_type(*self.counts)

    def function(self, name: str, read: str, written: str) -> Any:
        types = {"T": read, "TZ": written, "PART": self.part.name, "INDEX": index_name(*self.counts)}
        return self.device.function(Source.file("einsum.h", **types), name)

    def walk(self, walk: Walk) -> Any:
        """Returns a walk of einsum.h, without the dimensions of one element."""
        dims = [(n, s) for n, s in zip(walk.counts, walk.strides, strict=True) if n != 1]
        words = [len(dims), *(word for dim in reversed(dims) for word in dim)]
        return self.device.table(np.array(words, self.index()))

    def copy(self, argument: int, copy: Copy) -> tuple[BufferView, np.dtype[Any]]:
        """Returns where an operand lies dense, and its dtype there: that of sums where labels of its own are summed."""
        count, terms = copy.walk.size, copy.summed.size
        if copy.direct:
            return BufferView(argument), self.dtype
        dtype = self.dtype if not copy.summed.counts else self.part
        view = self.stages.room(count, dtype.itemsize)
        parts, length = cut_depth(terms, count, 1)
        sums = self.stages.room(parts * count, self.part.itemsize) if parts > 1 else view
        written = self.part.name if parts > 1 else dtype.name
        walks, sizes = (self.walk(copy.walk), self.walk(copy.summed)), map(self.index(), (count, terms, parts, length))
        items, group = spread(count * parts if count else 0)
        function = self.function("tf_gather_sums", self.dtype.name, written)
        if count:
            self.stages.call(function, items, group, Argument(argument), sums, *walks, *sizes)
        if parts > 1:
            add_parts(self.stages, sums, view, dtype, count, parts)
        return view, dtype

    def scatter(self, source: BufferView, read: np.dtype[Any], plan: EinsumPlan) -> None:
        """Moves the dense result to its elements of the output."""
        assert plan.scatter is not None
        out, size, count = Argument(self.stages.result), self.node.outputs[0].size, plan.scatter.size
        written = written_type(self.dtype)
        if plan.diagonal:
            clear = self.function("tf_clear", read.name, written)
            self.stages.call(clear, *spread(size), out, self.index()(size))
        function = self.function("tf_scatter", read.name, written)
        self.stages.call(function, *spread(count), source, out, self.walk(plan.scatter), self.index()(count))

    def products(self, plan: EinsumPlan, operands: list[tuple[BufferView, np.dtype[Any]]]) -> BufferView:
        """Returns the products of the dense operands; returns where they lie."""
        (x, x_type), (y, y_type), p = *operands, plan.products
        assert p is not None
        swaps = p.swaps[0] and p.rows > 1, p.swaps[1] and p.columns > 1  # a vector lies the same either way
        product = Product(p.rows, p.columns, p.depth, swaps, (p.batch,), (p.batch,))
        result = BufferView(self.stages.result)
        if plan.scatter is not None:
            result = self.stages.room(plan.scatter.size, self.dtype.itemsize)
        product.add(self.stages, (x, y), result, (x_type, y_type, self.dtype))
        return result


@kernel(KERNELS, "Einsum", "", types={"T": ("float32", "float64", "float16", "bfloat16", "int32", "int64")})
def einsum(node: KernelNode) -> Launcher:
    """Sums of products over named dimensions."""
    if not node.outputs[0].size:
        return nothing
    plan, made = plan_einsum(node), _Einsum(node)
    operands = [made.copy(i, copy) for i, copy in enumerate(plan.copies)]
    dense = operands[0] if plan.products is None else (made.products(plan, operands), made.dtype)
    if plan.scatter is not None:
        made.scatter(*dense, plan)
    return made.stages.launcher()
