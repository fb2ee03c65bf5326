"""Accelerator kernels of running sums, products and logsumexps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from timberframe_accelerator.kernels.reduction import FLOATS, INTEGERS, accumulator
from timberframe_accelerator.launches import GROUP, Source, index_name, index_type, spread
from timberframe_sdk import KernelDef, KernelNode, Launcher
from timberframe_sdk.declare import kernel

KERNELS: list[KernelDef] = []

_SHORT = 32  # elements of a line that a work-item takes by itself, though its neighbours' elements lie elsewhere
_TILE = 8 * GROUP  # TILE of scan.h
_GROUP_SEGMENT, _FULL_GROUPS = 8 * _TILE, 128  # the same as of reductions
_ITEM_SEGMENT, _FULL_ITEMS = 256, 4096


class _Scan:
    """The sources of one op and dtype, and the launches that lines of one shape take."""

    def __init__(self, node: KernelNode, combine: str) -> None:
        dtype = node.attrs["T"].name
        shape = node.inputs[0].shape
        axis = int(np.asarray(node.const(1))) % len(shape)
        self.outer, self.length, self.width = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
        self.device: Any = node.device
        self.dtype = f"u{dtype}" if dtype.startswith("int") else dtype  # wrapping arithmetic is the same
        self.partial = accumulator("Sum", dtype)
        self.index: Any = index_type(node.inputs[0].size, self.length + _TILE)
        self.defines: dict[str, str | int] = {
            "INDEX": index_name(node.inputs[0].size, self.length + _TILE), "ACCUMULATOR": self.partial,
            "COMBINE": combine,
            "INITIAL": {"sum": "0", "product": "1"}.get(combine, "(-TF_INFINITY32)"),
        }  # fmt: skip
        if combine == "logsumexp":
            self.defines["PRECISION"] = 64 if dtype == "float64" else 32
        self.by_groups = self.width == 1 and self.length > _SHORT
        self.segment, self.segments = self._cut()

    def _cut(self) -> tuple[int, int]:
        """Returns elements of a segment and their number in a line."""
        unit, full = (_GROUP_SEGMENT, _FULL_GROUPS) if self.by_groups else (_ITEM_SEGMENT, _FULL_ITEMS)
        lines = self.outer * self.width
        segments = max(1, min(-(-full // lines), self.length // unit)) if lines < full else 1
        segment = -(-self.length // (segments * _TILE)) * _TILE if self.by_groups else -(-self.length // segments)
        return segment, -(-self.length // segment)

    def launch(self, exclusive: bool, reverse: bool, *flags: str) -> Launcher:
        """Returns the launch over the segments of all lines, to be called with its tensors."""
        defines = self.defines | {"T": self.dtype} | dict.fromkeys(flags, 1)
        cut = self.segments, self.segment
        if self.by_groups:
            groups = self.outer * self.segments
            return self._call(defines, ((groups * GROUP,), (GROUP,)), (self.length, *cut), exclusive, reverse)
        size = self.outer * self.segments * self.width
        return self._call(
            defines | {"EACH": 1}, spread(size), (size, self.length, self.width, *cut), exclusive, reverse
        )

    def launch_totals(self) -> Launcher:
        """Returns the launch that turns the segments' totals into what comes before each."""
        sizes = self.outer * self.width, self.segments, self.width, 1, self.segments
        return self._call(self.defines | {"T": self.partial, "EACH": 1}, spread(sizes[0]), sizes, True, False)

    def _call(self, defines: dict[str, str | int], work: Any, sizes: Any, exclusive: bool, reverse: bool) -> Launcher:
        function = self.device.function(Source.file("scan.h", **defines), "tf_scan")
        scalars = *(self.index(n) for n in sizes), np.int32(exclusive), np.int32(reverse)
        return lambda *arrays: function(*work, *arrays, *scalars)


_COMBINE = {"Cumsum": "sum", "Cumprod": "product", "CumulativeLogsumexp": "logsumexp"}


@kernel(KERNELS, ("Cumsum", "Cumprod"), "", types={"T": (*FLOATS, *INTEGERS)}, inplace=((0, 0),))
@kernel(KERNELS, "CumulativeLogsumexp", "", types={"T": FLOATS}, inplace=((0, 0),))
def scan(node: KernelNode) -> Launcher:
    """Running values along one axis; lines that are too few are cut into segments, whose totals come first."""
    if not node.outputs[0].size:
        return lambda x, out: None
    made = _Scan(node, _COMBINE[node.op])
    exclusive, reverse = node.attrs["exclusive"], node.attrs["reverse"]
    if made.segments == 1:
        return made.launch(exclusive, reverse)
    itemsize = 8 if made.partial.endswith("64") else 4
    node.workspace(made.outer * made.segments * made.width * itemsize)
    totals, carries = made.launch(False, reverse, "TOTALS"), made.launch_totals()
    final = made.launch(exclusive, reverse, "CARRIED")

    def launch(x: Any, out: Any, work: Any) -> None:
        totals(x, work)
        carries(work, work)
        final(x, work, out)

    return launch
