"""Accelerator kernels of reductions: sums, products, extremes, norms, and the indices of extremes."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from timberframe_accelerator.launches import GROUP, Source, index_name, index_type, spread
from timberframe_sdk import KernelDef, KernelNode, Launcher
from timberframe_sdk.declare import kernel
from timberframe_sdk.plans.reduction import reduction_passes

KERNELS: list[KernelDef] = []

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_NUMBERS = {"T": (*FLOATS, *INTEGERS)}

_SHORT = 32  # rows that one work-item takes by itself
_SEGMENT = 1 << 14  # elements of a segment of rows, which a group takes
_MOST_SEGMENTS = 512  # what a group takes in the pass that joins them
_FULL = 128  # groups that occupy a device, so that rows need not be cut


@dataclass(frozen=True)
class Rule:
    """What a reduction does with elements: the macros of reduce.h."""

    combine: str
    source: str
    accumulator: str
    target: str
    map: str = "same"
    finish: str = "same"


@dataclass(frozen=True)
class Element:
    """Element i of what is reduced, where it is no tensor's: see OPERANDS and ELEMENT of reduce.h."""

    operands: str
    expression: str
    before: str = ""


class Reduction:
    """A reduction along `axes`: one launch a pass, and one more where rows are cut into segments.

    scratch: bytes that calls need for partial results.
    """

    def __init__(
        self, device: Any, shape: tuple[int, ...], axes: Collection[int], rule: Rule, element: Element | None = None
    ) -> None:
        size = math.prod(shape)
        self._device, self._rule, self._element = device, rule, element
        self._index, self._index_type = index_name(4 * size), index_type(4 * size)
        self._count = np.int64(math.prod(shape[a] for a in axes))
        self._results = math.prod(d for i, d in enumerate(shape) if i not in axes)
        self._steps: list[tuple[Any, ...]] = []
        self._starts = [0]
        passes = _with_segments(device, reduction_passes(shape, axes)) if self._results else []
        for k, (outer, rows, width, segments) in enumerate(passes):
            self._add(outer, rows, width, segments, k == len(passes) - 1)
        itemsize = 8 if rule.accumulator.endswith("64") else 4
        self.scratch = itemsize * self._starts.pop()

    def _add(self, outer: int, rows: int, width: int, segments: int, last: bool) -> None:
        first, n = not self._steps, self._index_type
        results = outer * segments * width
        each, items, group, numbers = _work(self._device, outer, rows, width, segments)
        function = self._device.function(self._source(first, last, each), f"tf_{self._rule.combine}")
        sizes = [n(x) for x in numbers]
        starts = n(0 if first else self._starts[-2]), n(0 if last else self._starts[-1])
        self._steps.append((function, items, group, (*starts, self._count, *sizes)))
        self._starts.append(self._starts[-1] + (0 if last else results))

    def _source(self, first: bool, last: bool, each: bool) -> Source:
        rule = self._rule
        defines: dict[str, str | int] = {
            "INDEX": self._index,
            "FROM": rule.source if first else rule.accumulator,
            "ACCUMULATOR": rule.accumulator,
            "TO": rule.target if last else rule.accumulator,
            "COMBINE": rule.combine,
            "NAME": f"tf_{rule.combine}",
            "INITIAL": _initial(rule.combine, rule.accumulator),
            "MAP": rule.map if first else "same",
            "FINISH": rule.finish if last else "same",
        }
        if each:
            defines["EACH"] = 1
        file = Source.file("reduce.h", **defines)
        if not first or self._element is None:
            return file
        made = self._element
        text = f"{made.before}#define OPERANDS {made.operands}\n#define ELEMENT(i) {made.expression}\n"
        return Source(text + file.text, file.defines)

    def __call__(self, operands: Sequence[Any], out: Any, scratch: Any = None) -> None:
        """Enqueues the reduction of these operands into `out`."""
        read = operands
        for k, (function, items, group, scalars) in enumerate(self._steps, 1):
            written = out if k == len(self._steps) else scratch
            function(items, group, *read, written, *scalars)
            read = [scratch]


