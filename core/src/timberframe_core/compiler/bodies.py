"""Lowering of loops and branches whose bodies run on one device, as inner clusters of one kernel node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from timberframe_core.compiler.build import build_function
from timberframe_core.compiler.ir import FunctionProgram, Node, Output, Program, body_scope
from timberframe_core.compiler.planned_values import planned_inputs
from timberframe_core.compiler.specialise import Facts, NeedsDriverError, VariableShape, infer
from timberframe_core.compiler.state import variable_name
from timberframe_core.compiler.support import bound_node, refused
from timberframe_core.dtypes import DType
from timberframe_core.errors import InternalError, OpError
from timberframe_core.fallback import report_failure
from timberframe_core.graph.function import FuncGraph
from timberframe_core.plugin.contracts import Cluster, Device, Value
from timberframe_core.shapes import StaticShape

if TYPE_CHECKING:
    from timberframe_core.compiler.lower import Lowering
    from timberframe_core.compiler.passes.pipeline import PassReport, Pipeline


@dataclass
class _Body:
    """A body's program, and the facts that hold in it."""

    program: FunctionProgram
    facts: Facts

    @cached_property
    def reads(self) -> dict[str, _Read]:
        """The variables that it, and the bodies of loops and branches in it, read, by name."""
        found: dict[str, _Read] = {}
        for n in self.program.nodes:
            if n.op.role == "read_variable" and n.variable is not None:
                found.setdefault(n.variable, _Read(n.variable, n.attrs["dtype"], self.facts.shapes[n.outputs[0]]))
            elif n.bodies:
                found = _reads(self.facts.opened[n]) | found
        return found


@dataclass(frozen=True)
class _Read:
    """A variable that bodies read: it becomes one more input."""

    name: str
    dtype: DType
    shape: StaticShape


def lower_loop(lowering: Lowering, node: Node) -> None:
    """Adds a While as one kernel node: loop variables first, then what stays the same, then variables that are read."""
    cond, body = lowering.facts.opened[node]
    fixed = _fixed(node, body.program)
    moving = [i for i in range(len(node.inputs)) if i not in fixed]
    constant = [i for i in sorted(fixed) if node.inputs[i].dtype.name != "resource"]
    invariant = [i for i in constant if node.inputs[i] not in lowering.facts.values]
    reads = list(_reads([cond, body]).values())
    order = moving + invariant
    inputs = [lowering.value(node.inputs[i]) for i in order]
    inputs += [lowering.current(r.name, r.dtype, r.shape) for r in reads]
    inner = [
        _close(lowering, node, part, order, reads, wanted)
        for part, wanted in ((cond, cond.program.results), (body, [body.program.results[i] for i in moving]))
    ]
    outputs = []
    for i in moving:
        x = node.outputs[i]
        value = lowering.new_value(x.dtype.numpy, lowering.facts.shapes[node.inputs[i]])
        lowering.values[x] = value
        outputs.append(value)
    for i in constant:
        lowering.values[node.outputs[i]] = lowering.value(node.inputs[i])
    lowering.nodes.append(lowering.kernel_node(node, inputs, outputs, inner=inner))


def lower_branches(lowering: Lowering, node: Node) -> None:
    """Adds an If or Case as one kernel node: what chooses the branch, other inputs, then variables that are read."""
    given = node.inputs[1:]
    parts = lowering.facts.opened[node]
    order = [i for i, x in enumerate(given) if x.dtype.name != "resource" and x not in lowering.facts.values]
    reads = list(_reads(parts).values())
    inputs = [lowering.value(node.inputs[0]), *(lowering.value(given[i]) for i in order)]
    inputs += [lowering.current(r.name, r.dtype, r.shape) for r in reads]
    inner = [_close(lowering, node, p, order, reads, p.program.results) for p in parts]
    outputs = []
    for x in node.outputs:
        value = lowering.values[x] = lowering.new_value(x.dtype.numpy, lowering.facts.shapes[x])
        outputs.append(value)
    lowering.nodes.append(lowering.kernel_node(node, inputs, outputs, inner=inner))


