"""A cluster with its kernels built and its memory laid out, the bodies of its loops and branches included."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from timberframe_cpu.allocator import ALIGNMENT
from timberframe_cpu.blocks import build_blocks
from timberframe_cpu.kernel_builder import KernelBuilder, Launch
from timberframe_sdk import Cluster, KernelNode, Preparation, Value, role
from timberframe_sdk.elementwise.fusion import FUSED
from timberframe_sdk.execution.control_flow import is_control_flow
from timberframe_sdk.execution.prepared import Form, PreparedForms
from timberframe_sdk.memory import MemoryPlan, plan_memory

if TYPE_CHECKING:
    from timberframe_cpu.changing import Version

_ROW_UPDATES = frozenset({"TensorScatterUpdate"})

InplacePairs = Callable[[KernelNode], Sequence[tuple[int, int]]]


class Layout(Protocol):
    """Where tensors lie in an arena. shares: tensors may lie where others lay before, or lie at the same time."""

    @property
    def shares(self) -> bool: ...

    @property
    def begin(self) -> int:
        """Where the first tensor of an arena may begin."""

    def place(self, top: int, nbytes: int) -> tuple[int, int]:
        """Returns where a tensor begins that is placed from `top` on, and where the next one may."""

    def plan(self, cluster: Cluster, inplace: InplacePairs, alignment: int) -> MemoryPlan:
        """Places all tensors of a cluster, like the SDK's plan_memory."""


