"""Accelerator kernels that combine rows of updates with rows of a tensor: scattering and unsorted segments.

Updates are sorted by the rows that they go to, stably, and each element of the target then combines those of its row in
their order: the same bits at every run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from timberframe_accelerator.kernels.indexing import FIXED_SIZE, INDICES, NUMBERS, bits_name
from timberframe_accelerator.launches import Source, failing, index_name, index_type, spread
from timberframe_accelerator.moving import divisor_words
from timberframe_accelerator.sorting import IGNORE, IGNORE_NEGATIVE, REFUSE, SortedRows
from timberframe_core.ops.definition.value_checks import ROW_OUTSIDE, TUPLE_OUTSIDE
from timberframe_sdk import InvalidArgumentError, KernelDef, KernelNode, Launcher
from timberframe_sdk.declare import kernel
from timberframe_sdk.plans.indexing import (
    MODES,
    has_scalar_update,
    in_tuple_order,
    tuple_sizes,
    update_sizes,
)

KERNELS: list[KernelDef] = []

_MODES = ("add", "sub", "mul", "div", "min", "max", "last", "or", "xor")  # enum tf_mode of combining.h


def fill(device: Any, dtype: np.dtype[Any], size: int, value: Any) -> Callable[[Any], None]:
    """Returns a function that fills a tensor of `size` elements with a value."""
    bits = np.array(value).astype(dtype).reshape(1).view(bits_name(dtype))[0]
    function = device.function(Source.file("fill.h", T=bits_name(dtype), INDEX=index_name(size)), "tf_fill")
    (items, group), count = spread(size), index_type(size)(size)
    return lambda out: function(items, group, out, bits, count) if size else None


def combining(dtype: np.dtype[Any], mode: str) -> tuple[dict[str, str | int], np.int32]:
    """Macros of combining.h and the number of a mode. Replacing moves bits; sums of bools are or, differences xor."""
    if dtype.kind == "b" and mode != "last":
        return {"T": "bool", "INTEGER": 1}, np.int32(_MODES.index({"add": "or", "sub": "xor"}[mode]))
    name = bits_name(dtype) if mode == "last" else dtype.name
    kinds = {"INTEGER": "int" in name, "SIGNED": name.startswith("int"), "HALF": name in ("float16", "bfloat16")}
    return {"T": name, **{kind: 1 for kind, holds in kinds.items() if holds}}, np.int32(_MODES.index(mode))


class Scatter:
    """Combining the rows of `updates` with those of a target that holds their starting values.

    sizes: those of tuple_sizes. bounds: of the indices of a tuple. policy: of tuples.h. scalar: one update is for all
    elements. each: 16-bit floats are rounded at each step, not at the end.
    """

    def __init__(
        self, node: KernelNode, dtype: np.dtype[Any], mode: str, indices: np.dtype[Any], bounds: Sequence[int],
        sizes: Sequence[int], policy: int = REFUSE, scalar: bool = False, each: bool = False,
    ) -> None:  # fmt: skip
        count, _, inner, rows = sizes
        device: Any = node.device
        self.find = SortedRows(node, indices, count, bounds, policy, reach=max(count, rows) * inner)
        self.size, self.sort = count * inner, self.find.sort
        macros, number = combining(dtype, mode)
        self.source = Source.file("combine.h", **macros, **self.sort.macros)
        self.combine = device.function(self.source, "tf_combine")
        steps = (0, 0) if scalar else (inner, 1)
        numbers = [self.sort.index(n) for n in (count, *divisor_words(inner), rows, self.find.side, *steps)]
        self.arguments = (*numbers, number, np.int32(each))
        self.spread = spread(self.size)

    def __call__(self, indices: Any, updates: Any, target: Any, workspace: Any, status: Any) -> None:
        self.find(indices, workspace, status)
        if self.size:
            self.combine(*self.spread, workspace, updates, target, status, *self.arguments)


def _policy(node: KernelNode) -> int:
    return IGNORE if node.attrs.get("bad_indices_policy") == "IGNORE" else REFUSE


def _filled(scatter: Scatter, filling: Callable[[Any], None], first: int) -> Launcher:
    """Returns a launcher that fills the output and scatters into it; input `first` holds the
    indices, the other the updates.
    """

    def launch(a: Any, b: Any, out: Any, workspace: Any, status: Any) -> None:
        filling(out)
        scatter(*((b, a) if first else (a, b)), out, workspace, status)

    return launch


@kernel(KERNELS, "ScatterNd", "", types={"T": FIXED_SIZE, "Tindices": INDICES}, status=True)
def scatter_nd(node: KernelNode) -> Launcher:
    """Zeros with the updates added at the slices that index tuples name."""
    indices, out = node.inputs[0], node.outputs[0]
    sizes = tuple_sizes(indices.shape, out.shape)
    scatter = Scatter(node, out.dtype, "add", indices.dtype, out.shape[: sizes[1]], sizes, _policy(node))
    return failing(
        _filled(scatter, fill(node.device, out.dtype, out.size, 0), 0), (InvalidArgumentError, TUPLE_OUTSIDE)
    )


@kernel(
    KERNELS, [f"UnsortedSegment{kind}" for kind in ("Sum", "Prod", "Min", "Max")], "",
    types={"T": NUMBERS}, status=True,
)  # fmt: skip
def unsorted_segments(node: KernelNode) -> Launcher:
    """Reductions of the rows that have the same id; rows with a negative one are left out."""
    from timberframe_ops.math.segments import start
    from timberframe_ops.math.unsorted_segments import SEGMENT_OUTSIDE

    ids, out = node.inputs[1], node.outputs[0]
    kind = node.op.removeprefix("UnsortedSegment")
    sizes = tuple_sizes((*ids.shape, 1), out.shape)
    scatter = Scatter(node, out.dtype, MODES[kind], ids.dtype, out.shape[:1], sizes, IGNORE_NEGATIVE)
    filling = fill(node.device, out.dtype, out.size, start(kind, out.dtype))
    words = in_tuple_order(SEGMENT_OUTSIDE)
    return failing(_filled(scatter, filling, 1), (InvalidArgumentError, words))


def _updating(node: KernelNode, scatter: Scatter, check: Callable[[Any, Any], None] | None = None) -> Launcher:
    """Returns a launcher that combines updates with a tensor, or with a copy of it where it must stay."""
    device: Any = node.device

    def launch(tensor: Any, indices: Any, updates: Any, out: Any, workspace: Any, status: Any) -> None:
        if check is not None:
            check(updates, status)
        if not out.begins_where(tensor):
            device.copy(tensor, out)
        scatter(indices, updates, out, workspace, status)

    return launch


@kernel(
    KERNELS, [f"TensorScatter{kind}" for kind in ("Add", "Sub", "Min", "Max")], "",
    types={"T": NUMBERS, "Tindices": INDICES}, status=True, inplace=((0, 0),),
)  # fmt: skip
@kernel(
    KERNELS, ["TensorScatterUpdate", "ScatterNdNonAliasingAdd"], "",
    types={"T": FIXED_SIZE, "Tindices": INDICES}, status=True, inplace=((0, 0),),
)  # fmt: skip
def tensor_scatter(node: KernelNode) -> Launcher:
    """A tensor whose slices that index tuples name are combined with updates."""
    indices, out = node.inputs[1], node.outputs[0]
    kind = node.op.removeprefix("Tensor").removeprefix("Scatter")
    sizes = tuple_sizes(indices.shape, out.shape)
    mode, bounds = MODES.get(kind, "last"), out.shape[: sizes[1]]
    scatter = Scatter(node, out.dtype, mode, indices.dtype, bounds, sizes, _policy(node))
    return failing(_updating(node, scatter), (InvalidArgumentError, TUPLE_OUTSIDE))


@kernel(
    KERNELS, [f"ResourceScatter{kind}" for kind in ("Add", "Sub", "Mul", "Div", "Min", "Max")], "",
    types={"dtype": NUMBERS, "Tindices": INDICES}, status=True, inplace=((0, 0),),
)  # fmt: skip
@kernel(
    KERNELS, "ResourceScatterUpdate", "",
    types={"dtype": FIXED_SIZE, "Tindices": INDICES}, status=True, inplace=((0, 0),),
)  # fmt: skip
@kernel(
    KERNELS, [f"ResourceScatterNd{kind}" for kind in ("Add", "Sub", "Update")], "",
    types={"T": FIXED_SIZE, "Tindices": INDICES}, status=True, inplace=((0, 0),),
)  # fmt: skip
@kernel(
    KERNELS, ["ResourceScatterNdMin", "ResourceScatterNdMax"], "",
    types={"T": NUMBERS, "Tindices": INDICES}, status=True, inplace=((0, 0),),
)  # fmt: skip
def resource_scatter(node: KernelNode) -> Launcher:
    """Rows or slices of a variable changed by updates, one after the other."""
    from timberframe_ops.state.resource_scatter import ZERO_UPDATE

    variable, indices, updates = node.inputs
    kind = node.op.removeprefix("ResourceScatter").removeprefix("Nd")
    sizes, mode = update_sizes(node), MODES.get(kind, "last")
    scalar = has_scalar_update(node)
    scatter = Scatter(
        node, variable.dtype, mode, indices.dtype, variable.shape[: sizes[1]], sizes, _policy(node), scalar, each=True
    )
    check = _divisor_check(node, scatter, updates.size) if mode == "div" and variable.dtype.kind in "iu" else None
    words = TUPLE_OUTSIDE if "Nd" in node.op else in_tuple_order(ROW_OUTSIDE)
    reasons = (InvalidArgumentError, words), (InvalidArgumentError, ZERO_UPDATE)
    return failing(_updating(node, scatter, check), *reasons)


def _divisor_check(node: KernelNode, scatter: Scatter, size: int) -> Callable[[Any, Any], None]:
    """Returns a function that reports divisors of zero."""
    device: Any = node.device
    function, (items, group) = device.function(scatter.source, "tf_check_divisors"), spread(size)
    arguments = node.number, scatter.sort.index(size)
    return lambda updates, status: function(items, group, updates, status, *arguments) if size else None
