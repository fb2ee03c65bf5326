"""Lowering: turns a stage whose shapes are known into the Cluster that a device compiles.

Variables become versions here: a read is the current version, an assign makes the next one, and the last one of each
variable is committed when the cluster has run. Updates are put last, so that one may work in place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from timberframe_core.compiler.bodies import Bodies, lower_branches, lower_loop
from timberframe_core.compiler.ir import BRANCHES, Node, Output, written_inputs
from timberframe_core.compiler.specialise import Facts
from timberframe_core.compiler.stages import Stage
from timberframe_core.compiler.state import variable_name
from timberframe_core.dtypes import DType
from timberframe_core.plugin.contracts import Cluster, Device, KernelNode, RandomStream, Update, Value, Variable
from timberframe_core.shapes import StaticShape

_NOTHING_TO_RUN = frozenset({"constant", "variable", "no_op"})


@dataclass
class Lowered:
    """A cluster, and what its inputs and outputs are in the program."""

    cluster: Cluster
    inputs: list[Output]
    outputs: list[Output]


class Variables(Protocol):
    """Where lowering finds the Session's variables."""

    def get(self, name: str, device: Device, dtype: DType) -> Variable:
        """Returns the variable of this name, made on this device if it is new."""

    def shape(self, name: str) -> StaticShape | None:
        """Returns the shape of the variable's value, None while it has none."""

    def device(self, name: str) -> Device | None:
        """Returns where the variable lives, None while it does not exist."""

    def destroy(self, name: str) -> bool:
        """Drops the variable's value; False if it had none."""

    def stream(self, op: str, name: str, seeded: bool) -> RandomStream:
        """Returns the random numbers of the node of this name; an error where a seed is missing that is needed."""


