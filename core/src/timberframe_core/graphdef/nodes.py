"""NodeDefs: checked, put into order, and turned into operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from types import MappingProxyType
from typing import Any

from timberframe_core import logging
from timberframe_core.errors import InvalidArgumentError, NotFoundError
from timberframe_core.graph.device_spec import canonical_device
from timberframe_core.graph.graph import Graph
from timberframe_core.graph.growth import INITIAL_SHAPE
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.graph.tensor_shape import TensorShape
from timberframe_core.graphdef.attributes import decode_attr, is_empty
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.ops.definition.registered_gradients import ATTR as GRADIENT
from timberframe_core.ops.definition.signature import AttrDef, parse_attr
from timberframe_core.shapes import format_shape, merge

PLACEHOLDER_SHAPES = 24
"""The first GraphDef version in which a Placeholder of shape [] is a scalar; before, its shape was unknown."""

CALLS = ("PartitionedCall", "StatefulPartitionedCall")

_KEPT = {a.name: a for a in map(parse_attr, ("_kernel: string", f"{GRADIENT}: string", f"{INITIAL_SHAPE}: list(int)"))}
"""The private attrs that are kept: the label of the kernels to choose from, the name of the gradient, the sizes of a
variable's first values.
"""

LISTED = 8  # names in an error that could have thousands


@dataclass(slots=True)
class Node:
    """A NodeDef, its op, and its inputs by kind: names of data inputs as written, names of control inputs."""

    proto: Any
    op_def: OpDef
    data: list[str]
    control: list[str]
    waits_for: set[str] = field(default_factory=set)

    def closes_loop(self, source: Node | None) -> bool:
        """Returns whether an input that `source` makes comes from the iteration before, as only such may."""
        return source is not None and self.op_def.role == "merge" and source.op_def.role == "next_iteration"

    def wait_for(self, data: Iterable[str], control: Iterable[str], nodes: Mapping[str, Node]) -> None:
        """Sets the nodes that must stand before this one: all that make its inputs but those that close a loop."""
        self.waits_for = {name for name in data if not self.closes_loop(nodes[name])}
        self.waits_for.update(control)


def list_names(names: Iterable[str]) -> str:
    """Returns the first names, and how many more there are."""
    found = list(names)
    more = f" and {len(found) - LISTED} more" if len(found) > LISTED else ""
    return ", ".join(found[:LISTED]) + more


def find_ops(
    protos: Iterable[Any], functions: Mapping[str, Any], found: dict[str, OpDef], missing: Counter[str]
) -> None:
    """Looks up the op of every node; ops that nobody has are counted in `missing`.

    A node may also name a function in place of an op, as TensorFlow 1's Defun does: that is a call.
    """
    for proto in protos:
        name = proto.op
        if name in found:
            continue
        if name in functions:
            found[name] = registry.get(CALLS[functions[name].signature.is_stateful])
            continue
        op_def = None if name in missing else registry.find(name)
        if op_def is None:
            missing[name] += 1
        else:
            found[name] = op_def


def raise_missing(missing: Counter[str]) -> None:
    """NotFoundError that names all unknown ops at once, if there are any, and what is wrong with their packages."""
    if missing:
        names = ", ".join(f"{name} ({count} nodes)" if count > 1 else name for name, count in sorted(missing.items()))
        failures = [f"{name}: {why}" for name, why in registry.missing().items() if name in missing]
        required = "every op of an imported graph must be registered"
        found = [f"GraphDef: no op is registered as {names}", required, *failures, *registry.absent_packages()]
        raise NotFoundError("; ".join(found))


def split_inputs(proto: Any, op_def: OpDef) -> Node:
    """Returns the node with data and control inputs separated; control inputs must come last."""
    data: list[str] = []
    control: list[str] = []
    for text in proto.input:
        if text.startswith("^"):
            control.append(text[1:])
        elif control:
            raise InvalidArgumentError(
                f"{proto.op} '{proto.name}': data input '{text}' follows control input '^{control[-1]}'; "
                "control inputs must come last",
                proto.name,
            )
        else:
            data.append(text)
    return Node(proto, op_def, data, control)


def colocated(proto: Any) -> list[str]:
    """Returns names of the nodes with which a node is colocated."""
    if "_class" not in proto.attr:
        return []
    return [text[5:].decode(errors="replace") for text in proto.attr["_class"].list.s if text.startswith(b"loc:@")]


def output_of(text: str) -> tuple[str, int]:
    """Node name and output number of ``node`` or ``node:number``."""
    name, colon, number = text.rpartition(":")
    return (name, int(number)) if colon and number.isdecimal() and number.isascii() else (text, 0)


def sort_nodes(nodes: Mapping[str, Node]) -> list[Node]:
    """Returns the nodes in an order in which inputs come first, otherwise as they were;
    InvalidArgumentError for a cycle.
    """
    names = list(nodes)
    position = {name: i for i, name in enumerate(names)}
    waiting = {name: len(node.waits_for) for name, node in nodes.items()}
    followers: dict[str, list[str]] = {}
    for name, node in nodes.items():
        for source in node.waits_for:
            followers.setdefault(source, []).append(name)
    ready = [i for i, name in enumerate(names) if not waiting[name]]
    ordered = []
    while ready:
        name = names[heappop(ready)]
        ordered.append(nodes[name])
        for follower in followers.get(name, ()):
            waiting[follower] -= 1
            if not waiting[follower]:
                heappush(ready, position[follower])
    if len(ordered) < len(nodes):
        cycle = _find_cycle(nodes, {name for name, count in waiting.items() if count})
        raise InvalidArgumentError(
            f"GraphDef: nodes {' -> '.join(cycle)} form a cycle; inputs must lead from earlier nodes to later ones"
        )
    return ordered


def _find_cycle(nodes: Mapping[str, Node], stuck: set[str]) -> list[str]:
    """Returns one cycle among the nodes that wait for each other, shortened to be readable."""
    path: dict[str, None] = {}
    name = min(stuck)
    while name not in path:
        path[name] = None
        name = min(n for n in nodes[name].waits_for if n in stuck)
    trail = list(path)
    cycle = [name, *reversed(trail[trail.index(name) :])]
    return cycle if len(cycle) <= LISTED else [*cycle[: LISTED - 1], "...", name]


class NodeBuilder:
    """Adds the operations of NodeDefs to a graph. contents: of constants whose messages lack them, by node."""

    def __init__(
        self,
        graph: Graph,
        prefix: str,
        functions: Mapping[str, Any],
        producer_defaults: Mapping[str, Mapping[str, Any]],
        producer: int,
        contents: Mapping[str, memoryview] = MappingProxyType({}),
    ) -> None:
        self.graph = graph
        self.contents = contents
        self.functions = functions
        self.producer = producer
        self.prefix = prefix
        self.producer_defaults = producer_defaults
        self._renamed: dict[str, str] = {}
        self._inherits_device = graph.has_device_scope()

    def build(self, node: Node, inputs: Sequence[Tensor | None], control: Sequence[Operation]) -> Operation:
        """Returns one operation; its errors name the node.

        None stands for an input of a Merge that a later NextIteration makes; `Graph.close_loop` puts it in.
        """
        proto = node.proto
        attrs = self._attrs(proto, node.op_def)
        name = self._free_name(proto.name)

        known = [t for t in inputs if t is not None]
        if not known and inputs:
            raise InvalidArgumentError(
                f"{proto.op} '{proto.name}': all its inputs come from NextIteration; the first iteration "
                "needs one of Enter",
                proto.name,
            )
        stand_ins = [known[0] if t is None else t for t in inputs]

        def create(device: str | None) -> Operation:
            return self.graph.create_op(
                node.op_def,
                stand_ins,
                attrs,
                name,
                control_inputs=control,
                device=device,
                colocation=tuple(self._renamed.get(other, self.prefix + other) for other in colocated(proto)),
                exact_name=True,
                defer_errors=True,
            )

        op = self._create_on_device(proto, create)
        if len(known) < len(inputs):
            op.outputs[0].forget()  # later iterations may bring any shape
        _add_output_shapes(op, proto)
        return op

    def _free_name(self, name: str) -> str:
        """Returns the node's name in the graph, with a number after it where the graph has
        another node of that name.
        """
        full = self.prefix + name
        if full not in self.graph._by_name:
            return full
        with self.graph.name_scope(""):  # the prefix has its scopes already
            self._renamed[name] = self.graph.unique_name(full)
        return self._renamed[name]

    def _create_on_device(self, proto: Any, create: Callable[[str | None], Operation]) -> Operation:
        """Calls `create` with the node's own device, which surrounding device scopes complete."""
        try:
            device = canonical_device(proto.device)
        except InvalidArgumentError as error:
            raise type(error)(f"{proto.op} '{proto.name}': {error}", proto.name) from None
        if not self._inherits_device:
            return create(device)
        if not device:
            return create(None)
        with self.graph.device(device):
            return create(None)

    def _attrs(self, proto: Any, op_def: OpDef) -> dict[str, Any]:
        if proto.op in self.functions:
            signature = self.functions[proto.op].signature
            types = {
                key: [a.type for a in args]
                for key, args in (("Tin", signature.input_arg), ("Tout", signature.output_arg))
            }
            return {"f": proto.op, **types}
        attrs: dict[str, Any] = {}
        for key, value in proto.attr.items():
            declared = _KEPT.get(key) or op_def.attrs.get(key)
            if declared is not None:
                attrs[key] = self._decode(proto, declared, value)
            elif not key.startswith("_") and not self._is_default(proto.op, key, value):
                raise InvalidArgumentError(
                    f"{proto.op} '{proto.name}': attr {key} is unknown and holds {str(value).strip()}; "
                    f"the op has {', '.join(op_def.attrs) or 'no attrs'}",
                    proto.name,
                )
        if proto.op == "Placeholder" and self.producer < PLACEHOLDER_SHAPES and attrs.get("shape") == ():
            attrs["shape"] = TensorShape(None)
        return attrs

    def _decode(self, proto: Any, declared: AttrDef, value: Any) -> Any:
        what = f"{proto.op} '{proto.name}': attr {declared.name}"
        if declared.kind == "tensor" and "dtype" in proto.attr and value.tensor.dtype != proto.attr["dtype"].type:
            wanted = proto.attr["dtype"].type
            raise InvalidArgumentError(
                f"{what} has dtype {value.tensor.dtype}; attr dtype is {wanted}, which it must be"
            )
        content = self.contents.get(proto.name) if declared.name == "value" else None
        return decode_attr(value, declared.kind, what, content)

    def _is_default(self, op: str, key: str, value: Any) -> bool:
        """Returns whether an unknown attr holds the default of the op's producer, or what stands for "not used"."""
        known = self.producer_defaults.get(op, {}).get(key)
        return known == value if known is not None else is_empty(value)


def _add_output_shapes(op: Operation, proto: Any) -> None:
    """Adds the shapes that `_output_shapes` gives.

    Where it contradicts what was inferred, it is left aside with a warning: the op's shape function knows the kernels,
    and some of TensorFlow's promise shapes that its own kernels do not give (FractionalMaxPool, GatherV2 with negative
    batch_dims).
    """
    if "_output_shapes" not in proto.attr or not op.outputs:
        return
    shapes = decode_attr(proto.attr["_output_shapes"], "list(shape)", f"{proto.op} '{proto.name}': attr _output_shapes")
    if len(shapes) != len(op.outputs):
        return  # written for another version of the op
    for tensor, shape in zip(op.outputs, shapes, strict=True):
        if tensor.dtype.name == "resource":
            continue  # TensorFlow's handles have shapes of their own, on which nothing depends
        try:
            tensor.set_shape(merge(tensor.static_shape, shape))
        except ValueError:
            logging.warning(
                "%s '%s': _output_shapes is %s for output %d; %s is inferred, and is kept",
                proto.op, proto.name, format_shape(shape), tensor.value_index, format_shape(tensor.static_shape),
            )  # fmt: skip
