"""Fused elementwise nodes, run block by block: the parameters that csrc/runner/blocks.c reads."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from timberframe_cpu.kernel_builder import Launch
from timberframe_cpu.native import built_isa, native
from timberframe_sdk import Cluster, KernelNode, Value, as_dtype
from timberframe_sdk.elementwise.expressions import Fold, c_source
from timberframe_sdk.elementwise.fusion import Dim, merged_dims, reduction
from timberframe_sdk.native import Native

SHORTEST_RUN = 256
"""Fewest elements of an inner dimension; below, calling the kernels costs more than memory does."""

LEAST_ELEMENTS = 8192
"""Smaller results stay in the first cache by themselves."""

_INPUT, _OUTPUT, _TEMPORARY, _PARTIAL = range(4)
_MOST_ELEMENTS, _FEWEST_ELEMENTS = 2048, 256
_CACHE_BYTES = 32 * 1024
_GRAIN_ELEMENTS = 32_768
_HEAD_WORDS = 12
_COMPILED_ELEMENTS = 65_536  # a smaller result is not worth a compiler's time

_FOLDS = {"sum": "sum", "mean": "sum", "max": "maximum", "min": "minimum", "product": "product"}
_FOLDED = ("float32", "float64", "int32", "int64")  # 16-bit floats and means of integers need wider partial results

Builder = Callable[[KernelNode], Launch]


def can_fuse(node: KernelNode, build: Builder) -> bool:
    """Returns whether a node's kernel can be run on a block at a time: native, without workspace, and never failing."""
    if node.op == "Select" and node.inputs[0].shape not in ((), node.outputs[0].shape):
        return False  # its condition may choose whole rows
    launch = build(node)
    if launch.native is None or launch.workspace_bytes or len(launch.passed) != len(node.inputs):
        return False
    return not launch.native.reasons or node.outputs[0].dtype.kind not in "iu"


def can_reduce(node: KernelNode) -> bool:
    """Returns whether a chain can end in this reduction: of trailing dimensions, and of enough elements."""
    x, dtype = node.inputs[0], node.inputs[0].dtype.name
    how = reduction(node)
    if how not in _FOLDS or dtype not in _FOLDED or (how == "mean" and dtype.startswith("int")):
        return False
    axes = _axes(node)
    wide = [i for i, d in enumerate(x.shape) if d > 1]
    reduced = [i for i in wide if i in axes]
    return wide[-len(reduced) :] == reduced and math.prod(x.shape[i] for i in reduced) >= SHORTEST_RUN


def _axes(node: KernelNode) -> set[int]:
    """Returns the dimensions that a reduction reduces."""
    rank = len(node.inputs[0].shape)
    return {int(a) % rank for a in np.ravel(np.asarray(node.const(1)))}


def _fold(node: KernelNode) -> str:
    """Returns the name of the functions that fold the elements of a block for a reduction."""
    return _FOLDS[reduction(node) or ""]


def build_blocks(node: KernelNode, build: Builder) -> Launch:
    """Returns the launch of a fused node."""
    return _Blocks(node, build).launch()