class Lowering:
    """Builds one cluster; loops and branches use it for their bodies.

    scope: which body it is, by `body_scope`; random streams are named by it and the node. "" outside of bodies.
    """

    def __init__(self, device: Device, facts: Facts, variables: Variables, bodies: Bodies, scope: str = "") -> None:
        self.device = device
        self.facts = facts
        self.variables = variables
        self.bodies = bodies
        self.scope = scope
        self.nodes: list[KernelNode] = []
        self.values: dict[Output, Value] = {}
        self.inputs: dict[Output, Value] = {}
        self.resources: dict[str, Value] = {}
        self.versions: dict[str, Value] = {}
        self._made_versions: set[int] = set()
        """The ids of all values that were put into `versions`: each belongs to one variable."""
        self.deferred: dict[str, KernelNode] = {}
        self.written: dict[str, Variable] = {}
        self._next = 0

    # Values

    def new_value(self, dtype: np.dtype, shape: StaticShape, kind: str = "temp", constant: object = None) -> Value:
        value = Value(self._next, dtype, shape, kind, constant)
        self._next += 1
        return value

    def value(self, x: Output) -> Value:
        """Returns the cluster's value for an output of any node; what is made elsewhere
        becomes an input or a constant.
        """
        found = self.values.get(x)
        if found is not None:
            return found
        known = self.facts.values.get(x)
        dtype = x.dtype.numpy
        if known is not None:
            made = self.new_value(dtype, tuple(known.shape), "const", known)
        else:
            made = self.new_value(dtype, self.facts.shapes[x], "input")
            self.inputs[x] = made
        self.values[x] = made
        return made

    def current(self, name: str, dtype: DType, shape: StaticShape) -> Value:
        """Returns the version of a variable that a reader, who knows its shape, sees at this point."""
        self._run_deferred_update(name)  # somebody reads the new value: the update cannot wait until the end
        version = self.versions.get(name)
        if version is None:
            variable = self.variables.get(name, self.device, dtype)
            version = self.new_value(dtype.numpy, shape, "resource", variable)
            self.resources[name] = version
            self.set_version(name, version)
        return version

    def set_version(self, name: str, value: Value) -> None:
        """Makes a value what readers of a variable see from here on."""
        self.versions[name] = value
        self._made_versions.add(value.id)

    def _run_deferred_update(self, name: str) -> None:
        """Runs the update of a variable here, if there is one that waits."""
        waiting = self.deferred.pop(name, None)
        if waiting is not None:
            if len(waiting.outputs) > 1:  # it makes new versions of several variables
                self.deferred = {k: n for k, n in self.deferred.items() if n is not waiting}
            self.nodes.append(waiting)

    # Nodes

    def add(self, node: Node) -> None:
        """Lowers one node."""
        role = node.op.role
        if role in _NOTHING_TO_RUN:
            return
        if role == "read_variable":
            x = node.outputs[0]
            self.values[x] = self.current(node.variable or "", node.attrs["dtype"], self.facts.shapes[x])
        elif role == "assign_variable":
            self._assign(node, node.op.update_op)
        elif node.op.updates or node.op.reads:
            self._access(node)
        elif role == "loop":
            lower_loop(self, node)
        elif role in BRANCHES:
            lower_branches(self, node)
        else:
            inputs = [self.value(x) for x in node.inputs]
            self.nodes.append(self.kernel_node(node, inputs, self.make_outputs(node)))

    def make_outputs(self, node: Node) -> list[Value]:
        """New values for what a node makes."""
        outputs = []
        for x in node.outputs:
            bound = self.facts.bounds.get(x)
            value = self.new_value(x.dtype.numpy, self.facts.shapes[x] if bound is None else bound)
            value.dynamic = bound is not None
            self.values[x] = value
            outputs.append(value)
        return outputs

    def kernel_node(
        self,
        node: Node,
        inputs: list[Value],
        outputs: list[Value],
        op: str | None = None,
        inner: Sequence[Cluster] = (),
    ) -> KernelNode:
        made = KernelNode(
            op or node.op.name, node.name, node.attrs, inputs, outputs, self.device, node.where, tuple(inner)
        )
        if node.op.stream is not None:
            seeded = any(node.attrs.get(name) for name in ("seed", "seed2"))
            made.stream = self.variables.stream(made.op, self.scope + node.name, seeded)
        return made

    def _assign(self, node: Node, op: str) -> None:
        name, dtype = node.variable or "", node.attrs["dtype"]
        self.written[name] = self.variables.get(name, self.device, dtype)
        value = self.value(node.inputs[1])
        if op:
            old = self.current(name, dtype, self.facts.shapes[node.inputs[1]])
            new = self.new_value(old.dtype, old.shape)
            made = self.kernel_node(node, [old, value], [new], op)
            made.attrs = {"T": dtype}
            self.deferred[name] = made
        else:
            self._run_deferred_update(name)
            new = value
            if value.kind != "temp" or value.id in self._made_versions:
                new = self.new_value(value.dtype, value.shape)
                copy = self.kernel_node(node, [value], [new], "Identity")
                copy.attrs = {"T": dtype}
                self.nodes.append(copy)
        self.set_version(name, new)

    def _access(self, node: Node) -> None:
        """Adds a node whose kernel reads variables, and makes new versions of some."""
        attrs = node.attrs
        dtype = attrs["dtype"] if "dtype" in attrs else attrs["T"]
        inputs = [
            self.current(variable_name(x), dtype, self._variable_shape(x))
            if x.dtype.name == "resource"
            else self.value(x)
            for x in node.inputs
        ]
        versions = []
        for i in written_inputs(node.op, attrs):
            name = variable_name(node.inputs[i])
            self.written[name] = self.variables.get(name, self.device, dtype)
            self.set_version(name, self.new_value(inputs[i].dtype, inputs[i].shape))
            versions.append(name)
        outputs = [*(self.versions[name] for name in versions), *self.make_outputs(node)]
        made = self.kernel_node(node, inputs, outputs)
        if versions and not node.outputs:
            self.deferred.update(dict.fromkeys(versions, made))
        else:
            self.nodes.append(made)

    def _variable_shape(self, handle: Output) -> StaticShape:
        """Returns the shape of a handle's variable, as the node that is being lowered sees it."""
        name = variable_name(handle)
        known = self.facts.variables.get(name, self.variables.shape(name))
        shape: StaticShape = handle.node.attrs["shape"] if known is None else known
        return shape

    def finish(self, outputs: Iterable[Output]) -> Lowered:
        """Returns the cluster, with the updates at its end."""
        wanted = [x for x in outputs if x in self.values and self.values[x].kind != "const"]
        results = [self.values[x] for x in wanted]
        waiting = {id(n): n for n in self.deferred.values()}
        kept = {v.id for v in results}
        may_overwrite = _overwritten(list(waiting.values()))
        self.nodes.extend(waiting.values())
        updates = [self._update(name, variable, kept, may_overwrite) for name, variable in self.written.items()]
        cluster = Cluster(
            self.device,
            self.nodes,
            list(self.inputs.values()),
            results,
            list(self.resources.values()),
            updates,
        )
        return Lowered(cluster, list(self.inputs), wanted)

    def _update(self, name: str, variable: Variable, kept: set[int], may_overwrite: set[tuple[int, int]]) -> Update:
        """Returns the update of a variable. kept: the values that are results, which stay as they are."""
        old, new = self.resources.get(name), self.versions[name]
        if old is not None:
            old.replaced = True
        in_place = old is not None and old.id not in kept and (old.id, new.id) in may_overwrite
        return Update(variable, old, new, in_place)


def _overwritten(last: Sequence[KernelNode]) -> set[tuple[int, int]]:
    """Returns the pairs of values of which a node may write the second over the first: no later node reads that, and
    the node itself reads it once. last: the nodes at the end of a cluster, in order."""
    last_reader = {x.id: i for i, node in enumerate(last) for x in node.inputs}
    found: set[tuple[int, int]] = set()
    for i, node in enumerate(last):
        for old, times in Counter(x.id for x in node.inputs).items():
            if times == 1 and last_reader[old] == i:
                found.update((old, new.id) for new in node.outputs)
    return found


def lower_stage(stage: Stage, facts: Facts, variables: Variables, bodies: Bodies, scope: str = "") -> Lowered:
    """Returns the cluster of a stage of the program in `scope`."""
    lowering = Lowering(stage.device, facts, variables, bodies, scope)
    for node in stage.nodes:
        lowering.add(node)
    return lowering.finish(stage.outputs)
