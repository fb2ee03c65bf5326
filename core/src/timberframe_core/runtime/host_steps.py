"""Nodes that the executor carries out by host ops: what is prepared once for each, and one call."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_core.compiler.ir import ARRAYS, Node, Output, body_scope
from timberframe_core.compiler.plan import Located
from timberframe_core.compiler.specialise import located as at_its_line
from timberframe_core.compiler.stages import has_static_shapes
from timberframe_core.compiler.state import uninitialized, variable_name
from timberframe_core.dtypes import resource, variant
from timberframe_core.errors import (
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    OpError,
    UnimplementedError,
)
from timberframe_core.failures import class_for, raised
from timberframe_core.ops.definition.opdef import evaluate
from timberframe_core.plugin.host_ops import HostCall, HostOp, RunFunction, find_host_op
from timberframe_core.runtime import host_ops as host_ops  # registers the core's own
from timberframe_core.runtime.functions import HostFunction
from timberframe_core.runtime.host_calls import RunCall
from timberframe_core.runtime.limited import carry_out
from timberframe_core.runtime.shared_resources import Elsewhere, write_node
from timberframe_core.shapes import Shape, format_shape

if TYPE_CHECKING:
    from timberframe_core.runtime.executor import Run

_HANDLE: Located = (np.empty((), object), None)
"""Stands for a handle, which is the first output where there is one: what it means is known from planning."""

_HOST, _LOCATED, _AS_IT_IS = range(3)
"""How an input is handed over: as an array of the host, as (array, device), or as it is where its dtype is variant."""


class HostStep:
    """A node with its host op. handles: keys of the resources that its handles mean; made: of the one that it makes."""

    __slots__ = (
        "_count", "_inputs", "_quick", "_run", "_shapes", "_shared", "_work", "device", "handles", "made", "node",
    )  # fmt: skip

    def __init__(self, node: Node) -> None:
        assert node.device is not None
        self.node = node
        self.device = node.device
        op = host_op_of(node)
        self._run = op.run
        self._shared = op if op.shared else None
        self._work = b""
        self._quick = node.on_lists or node.op.role in ARRAYS
        self._count = len(node.outputs)
        self._shapes = [x.static_shape for x in node.outputs] if has_static_shapes(node) else []
        self.handles = [variable_name(x) for x in node.inputs if x.dtype is resource]
        self.made = next((variable_name(x) for x in node.outputs if x.dtype is resource), "")
        located = op.located_inputs(node.op, node.attrs)
        self._inputs = [(x, _manner(x, i in located)) for i, x in enumerate(node.inputs) if x.dtype is not resource]

    def uninitialized(self, index: int) -> FailedPreconditionError:
        """See `HostCall.uninitialized`."""
        handles = [x for x in self.node.inputs if x.dtype is resource]
        return uninitialized(self.node, handles[index])

    def function(self, index: int, handles: Mapping[int, str], run: Run) -> HostFunction:
        """See `HostCall.function`."""
        function = self.node.functions[index]
        return HostFunction(run, function, handles, body_scope(run.plan.scope, self.node, function))

    def call(self, run: Run) -> Sequence[Located]:
        """Carries the node out as part of a run and returns its outputs."""
        node = self.node
        try:
            made = self._elsewhere(run)
            if made is None:
                call = RunCall(self, self._here(run), run)
                made = self._run(call) if self._quick else carry_out(partial(self._run, call), run.context.cancel)
            if not isinstance(made, (list, tuple)) or len(made) + (self.made != "") != self._count:
                raise self._wrong_outputs(made)
            if self.made:
                made = [_HANDLE, *made]
            for x in made:
                if type(x) is not tuple:
                    made = [_checked(i, x, node) for i, x in enumerate(made)]
                    break
            if self._shapes:
                _check_shapes(made, self._shapes)
            return made
        except OpError as e:
            if e.node is not None:
                raise
            raise type(e)(f"{node.op.name} '{node.name}': {e.message}", node.name) from e.__cause__
        except MemoryError:
            raise  # the executor words it
        except Exception as e:
            raise class_for(e)(f"{node.op.name} '{node.name}': {raised(e)}", node.name) from e

    def _elsewhere(self, run: Run) -> Sequence[Any] | None:
        """Returns the outputs where the resource is in another process; None where it is in this one."""
        if self._shared is None:
            return None
        store, node = run.runtime.resources, self.node
        if self.made:
            if not node.attrs.get("shared_name"):
                return None
            home: Any = Elsewhere(self.device, node.attrs["container"])
        else:
            home = store.find(self.handles[0])
            if not isinstance(home, Elsewhere):
                return None
        if self.made and self._work:
            return []  # it was made, and its process has not ended: else the session had
        work = self._work or write_node(node, self._shared, self.handles, self.made, home.container)
        known = run.level.facts.values
        inputs = [(known[x], None) if x in known else run.found[x] for x, _ in self._inputs]
        outputs: Sequence[Any] | None = home.device.host_call(work, inputs, run.context.cancel)
        if outputs is None:
            self._shared = None  # the device keeps none, now and later
            return None
        self._work = work
        if self.made:
            store.put(self.made, home)
        return outputs

    def _here(self, run: Run) -> list[Any]:
        """Returns the inputs, as the host op takes them."""
        known, found, inputs = run.level.facts.values, run.found, []
        waits = run.context.late is not None
        for x, manner in self._inputs:
            value: Any = known.get(x)
            if value is None:
                located = found[x]
                if manner == _LOCATED:
                    value = located
                elif located[1] is None or manner == _AS_IT_IS:
                    value = located[0]
                elif waits or located[1].asynchronous:
                    value = run.on_host(x)
                else:
                    value = located[1].copy_out(located[0])
            elif manner == _LOCATED:
                value = value, None
            inputs.append(value)
        return inputs

    def _wrong_outputs(self, made: Any) -> InternalError:
        """Returns the error of a function that returned something else than a list of the outputs."""
        count = self._count - (self.made != "")
        given = f"{len(made)} outputs" if isinstance(made, (list, tuple)) else _described(made)
        return InternalError(
            f"host op {host_op_of(self.node).origin()} gave {given}; a list of {count} outputs is required"
            f"{', without the handle that it makes' if self.made else ''}"
        )


def _described(value: Any) -> str:
    """Returns what a function returned, in a few words."""
    return "None" if value is None else f"{type(value).__name__} {value!r:.40}"


def _checked(i: int, value: Any, node: Node) -> Located:
    """Returns an output with its device; one on the host must have the output's dtype."""
    if type(value) is tuple:
        return value
    array, dtype = np.asarray(value), node.outputs[i].dtype
    if array.dtype != dtype.numpy:
        raise InternalError(
            f"host op {host_op_of(node).origin()} gave output {i} as {array.dtype}; {dtype.name} is required"
        )
    return array, None