class Bodies:
    """The bodies of a plan's loops and branches that run as parts of kernel nodes, each rewritten by the passes once.

    place: gives the nodes of a body a device. reports: what the passes did.
    """

    def __init__(self, pipeline: Pipeline, place: Callable[[Device, Program], None]) -> None:
        self.reports: list[PassReport] = []
        self._pipeline = pipeline
        self._place = place
        self._programs: dict[Any, FunctionProgram] = {}

    def program(self, function: FuncGraph, given: Sequence[Output], device: Device) -> FunctionProgram:
        """Returns the program of a body on a device, whose handles mean the variables that those among `given` mean."""
        handles = {i: variable_name(x) for i, x in enumerate(given) if x.dtype.name == "resource"}
        key = function, tuple(handles.items()), id(device)
        program = self._programs.get(key)
        if program is None:
            program = build_function(function, handles, partial(self._pipeline.rewrite_graph, reports=self.reports))
            self._pipeline.prepare(program, partial(self._place, device), self.reports, any_size=True)
            self._programs[key] = program
        return program

    def result_shapes(self, node: Node, facts: Facts, variable_shape: VariableShape) -> list[StaticShape]:
        """Returns shapes of the results of a loop or branch, found by opening its bodies, which `facts.opened` keeps.

        Where a kernel of a body declines its shapes, the executor drives the node for these: `facts.driven` says why.
        NeedsDriverError where it must do so for all: the results have no shapes before a run, or what is in a body is
        planned with values that are not known.
        """
        try:
            shapes = self._result_shapes(node, facts, variable_shape)
        except (NeedsDriverError, OpError):
            raise
        except Exception as e:
            report_failure("running loops and branches as kernels", e)
            raise NeedsDriverError(node, f"running it as a kernel failed: {type(e).__name__}: {e}") from e
        why = next(filter(None, map(_declined, facts.opened[node])), "")
        if why:
            facts.driven[node] = f"in its body, {why}"
        return shapes

    def _result_shapes(self, node: Node, facts: Facts, variable_shape: VariableShape) -> list[StaticShape]:
        if node.op.role == "loop":
            return self._loop_shapes(node, facts, variable_shape)
        given = node.inputs[1:]
        if facts.shapes[node.inputs[0]] != ():
            raise NeedsDriverError(node, "what chooses the branch is not a scalar")
        assert node.device is not None
        programs = [self.program(f, given, node.device) for f in node.bodies]
        facts.opened[node] = [self._open(facts, variable_shape, node, p, given) for p in programs]
        first, *others = ([p.facts.shapes[x] for x in p.program.results] for p in facts.opened[node])
        for other in others:
            if first != other:
                raise NeedsDriverError(node, f"the branches give shapes {first} and {other}")
        return first

    def _loop_shapes(self, node: Node, facts: Facts, variable_shape: VariableShape) -> list[StaticShape]:
        assert node.device is not None
        cond_program, program = (self.program(f, node.inputs, node.device) for f in node.bodies)
        fixed = _fixed(node, program)
        body = self._open(facts, variable_shape, node, program, node.inputs, fixed)
        cond = self._open(facts, variable_shape, node, cond_program, node.inputs, fixed)
        shapes = [facts.shapes[x] for x in node.inputs]
        for i, before in enumerate(shapes):
            after = before if i in fixed else body.facts.shapes[program.results[i]]
            if before != after:
                raise NeedsDriverError(node, f"loop variable {i} changes from shape {before} to {after}")
        for i in fixed:
            if node.inputs[i] in facts.values:  # no kernel makes it: who reads or fetches it finds it here
                facts.values[node.outputs[i]] = facts.values[node.inputs[i]]
        facts.opened[node] = [cond, body]
        return shapes

    def _open(
        self,
        outer_facts: Facts,
        variable_shape: VariableShape,
        node: Node,
        program: FunctionProgram,
        given: Sequence[Output],
        fixed: set[int] | None = None,
    ) -> _Body:
        """Returns a body's program, specialised for the shapes (and, where `fixed` allows, the
        values) of what it is given.

        fixed: positions whose constant values hold inside; None for all.
        """
        facts = Facts()
        facts.variables = dict(outer_facts.variables)
        for i, (outer, inner) in enumerate(zip(given, program.feeds, strict=True)):
            if outer.dtype.name == "resource":
                facts.shapes[inner] = ()
                continue
            facts.shapes[inner] = outer_facts.shapes[outer]
            known = outer_facts.values.get(outer)
            if known is not None and (fixed is None or i in fixed):
                facts.values[inner] = known
        _check_planned(node, program, facts)
        try:
            infer([n for n in program.nodes if not n.feed], facts, variable_shape, self.result_shapes)
        except NeedsDriverError as e:
            raise NeedsDriverError(node, str(e)) from None  # the executor must drive this one, too
        except OpError as e:  # an iteration or branch that raises may never come, or come with other shapes
            raise NeedsDriverError(node, str(e)) from None
        if any(n.host_driven or n.op.bound is not None for n in program.nodes):
            raise NeedsDriverError(node, "its body has a shape that is known only when it runs")
        return _Body(program, facts)