class _Blocks:
    """The members, the dimensions of the walk, and the number of each value."""

    def __init__(self, node: KernelNode, build: Builder) -> None:
        self.node = node
        self.body: Cluster = node.inner[0]
        self.build = build
        self.members = self.body.nodes
        self.reduction = self.members[-1] if reduction(self.members[-1]) else None
        self.chain = self.members[:-1] if self.reduction else self.members
        result = self.chain[-1].outputs[0] if self.reduction else node.outputs[0]
        self.elements = result.size
        shapes = [v.shape for v in node.inputs]
        if self.reduction:  # a run of elements ends where a result does
            axes = _axes(self.reduction)
            shapes.append(tuple(1 if i in axes else d for i, d in enumerate(result.shape)))
        self.dims: list[Dim] = merged_dims([*shapes, result.shape], result.shape)
        self.inner = self.dims[0][0]
        self.number: dict[int, int] = {}
        self.slots, self.scratch = _temporary_slots(self.body)
        self.size = self._block_elements()

    def _block_elements(self) -> int:
        """Returns elements of a block: what keeps all that one block touches in the first cache."""
        widest = max(v.dtype.itemsize for n in self.chain for v in (*n.inputs, *n.outputs))
        moving = sum(step != 0 for step in self.dims[0][1][: len(self.node.inputs)])
        touched = self.scratch + moving + len(self.node.outputs)
        size = _MOST_ELEMENTS
        while size > _FEWEST_ELEMENTS and size * widest * touched > _CACHE_BYTES:
            size //= 2
        return min(size, self.inner)

    def launch(self) -> Launch:
        values = self._value_words()
        outer = [size for size, _ in self.dims[1:]]
        first_step = _HEAD_WORDS + len(values) + len(outer)
        steps, parameters = self._steps(first_step)
        blocks = max(1, _GRAIN_ELEMENTS // self.size)
        joining, joined = self._joining()
        end = first_step + len(steps) + len(parameters)
        head = (
            len(self.members), len(self.number), len(outer), self.size, self.inner, self.elements, blocks,
            first_step, self._compiled(), *joining, end,
        )  # fmt: skip
        kernel = native("elementwise_blocks", *head, *values, *outer, *steps, *parameters, *joined)
        kernel = replace(kernel, owner=[self.build(n).native for n in self.members])  # whose functions it calls
        weight = sum(self.build(n).weight for n in self.chain)
        pairs = () if self.reduction else self._in_place()
        return Launch(kernel, None, pairs, tuple(range(len(self.node.inputs))), weight, self.node.workspace_bytes)

    def _joining(self) -> tuple[tuple[int, int], list[int]]:
        """Blocks of a result and the function that joins their partial results, and its parameters; zeros without.

        Asks for the workspace that holds these.
        """
        if self.reduction is None:
            return (0, 0), []
        value = self.node.outputs[0]
        count = self.elements // value.size
        blocks = count // self.inner * -(-self.inner // self.size)
        self.node.workspace(value.size * blocks * value.dtype.itemsize)
        mean = reduction(self.reduction) == "mean"
        how = "mean" if mean else _fold(self.reduction)
        joining = native(f"fold_{how}_{value.dtype.name}", *([count] if mean else []))
        return (blocks, joining.function), list(joining.parameters)

    def _compiled(self) -> int:
        """Address of the cell for the chain compiled as one function; 0 where there will be none."""
        if self.elements < _COMPILED_ELEMENTS:
            return 0
        moving = [bool(step) for step in self.dims[0][1][: len(self.node.inputs)]]
        body, fold = self.body, None
        if self.reduction:
            body = replace(body, nodes=list(self.chain), outputs=self.reduction.inputs[:1])
            fold = Fold(_fold(self.reduction), self.node.outputs[0].dtype.name, self.size)
        from timberframe_cpu.compiled import FUNCTION, sources  # here, since many programs compile nothing

        source = c_source(body, moving, FUNCTION, fold)
        return sources.cell(source, built_isa()) if source else 0

    def _value_words(self) -> list[int]:
        words: list[int] = []
        widest = max((v.dtype.itemsize for n in self.chain for v in n.outputs), default=1)
        for k, value in enumerate(self.node.inputs):
            words += self._words(value, _INPUT, k, [strides[k] for _, strides in self.dims])
        for member in self.members:
            value = member.outputs[0]
            strides = [strides[-1] for _, strides in self.dims]
            if member is self.reduction:
                words += self._words(value, _PARTIAL, 0, [0] * len(self.dims))
            elif value.id in self.slots:
                words += self._words(value, _TEMPORARY, self.slots[value.id] * self.size * widest, strides)
            else:
                words += self._words(value, _OUTPUT, _position(self.node.outputs, value), strides)
        return words

    def _words(self, value: Value, kind: int, location: int, strides: Sequence[int]) -> list[int]:
        self.number[value.id] = len(self.number)
        return [kind, location, value.dtype.itemsize, as_dtype(value.dtype).number, strides[0], *strides[1:]]

    def _steps(self, first: int) -> tuple[list[int], list[int]]:
        """Returns the steps, and after them their kernels' parameters; every position counts
        from the first word of all.
        """
        rest = self.inner % self.size or self.size
        kernels = [[self._kernel(m, count) for count in (self.size, rest)] for m in self.members]
        length = sum(5 + len(self._read(m)) for m in self.members)
        words: list[int] = []
        parameters: list[int] = []
        for member, variants in zip(self.members, kernels, strict=True):
            starts = []
            for kernel in variants:
                starts.append(first + length + len(parameters))
                parameters += kernel.parameters
            read = [self.number[v.id] for v in self._read(member)]
            words += [variants[0].function, *starts, len(read), *read, self.number[member.outputs[0].id]]
        return words, parameters

    def _read(self, member: KernelNode) -> list[Value]:
        """Returns the values that a member's kernel reads."""
        return member.inputs[:1] if member is self.reduction else member.inputs

    def _kernel(self, member: KernelNode, count: int) -> Native:
        """Returns the member's kernel for a block of `count` elements."""
        if member is self.reduction:
            return native(f"fold_{_fold(member)}_{member.outputs[0].dtype.name}")
        inputs = [self._block(v, count) for v in member.inputs]
        output = Value(member.outputs[0].id, member.outputs[0].dtype, (count,))
        made = KernelNode(member.op, member.name, member.attrs, inputs, [output], member.device, member.where)
        launch = self.build(made)
        assert launch.native is not None
        return launch.native

    def _block(self, value: Value, count: int) -> Value:
        k = next((i for i, v in enumerate(self.node.inputs) if v is value), None)
        if k is None or self.dims[0][1][k]:
            return Value(value.id, value.dtype, (count,), "input")
        if value.kind == "const" and value.size == 1:
            return Value(value.id, value.dtype, (), "const", value.constant.reshape(()))
        return Value(value.id, value.dtype, (), "input")

    def _in_place(self) -> tuple[tuple[int, int], ...]:
        """Returns the (output, input) pairs that may share memory: the input is not read
        after the output is written.
        """
        pairs = []
        for i, value in enumerate(self.node.inputs):
            readers = [s for s, m in enumerate(self.members) if any(v is value for v in m.inputs)]
            for k, output in enumerate(self.node.outputs):
                if value.shape != output.shape or value.dtype != output.dtype:
                    continue
                writer = next(s for s, m in enumerate(self.members) if m.outputs[0] is output)
                member = self.members[writer]
                own = [j for j, v in enumerate(member.inputs) if v is value]
                allowed = all((0, j) in self.build(member).inplace for j in own)
                if readers[-1] < writer or (readers[-1] == writer and len(own) == 1 and allowed):
                    pairs.append((k, i))
        return tuple(pairs)


def _position(values: Sequence[Value], value: Value) -> int:
    return next(i for i, v in enumerate(values) if v is value)


def _temporary_slots(body: Cluster) -> tuple[dict[int, int], int]:
    """Returns which slot of the scratch memory each value has that does not leave the group, and
    how many slots there are.
    """
    results = {v.id for v in body.outputs}
    last = {v.id: s for s, m in enumerate(body.nodes) for v in m.inputs}  # the axes of a reduction do not matter
    slots: dict[int, int] = {}
    free: list[int] = []
    count = 0
    for s, member in enumerate(body.nodes):
        value = member.outputs[0]
        if value.id not in results:
            if not free:
                free.append(count)
                count += 1
            slots[value.id] = free.pop()
        free += [slots[v.id] for v in {v.id: v for v in member.inputs}.values() if v.id in slots and last[v.id] == s]
    return slots, count