class DenseLayout:
    """As little memory as can be."""

    shares = True
    begin = 0

    def place(self, top: int, nbytes: int) -> tuple[int, int]:
        return top, top + max(1, -(-nbytes // ALIGNMENT)) * ALIGNMENT

    def plan(self, cluster: Cluster, inplace: InplacePairs, alignment: int) -> MemoryPlan:
        return plan_memory(cluster, inplace, alignment)


DENSE = DenseLayout()


@dataclass(slots=True)
class LoopVariable:
    """How a loop variable goes from one iteration to the next.

    state: the body's input. result: the body's output for it, None for a variable that never changes. written: the body
    writes the result itself; else it is copied from there. buffer: offset in the loop's workspace of its memory.
    in_place: the values, up to the result, that are `state` with some rows overwritten, and share its memory.
    """

    state: Value
    result: Value | None
    written: bool
    buffer: int = 0
    in_place: list[Value] = field(default_factory=list)


@dataclass(slots=True)
class Control:
    """A loop or branch that runs natively. bodies: (cond, body), or the branches.

    predicate, bases: offsets in the node's workspace of the condition's result, and of the bodies' arenas.
    """

    bodies: tuple[Prepared, ...]
    variables: list[LoopVariable] = field(default_factory=list)
    predicate: int = 0
    bases: tuple[int, ...] = ()


@dataclass(slots=True)
class PreparedInput:
    """An input that a kernel gets in another form (see KernelNode.prepared).

    value: what the node reads in place of `source`: a constant, whose `form` is set, or a tensor that each run
    brings. version: the version of the variable that the last run met, where that decides (see changing.py).
    """

    node: KernelNode
    given: Preparation
    source: Value
    value: Value
    form: Form | None = None
    version: Version | None = None


@dataclass(slots=True)
class Prepared:
    """launches and nodes line up; a loop or branch that is native is in `controls` and has no launch.

    forms: inputs of nodes at the top level that kernels get in another form.
    """

    cluster: Cluster
    launches: list[Launch | None]
    controls: dict[int, Control]
    layout: Layout
    plan: MemoryPlan
    forms: list[PreparedInput] = field(default_factory=list)

    @property
    def nodes(self) -> list[KernelNode]:
        return self.cluster.nodes


def prepare(cluster: Cluster, builder: KernelBuilder, layout: Layout = DENSE, native: bool = False) -> Prepared:
    """Builds all kernels and plans memory. native: whether all loops and branches are known to run inside a program."""
    launches: list[Launch | None] = []
    controls: dict[int, Control] = {}
    for i, node in enumerate(cluster.nodes):
        if node.op == FUSED:
            launches.append(build_blocks(node, builder.build))
        elif not is_control_flow(node):
            launches.append(builder.build(node))
        elif native or is_native(node, builder):
            controls[i] = _control(node, builder, layout)
            launches.append(None)
        else:
            launches.append(builder.python_control_flow(node))
    cluster, forms = _with_forms(cluster, builder.forms)
    pairs = {id(n): launch.inplace for n, launch in zip(cluster.nodes, launches, strict=True) if launch is not None}
    plan = layout.plan(cluster, lambda n: pairs.get(id(n), ()), ALIGNMENT)
    return Prepared(cluster, launches, controls, layout, plan, forms)


def _with_forms(cluster: Cluster, forms: PreparedForms) -> tuple[Cluster, list[PreparedInput]]:
    """Returns the cluster with inputs in the forms that kernels ask for."""
    if not any(node.preparations for node in cluster.nodes):
        return cluster, []
    made = (v for n in cluster.nodes for v in (*n.inputs, *n.outputs))
    number = 1 + max(v.id for v in (*cluster.inputs, *cluster.resources, *cluster.outputs, *made))
    nodes, found = [], []
    for node in cluster.nodes:
        inputs = list(node.inputs)
        for given in node.preparations:
            source = node.inputs[given.input]
            form = forms.get(node, source, given) if source.kind == "const" else None
            kind = "resource" if form is None else "const"
            value = Value(number, given.dtype, given.shape, kind, None if form is None else form.array)
            number += 1
            inputs[given.input] = value
            found.append(PreparedInput(node, given, source, value, form))
        nodes.append(replace(node, inputs=inputs) if node.preparations else node)
    return replace(cluster, nodes=nodes), found


def is_native(node: KernelNode, builder: KernelBuilder) -> bool:
    """Returns whether a loop or branch can run inside a program: fixed shapes, no strings,
    no variables in its bodies.
    """
    if any(v.dtype.hasobject for v in (*node.inputs, *node.outputs)):
        return False
    return all(_is_native_body(c, builder) for c in node.inner) and _results_fit(node)


def _is_native_body(body: Cluster, builder: KernelBuilder) -> bool:
    if body.resources or body.updates:
        return False
    for node in body.nodes:
        if any(v.dynamic or v.dtype.hasobject for v in (*node.inputs, *node.outputs)):
            return False
        if is_control_flow(node) and not is_native(node, builder):
            return False
    return True


def _results_fit(node: KernelNode) -> bool:
    bodies = node.inner[1:] if role(node.op) == "loop" else node.inner
    pairs = [(r, v) for b in bodies for r, v in zip(b.outputs, node.outputs, strict=True)]
    if role(node.op) == "loop":
        pairs += list(zip(node.inputs, node.outputs, strict=False))
    return all(a.shape == b.shape and a.dtype == b.dtype for a, b in pairs)


def _control(node: KernelNode, builder: KernelBuilder, layout: Layout) -> Control:
    control = Control(tuple(prepare(c, builder, layout, native=True) for c in node.inner))
    top = layout.begin
    if role(node.op) == "loop":
        control.predicate, top = layout.place(top, node.inner[0].outputs[0].nbytes)
        control.variables = _loop_variables(node)
        for variable in control.variables:
            if layout.shares:
                variable.in_place = _overwritten(control.bodies[1], variable)
            if variable.result is not None and not variable.in_place:
                variable.buffer, top = layout.place(top, variable.state.nbytes)
    # Condition and body, or the branches, are never at work at once, so their arenas may overlap; guards may not.
    sizes = [0 if layout.shares else p.plan.arena for p in control.bodies]
    control.bases = tuple(itertools.accumulate(sizes[:-1], initial=top))
    ends = [start + p.plan.arena for start, p in zip(control.bases, control.bodies, strict=True)]
    node.workspace_bytes = max(ALIGNMENT, *ends)
    return control


def _loop_variables(node: KernelNode) -> list[LoopVariable]:
    body = node.inner[1]
    written: set[int] = set()
    variables = []
    for state, result in zip(body.inputs, body.outputs, strict=False):
        if result is state:
            variables.append(LoopVariable(state, None, False))
            continue
        own = result.kind == "temp" and result.id not in written
        written.add(result.id)
        variables.append(LoopVariable(state, result, own))
    return variables


def _overwritten(body: Prepared, variable: LoopVariable) -> list[Value]:
    """Returns the values that lead from a loop variable's state to its result where each
    overwrites rows of the one before.

    Empty unless nothing reads a value after its rows were overwritten, so that all may be one memory.
    """
    outputs = body.cluster.outputs
    chain: list[Value] = []
    current = variable.state
    if variable.result is None or sum(v is variable.result for v in outputs) != 1:
        return []
    while current is not variable.result:
        readers = [i for i, node in enumerate(body.nodes) if any(v is current for v in node.inputs)]
        if not readers or any(v is current for v in outputs):
            return []
        last = body.nodes[readers[-1]]
        launch = body.launches[readers[-1]]
        if last.op not in _ROW_UPDATES or launch is None or (0, 0) not in launch.inplace:
            return []
        if last.inputs[0] is not current or any(v is current for v in last.inputs[1:]):
            return []
        current = last.outputs[0]
        chain.append(current)
    return chain
