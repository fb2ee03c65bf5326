"""Rewriter: what passes see of a program or cluster, and how they change it.

A pass records what it wants; the changes are made together when it has returned. The nodes themselves are not changed
by a pass, so that one that fails in the middle changes nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from timberframe_core.compiler.ir import Node, Output, Program
from timberframe_core.dtypes import as_dtype
from timberframe_core.errors import InternalError, InvalidArgumentError
from timberframe_core.graph.inference import output_dtypes, run_shape_function
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import InferenceContext
from timberframe_core.plugin.contracts import Cluster, Device, KernelNode, Value
from timberframe_core.shapes import compatible, format_shape, is_static


class _AnyNode(Protocol):
    name: str

    @property
    def inputs(self) -> list[Any]: ...

    @property
    def outputs(self) -> list[Any]: ...


N = TypeVar("N", bound=_AnyNode)
V = TypeVar("V")


class Rewriter(Generic[N, V]):
    """Nodes in topological order, and the changes that a pass records.

    nodes: as they are before the pass, which reads them only. Inputs, readers and results are given as they will be
    with what was recorded so far.
    """

    def __init__(self, nodes: Sequence[N], results: Iterable[V]) -> None:
        self.nodes: Sequence[N] = nodes
        self.rewritten: list[str] = []
        """Names of the nodes that were erased or substituted."""
        self.declined: list[tuple[str, str]] = []
        """Names of nodes that could have been rewritten, with the reason why they were not."""
        self._results = set(results)
        self._replaced: dict[V, V] = {}
        self._stand_ins: dict[V, list[V]] = {}
        self._readers: dict[V, list[N]] | None = None
        self._erased: set[int] = set()
        self._inserted: list[tuple[N, int]] = []  # with the identity of the node that it stands before

    # Looking

    def inputs(self, node: N) -> list[V]:
        """Returns what a node reads: a list that must not be changed."""
        replaced = self._replaced
        return [replaced.get(x, x) for x in node.inputs] if replaced else node.inputs

    def readers(self, value: V) -> Sequence[N]:
        """Returns the nodes that read a value, each once."""
        if self._readers is None:
            self._readers = {}
            for node in (*self.nodes, *(n for n, _ in self._inserted)):
                if id(node) not in self._erased:
                    self._read(node)
        return self._readers.get(value, ())

    def is_result(self, value: V) -> bool:
        """Returns whether a value is fetched, leaves the cluster, or is a variable's new version."""
        return value in self._results

    # Changing

    def replace(self, old: V, new: V) -> None:
        """Lets what reads or fetches `old` have `new`; InternalError where that has another dtype or shape."""
        self._check_alike(old, new)
        new = self._replaced.get(new, new)
        if old is new:
            return
        stand_ins = self._stand_ins.setdefault(new, [])
        for x in self._stand_ins.pop(old, ()):
            self._replaced[x] = new
            stand_ins.append(x)
        self._replaced[old] = new
        stand_ins.append(old)
        if self._readers is not None:
            own = self._readers.setdefault(new, [])
            own.extend(n for n in self._readers.pop(old, ()) if n not in own)
        if old in self._results:
            self._results.add(new)

    def erase(self, node: N) -> None:
        """Leaves a node out. Nobody may read its outputs any more when the pass ends."""
        self._erased.add(id(node))
        self.rewritten.append(node.name)
        if self._readers is not None:
            for x in self.inputs(node):
                self._readers[x] = [n for n in self._readers.get(x, ()) if n is not node]

    def insert(self, made: N, before: N) -> None:
        """Adds a node that stands before another one."""
        self._inserted.append((made, id(before)))
        if self._readers is not None:
            self._read(made)

    def substitute(self, nodes: Sequence[N], made: N) -> None:
        """Puts one node in place of several: the values that it makes may be outputs of theirs."""
        for node in nodes:
            self.erase(node)
        self.insert(made, nodes[-1])

    def decline(self, node: N, why: str) -> None:
        """Says why a node stays as it is, for `Session.explain`."""
        self.declined.append((node.name, why))

    def _read(self, node: N) -> None:
        assert self._readers is not None
        for x in dict.fromkeys(self.inputs(node)):
            self._readers.setdefault(x, []).append(node)

    # Committing

    @property
    def changed(self) -> bool:
        """Whether anything was recorded."""
        return bool(self._replaced or self._erased or self._inserted)

    def _remaining(self) -> list[tuple[N, list[V]]]:
        """Returns the nodes that stay and those that came, with what they read, each after that.

        InternalError where one reads what nobody makes any more.
        """
        before: dict[int, list[N]] = {}
        for node, position in self._inserted:
            before.setdefault(position, []).append(node)
        nodes = self.nodes
        if before:
            nodes = [n for node in nodes for n in (*before.get(id(node), ()), node)]
        erased, replaced = self._erased, self._replaced  # this loop sees all nodes of large programs
        if replaced:
            kept = [(n, [replaced.get(x, x) for x in n.inputs]) for n in nodes if id(n) not in erased]
        else:
            kept = [(n, n.inputs) for n in nodes if id(n) not in erased]
        self._check_made(kept)
        return self._in_order(kept) if self._inserted else kept

    def _check_made(self, kept: Sequence[tuple[N, list[V]]]) -> None:
        gone = {x for n in self.nodes if id(n) in self._erased for x in n.outputs}
        gone.difference_update(x for n, _ in self._inserted for x in n.outputs)
        if not gone:
            return
        for node, inputs in kept:
            if not gone.isdisjoint(inputs):
                raise InternalError(f"'{node.name}' reads a value of a node that the pass erased")
        if any(self._replaced.get(x, x) in gone for x in self._results):
            raise InternalError("the pass erased a node whose value is a result")

    def _check_alike(self, old: V, new: V) -> None:
        raise NotImplementedError

    def _must_run_before(self, node: N) -> Iterable[N]:
        """Nodes that a node must follow though it does not read from them."""
        return ()

    def _in_order(self, nodes: list[tuple[N, list[V]]]) -> list[tuple[N, list[V]]]:
        """Returns the nodes, each after what it reads, and otherwise in the order given."""
        maker = {x: i for i, (n, _) in enumerate(nodes) for x in n.outputs}
        index = {id(n): i for i, (n, _) in enumerate(nodes)}
        reads = [
            {maker[x] for x in inputs if x in maker}
            | {index[id(c)] for c in self._must_run_before(n) if id(c) in index}
            for n, inputs in nodes
        ]
        if all(r < i for i, read in enumerate(reads) for r in read):
            return nodes
        waits = [len(read) for read in reads]
        readers: list[list[int]] = [[] for _ in nodes]
        for i, read in enumerate(reads):
            for r in read:
                readers[r].append(i)
        ready = [i for i, count in enumerate(waits) if not count]  # rising, so it is a heap
        ordered = []
        while ready:
            i = heapq.heappop(ready)
            ordered.append(nodes[i])
            for reader in readers[i]:
                waits[reader] -= 1
                if not waits[reader]:
                    heapq.heappush(ready, reader)
        if len(ordered) < len(nodes):
            raise InternalError("the pass closed a cycle of nodes")
        return ordered