def _check_shapes(made: Sequence[Located], shapes: Sequence[Shape]) -> None:
    """Raises InvalidArgumentError where an output has not the shape for which the rest of the run was planned."""
    for i, ((array, _), shape) in enumerate(zip(made, shapes, strict=True)):
        if tuple(array.shape) != shape:
            found = format_shape(tuple(array.shape))
            raise InvalidArgumentError(f"output {i} has shape {found}; the graph says {format_shape(shape)}")


def _manner(x: Output, located: bool) -> int:
    return _LOCATED if located else _AS_IT_IS if x.dtype is variant else _HOST


def host_op_of(node: Node) -> HostOp:
    """Returns how a node is carried out: as registered, by its reference, or not at all where it
    only passes its inputs on.
    """
    if node.on_lists and node.op.passes_through:
        return HostOp(node.op.name, _pass_on, tuple(a.name for a in node.op.inputs))
    found = find_host_op(node.op.name)
    if found is not None:
        return found
    if node.op.on_host and node.op.reference is not None:
        return HostOp(node.op.name, _reference(node))
    raise UnimplementedError(
        f"{node.op.name} '{node.name}': no host op is registered for {node.op.name}; "
        "import the package that has it, or register one with timberframe_sdk.host_op",
        node.name,
    )


def check_host_ops(nodes: Sequence[Node], plugins: Collection[str]) -> None:
    """Raises UnimplementedError for a node that is to be carried out on the host, which none of these plugins can."""
    for node in nodes:
        if (node.on_lists or node.op.on_host) and not node.feed and not node.host_value:
            try:
                found = host_op_of(node)
                if found.plugin and found.plugin not in plugins:
                    raise UnimplementedError(
                        f"{node.op.name} '{node.name}': its host op is of plugin '{found.plugin}', which this session "
                        "leaves out; allow it in SessionConfig.plugins",
                        node.name,
                    )
            except UnimplementedError as e:
                raise at_its_line(e, node) from None


def _pass_on(call: HostCall) -> Sequence[Located]:
    return call.inputs


def _reference(node: Node) -> RunFunction:
    reference = node.op.reference
    assert reference is not None
    count = len(node.outputs)

    def run(call: HostCall) -> list[Located]:
        return [(x, None) for x in evaluate(node.op, call.attrs, call.inputs)[:count]]

    run.__module__, run.__qualname__ = reference.__module__, getattr(reference, "__qualname__", "reference")
    return run