def _with_segments(device: Any, passes: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, int, int]]:
    """Returns the passes with their numbers of segments; a pass that joins them after each that is cut."""
    whole = []
    for outer, rows, width in passes:
        tile = min(width, device.limits.reduction_group_size)
        groups = outer * -(-width // tile)
        segments = min(-(-_MOST_SEGMENTS // groups), rows * tile // _SEGMENT) if groups < _FULL else 1
        if segments > 1:
            segments = -(-rows // -(-rows // segments))
            whole += [(outer, rows, width, segments), (outer, segments, width, 1)]
        else:
            whole.append((outer, rows, width, 1))
    return whole


def _work(device: Any, outer: int, rows: int, width: int, segments: int) -> tuple[bool, Any, Any, list[int]]:
    """Returns whether a work-item makes a result by itself, work-items, group size, and the
    sizes that the kernel takes.
    """
    results = outer * segments * width
    if rows <= _SHORT or (segments == 1 and width >= _SHORT and results >= _FULL * GROUP):
        return (True, *spread(results), [results, rows, width])
    segment_rows = -(-rows // segments)
    group: int = device.limits.reduction_group_size
    while group > 32 and group > segment_rows * width // 4:
        group //= 2
    tile = min(width, group)
    tiles, lanes = -(-width // tile), group // tile
    numbers = [rows, width, tiles, tile, lanes, segments, segment_rows]
    return False, (outer * segments * tiles * group,), (group,), numbers


def _initial(combine: str, accumulator: str) -> str:
    """Returns the neutral value of a way to combine, as C."""
    if combine in ("sum", "product"):
        return f"((accumulator){int(combine == 'product')})"
    if accumulator.startswith("float"):
        return f"({'-' if combine == 'maximum' else ''}TF_INFINITY{accumulator[5:]})"
    if accumulator == "bool":
        return str(int(combine == "minimum"))
    limits = np.iinfo(accumulator)
    value = int(limits.min if combine == "maximum" else limits.max)
    return f"((accumulator){value % 2**64:#x}ul)"


_COMBINE = {
    "Sum": "sum", "Mean": "sum", "EuclideanNorm": "sum", "L2Loss": "sum", "BiasAddGrad": "sum", "Prod": "product",
    "Max": "maximum", "Min": "minimum", "All": "minimum", "Any": "maximum",
}  # fmt: skip
_MAP = {"EuclideanNorm": "square", "L2Loss": "square"}


def rule(op: str, dtype: str) -> Rule:
    """Returns the rule of an op."""
    combine = _COMBINE[op]
    if dtype == "bool":
        return Rule(combine, "bool", "bool", "bool")
    wide = accumulator(op, dtype)
    mean = "mean" if "float" in dtype else "integer_mean"
    finish = {"Mean": mean, "L2Loss": "half"}.get(op, "same")
    if op == "EuclideanNorm":
        finish = f"root_{wide[0]}{wide[5:]}" if "float" in dtype else "root_integer"
    return Rule(combine, dtype, wide, dtype, _MAP.get(op, "same"), finish)


def accumulator(op: str, dtype: str) -> str:
    """Returns the dtype of partial results: float32 for 16-bit floats; sums of integers wrap, but those of means."""
    if "float" in dtype:
        return "float64" if dtype == "float64" else "float32"
    if op in ("Max", "Min"):
        return dtype
    if op == "Mean":
        return "uint64" if dtype.startswith("u") else "int64"
    return "uint64" if dtype.endswith("64") else "uint32"


def _launcher(node: KernelNode, axes: Collection[int]) -> Launcher:
    value = node.inputs[0]
    reduction = Reduction(node.device, value.shape, axes, rule(node.op, value.dtype.name))
    if reduction.scratch:
        node.workspace(reduction.scratch)
    return lambda x, out, scratch=None: reduction([x], out, scratch)


@kernel(KERNELS, ("Sum", "Mean", "Prod", "EuclideanNorm", "Max", "Min"), "", types=_NUMBERS)
@kernel(KERNELS, ("All", "Any"), "")
def reduce(node: KernelNode) -> Launcher:
    """A reduction along the axes that input 1 names."""
    rank = len(node.inputs[0].shape)
    return _launcher(node, {int(a) % rank for a in np.ravel(np.asarray(node.const(1)))})


@kernel(KERNELS, "L2Loss", "", types={"T": FLOATS})
def l2_loss(node: KernelNode) -> Launcher:
    """Half the sum of all squares."""
    return _launcher(node, range(len(node.inputs[0].shape)))


@kernel(KERNELS, "BiasAddGrad", "", types=_NUMBERS)
def bias_add_grad(node: KernelNode) -> Launcher:
    """The sum over all dimensions but that of the channels."""
    rank = len(node.inputs[0].shape)
    channels = 1 if node.attrs["data_format"] == "NCHW" else rank - 1
    return _launcher(node, [i for i in range(rank) if i != channels])


@kernel(KERNELS, ("ArgMax", "ArgMin"), "", types={"T": (*FLOATS, *INTEGERS, "bool")})
def argument(node: KernelNode) -> Launcher:
    """The index of the largest or smallest element along one axis."""
    x, index = node.inputs[0], index_type(4 * node.inputs[0].size)
    axis = int(np.asarray(node.const(1))) % len(x.shape)
    outer, rows, width = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
    if not x.size:
        return lambda x, out: None
    passes = _with_segments(node.device, [(outer, rows, width)])
    functions = [_argument_pass(node, sizes, k, len(passes)) for k, sizes in enumerate(passes)]
    if len(passes) == 1:
        return lambda x, out: functions[0](x, out)
    partial, itemsize = passes[0][3] * node.outputs[0].size, np.dtype(index).itemsize
    indices = -(-partial * x.dtype.itemsize // itemsize)  # where the indices lie in the workspace: after the elements
    node.workspace((indices + partial) * itemsize)

    def launch(x: Any, out: Any, scratch: Any) -> None:
        functions[0](x, scratch, scratch, index(indices))
        functions[1](scratch, scratch, index(indices), out)

    return launch


def _argument_pass(node: KernelNode, sizes: tuple[int, int, int, int], k: int, count: int) -> Any:
    """Pass k of an ArgMax or ArgMin, to be called with its operands and results."""
    device: Any = node.device
    x, extreme = node.inputs[0], "maximum" if node.op == "ArgMax" else "minimum"
    each, items, group, numbers = _work(device, *sizes)
    dtype = x.dtype.name
    source = Source.file(
        "argument.h", T=dtype, TO=node.outputs[0].dtype.name, INDEX=index_name(4 * x.size),
        BETTER=">" if extreme == "maximum" else "<", INITIAL=_initial(extreme, accumulator("Max", dtype)),
        **({"EACH": 1} if each else {}), **({"JOIN": 1} if k else {}), **({"PARTIAL": 1} if k < count - 1 else {}),
    )  # fmt: skip
    function = device.function(source, "tf_argument")
    scalars = [index_type(4 * x.size)(n) for n in (x.size, *numbers)]
    return lambda *arrays: function(items, group, *arrays, *scalars)