class ProgramRewriter(Rewriter[Node, Output]):
    """The nodes of a run or of a body, whose shapes may not be known.

    devices: those of the session, best first; known to passes of phase `placed`.
    """

    def __init__(self, program: Program, devices: Sequence[Device] = ()) -> None:
        super().__init__(program.nodes, (f for f in program.fetches if isinstance(f, Output)))
        self.devices = devices
        self._program = program

    def create(self, op: str, inputs: Sequence[Output], attrs: Mapping[str, Any], like: Node, name: str = "") -> Node:
        """Returns a node whose device, place in the user's program and (if none is given) name are those of `like`.

        InvalidArgumentError where the op refuses the inputs. It takes part when it was given to `insert` or
        `substitute`.
        """
        node = Node(registry.get(op), name or like.name, dict(attrs), list(inputs))
        dtypes = output_dtypes(node.op, node.name, attrs)
        context = InferenceContext(
            node.op,
            node.name,
            attrs,
            [x.static_shape for x in inputs],
            [x.node.attrs["value"] if x.node.op.role == "constant" else None for x in inputs],
            [x.dtype for x in inputs],
        )
        shapes = run_shape_function(context, len(dtypes))
        node.outputs = [Output(node, i, d, s) for i, (d, s) in enumerate(zip(dtypes, shapes, strict=True))]
        return _alike(node, like)

    def constant(self, value: np.ndarray, like: Output) -> Node:
        """Returns a Const of the dtype of `like`, with the name and device of its node."""
        node = Node(registry.get("Const"), like.node.name, {"value": value, "dtype": like.dtype}, [])
        node.outputs = [Output(node, 0, like.dtype, value.shape)]
        return _alike(node, like.node)

    def erase(self, node: Node) -> None:
        """Leaves a node out. Nobody may read its outputs any more when the pass ends.

        InternalError for one that `may_erase` says must stay.
        """
        if not self.may_erase(node):
            raise InternalError(f"{node.op.name} '{node.name}': is fed, stateful or ordered; no pass may erase it")
        super().erase(node)

    def may_erase(self, node: Node) -> bool:
        """Returns whether a node only makes values: it is not fed, has no state, and no control edge leads to it."""
        return not (node.feed or node.op.stateful or node.control)

    def _check_alike(self, old: Output, new: Output) -> None:
        if old.dtype is new.dtype and old.static_shape == new.static_shape:
            return
        if old.dtype is not new.dtype or not compatible(old.static_shape, new.static_shape):
            raise InternalError(
                f"'{old.name}', {old.dtype.name} of shape {format_shape(old.static_shape)}, is replaced by "
                f"{new.dtype.name} of shape {format_shape(new.static_shape)}; dtype and shape must stay"
            )

    def _must_run_before(self, node: Node) -> list[Node]:
        return [n for c in node.control for n in self._in_place_of(c)]

    def _in_place_of(self, node: Node) -> Sequence[Node]:
        """Returns the node itself if it stays, else the nodes whose values replace its own."""
        if id(node) not in self._erased:
            return (node,)
        found = (self._replaced[x].node for x in node.outputs if x in self._replaced)
        return list(dict.fromkeys(found))

    def commit(self) -> None:
        """Makes the recorded changes. Control edges and fetches of an erased node go to what replaced its outputs."""
        remaining = self._remaining()
        for node, inputs in remaining:
            node.inputs = inputs
            if node.control:
                node.control = self._must_run_before(node)
        program = self._program
        program.nodes = [node for node, _ in remaining]
        program.fetches = [
            n
            for f in program.fetches
            for n in ((self._replaced.get(f, f),) if isinstance(f, Output) else self._in_place_of(f))
        ]