def _fixed(node: Node, body: FunctionProgram) -> set[int]:
    """Returns positions of the loop variables that the body of a loop does not change."""
    results, feeds = body.results, body.feeds
    return {i for i, x in enumerate(node.inputs) if x.dtype.name == "resource" or results[i] is feeds[i]}


def _declined(body: _Body) -> str:
    """Returns why a body cannot be part of a kernel node for its shapes: what a device says of a
    node in it; "" if it can.
    """
    for node, why in body.facts.driven.items():
        return f"{node.op.name} '{node.name}': {why}"
    for node in body.program.nodes:
        if node.depends:
            assert node.device is not None
            refusal = refused(node.device.supports(bound_node(node, body.facts, node.device)))
            if refusal is not None:
                return f"{node.op.name} '{node.name}': {refusal}"
    return ""


def _check_planned(node: Node, program: FunctionProgram, facts: Facts) -> None:
    """Raises NeedsDriverError where the body plans with a value that changes or must be computed."""
    known = set(facts.values)
    for n in program.nodes:
        if n.feed:
            continue
        if n.op.role == "constant":
            known.update(n.outputs)
        elif n.host_value:
            if not n.op.shape_only and not all(x in known for x in n.inputs):
                raise NeedsDriverError(node, f"'{n.name}' in its body plans with a computed value")
            known.update(n.outputs)
        if not all(x in known for x in planned_inputs(n)):
            raise NeedsDriverError(node, f"'{n.name}' in its body plans with a computed value")


def _reads(parts: Sequence[_Body]) -> dict[str, _Read]:
    """Returns the variables that bodies, and those of loops and branches in them, read, by name."""
    return {name: read for part in reversed(parts) for name, read in part.reads.items()}


def _close(
    lowering: Lowering, node: Node, part: _Body, order: list[int], reads: list[_Read], results: list[Output]
) -> Cluster:
    """Returns the body as a cluster whose inputs line up with the kernel node's."""
    scope = body_scope(lowering.scope, node, part.program.function)
    inner = type(lowering)(lowering.device, part.facts, lowering.variables, lowering.bodies, scope)
    inputs: list[Value] = []
    for i in order:
        feed = part.program.feeds[i]
        value = inner.new_value(feed.dtype.numpy, part.facts.shapes[feed], "input")
        inner.values[feed] = value
        inputs.append(value)
    for read in reads:
        value = inner.new_value(read.dtype.numpy, read.shape, "input")
        inner.set_version(read.name, value)
        inputs.append(value)
    for n in part.program.nodes:
        if not n.feed and not n.host_value:
            inner.add(n)
    if inner.inputs or inner.resources or inner.written:
        raise InternalError(f"{node.op.name} '{node.name}': its body uses what is not among its inputs", node.name)
    return Cluster(inner.device, inner.nodes, inputs, [inner.value(x) for x in results])