class ClusterRewriter(Rewriter[KernelNode, Value]):
    """The nodes that one device is to compile; all shapes are known, except where a value is `dynamic`."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster.nodes, (*cluster.outputs, *(u.new for u in cluster.updates)))
        self.cluster = cluster
        self.device = cluster.device
        self.keeps_source = True
        """Whether runs node by node show the nodes that were there before, and not those that the pass makes."""
        self._next: int | None = None

    def _check_alike(self, old: Value, new: Value) -> None:
        if old.dtype != new.dtype or old.shape != new.shape or old.dynamic != new.dynamic:
            raise InternalError(
                f"{old.dtype} of shape {format_shape(old.shape)} is replaced by {new.dtype} of shape "
                f"{format_shape(new.shape)}; dtype and shape must stay"
            )

    def create(
        self, op: str, inputs: Sequence[Value], attrs: Mapping[str, Any], like: KernelNode, name: str = ""
    ) -> KernelNode:
        """Returns a node with new outputs; its name, if none is given, and place in the user's
        program are those of `like`.

        InvalidArgumentError where the op refuses the inputs, or its outputs' shapes follow from a run only. It takes
        part when it was given to `insert` or `substitute`.
        """
        definition = registry.get(op)
        context = InferenceContext(
            definition,
            name or like.name,
            attrs,
            [v.shape for v in inputs],
            [v.constant if v.kind == "const" else None for v in inputs],
            [as_dtype(v.dtype) for v in inputs],
        )
        dtypes = output_dtypes(definition, context.name, attrs)
        outputs = []
        for dtype, shape in zip(dtypes, run_shape_function(context, len(dtypes)), strict=True):
            if definition.bound is not None or not is_static(shape):
                raise InvalidArgumentError(f"{op} '{context.name}': its shape follows from a run only")
            outputs.append(self.value(dtype.numpy, shape))  # type: ignore[arg-type]  # it is static
        return KernelNode(op, context.name, dict(attrs), list(inputs), outputs, self.device, like.where)

    def value(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Value:
        """Returns a new value, which a new node makes."""
        if self._next is None:
            cluster = self.cluster
            values = (v for n in cluster.nodes for v in (*n.inputs, *n.outputs))
            self._next = 1 + max((v.id for v in (*cluster.inputs, *cluster.resources, *values)), default=-1)
        self._next += 1
        return Value(self._next - 1, dtype, tuple(shape))

    def constant(self, value: np.ndarray) -> Value:
        """Returns a new constant."""
        made = self.value(value.dtype, value.shape)
        made.kind, made.constant = "const", value
        return made

    def commit(self) -> None:
        """Makes `cluster` one with the recorded changes; the one that was given stays as it is, and is its `source`."""
        if any(u.new in self._replaced for u in self.cluster.updates):
            raise InternalError("the pass replaced a variable's new version, which a node must make")
        nodes = [_reading(node, inputs) for node, inputs in self._remaining()]
        cluster = self.cluster
        outputs = [self._replaced.get(v, v) for v in cluster.outputs]
        source = cluster.source or (cluster if self.keeps_source else None)
        self.cluster = replace(cluster, nodes=nodes, outputs=outputs, source=source)


def _alike(made: Node, like: Node) -> Node:
    """Returns the node with the device and the place in the user's program of another."""
    made.requested, made.colocation, made.where = like.requested, like.colocation, like.where
    made.device, made.reason = like.device, like.reason
    return made


def _reading(node: KernelNode, inputs: list[Value]) -> KernelNode:
    """Returns the node with these inputs, a copy where they are others."""
    same = all(a is b for a, b in zip(node.inputs, inputs, strict=True))
    return node if same else replace(node, inputs=inputs)
