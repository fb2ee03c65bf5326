"""FunctionDefs of a GraphDef's library, turned into function bodies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from timberframe_core.dtypes import as_dtype
from timberframe_core.errors import InvalidArgumentError, NotFoundError, UnimplementedError
from timberframe_core.graph.function import FuncGraph
from timberframe_core.graph.graph import Graph
from timberframe_core.graph.inference import arg_ranges
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.graphdef.attributes import decode_attr
from timberframe_core.graphdef.export import export_function
from timberframe_core.graphdef.nodes import Node, NodeBuilder, sort_nodes, split_inputs
from timberframe_core.graphdef.tensors import decode_shape
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.shapes import Shape


class Library:
    """The functions of a GraphDef, and which of them each one may run."""

    def __init__(self, functions: Iterable[Any]) -> None:
        self.functions: dict[str, Any] = {f.signature.name: f for f in functions}
        self._calls: dict[str, list[str]] = {}

    def called_by(self, protos: Iterable[Any]) -> set[str]:
        """Returns the functions that these nodes may run, directly or through other functions."""
        return set(self.callees_first(self._named_in(protos)))

    def callees_first(self, names: Iterable[str]) -> list[str]:
        """Returns these functions and all that they may run; each stands after its callees,
        but for those that call it.
        """
        order: list[str] = []
        seen: set[str] = set()
        for name in names:
            stack = [name]
            while stack:
                current = stack[-1]
                fresh = current not in seen
                seen.add(current)
                waiting = [c for c in self._calls_of(current) if c not in seen] if fresh else []
                if waiting:
                    stack.extend(waiting)
                    continue
                stack.pop()
                order.append(current)
        return list(dict.fromkeys(order))

    def callers_of(self, names: Iterable[str]) -> set[str]:
        """Returns these functions and all that may run them."""
        callers: dict[str, list[str]] = {}
        for name in self.functions:
            for callee in self._calls_of(name):
                callers.setdefault(callee, []).append(name)
        found, pending = set(names), list(names)
        while pending:
            fresh = [c for c in callers.get(pending.pop(), ()) if c not in found]
            found.update(fresh)
            pending.extend(fresh)
        return found

    def _calls_of(self, name: str) -> list[str]:
        if name not in self._calls:
            self._calls[name] = self._named_in(self.functions[name].node_def)
        return self._calls[name]

    def _named_in(self, protos: Iterable[Any]) -> list[str]:
        """Returns the functions that nodes name, as their op or in their attrs."""
        found: set[str] = set()
        for proto in protos:
            names = [proto.op]
            for value in proto.attr.values():
                held = value.WhichOneof("value")
                if held == "func":
                    names.append(value.func.name)
                elif held == "list":
                    names.extend(f.name for f in value.list.func)
            found.update(name for name in names if name in self.functions)
        return sorted(found)


def import_functions(
    graph: Graph, names: Iterable[str], library: Library, op_defs: Mapping[str, OpDef], builder: Any
) -> None:
    """Adds bodies to the graph, callees first. A name that the graph has already must have an equal body."""
    for name in library.callees_first(sorted(names)):
        body = import_function(graph, library.functions[name], op_defs, builder)
        known = graph.functions.get(name)
        if known is None:
            graph.add_function(body)
        elif export_function(known) != export_function(body):
            raise InvalidArgumentError(
                f"function '{name}': differs from the graph's function of that name; names must differ"
            )


def import_function(graph: Graph, message: Any, op_defs: Mapping[str, OpDef], builder: Any) -> FuncGraph:
    """Returns a FunctionDef as a body; InvalidArgumentError names the function and what is wrong in it."""
    name = message.signature.name
    body = FuncGraph(name, graph)
    references: dict[str, Tensor] = {}
    try:
        with body.as_default():
            for i, argument in enumerate(message.signature.input_arg):
                references[argument.name] = _add_argument(body, message, i, argument)
            operations = _add_nodes(body, message, op_defs, references, builder(body))
        outputs = [_resolve(references, message.ret[a.name], f"result {a.name}") for a in message.signature.output_arg]
    except (InvalidArgumentError, NotFoundError) as error:
        raise type(error)(f"function '{name}': {error}", error.node) from None
    body.finish(outputs)
    wanted = dict.fromkeys(body.control_outputs)
    for node_name in message.control_ret.values():
        if node_name in operations:
            wanted[operations[node_name]] = None
    body.control_outputs = list(wanted)
    return body


def _add_argument(body: FuncGraph, message: Any, i: int, argument: Any) -> Tensor:
    if argument.type_attr or argument.number_attr or argument.type_list_attr:
        raise UnimplementedError(
            f"function '{body.name}': argument {argument.name} has a type that calls decide; a fixed one is required"
        )
    shape: Shape = None
    hints = message.arg_attr[i].attr if i in message.arg_attr else {}
    if "_output_shapes" in hints:
        shapes = decode_attr(hints["_output_shapes"], "list(shape)", f"argument {argument.name}: attr _output_shapes")
        shape = shapes[0] if len(shapes) == 1 else None
    tensor = body.add_input(as_dtype(argument.type), shape, argument.name)
    if len(argument.handle_data) == 1:
        data = argument.handle_data[0]
        tensor.handle = as_dtype(data.dtype), decode_shape(data.shape, f"argument {argument.name}")
    return tensor


def _resolve(references: Mapping[str, Tensor], text: str, what: str) -> Tensor:
    found = references.get(text)
    if found is None and text.count(":") == 1:
        found = references.get(f"{text}:0")
    if found is None:
        raise InvalidArgumentError(f"{what} is '{text}'; an argument or '<node>:<output>:<number>' is required")
    return found


def _add_nodes(
    body: FuncGraph, message: Any, op_defs: Mapping[str, OpDef], references: dict[str, Tensor], builder: NodeBuilder
) -> dict[str, Operation]:
    arguments = {a.name for a in message.signature.input_arg}
    nodes: dict[str, Node] = {}
    for proto in message.node_def:
        if proto.name in nodes or proto.name in arguments:
            raise InvalidArgumentError(f"node '{proto.name}' is there twice; names within a function are unique")
        nodes[proto.name] = split_inputs(proto, op_defs[proto.op])
    for node in nodes.values():
        made_by = (text.split(":", 1)[0] for text in node.data)
        node.wait_for((s for s in made_by if s in nodes), (s for s in node.control if s in nodes), nodes)
    operations: dict[str, Operation] = {}
    back: list[tuple[str, int, str]] = []
    for node in sort_nodes(nodes):
        what = f"{node.proto.op} '{node.proto.name}': input"
        closing = [node.closes_loop(nodes.get(text.split(":", 1)[0])) for text in node.data]
        back.extend((node.proto.name, i, node.data[i]) for i, closes in enumerate(closing) if closes)
        inputs = [None if c else _resolve(references, t, what) for t, c in zip(node.data, closing, strict=True)]
        control = [operations[name] for name in node.control if name in operations]
        op = operations[node.proto.name] = builder.build(node, inputs, control)
        for output, positions in arg_ranges(op.op_def.outputs, op.attrs).items():
            for i, position in enumerate(positions):
                references[f"{node.proto.name}:{output}:{i}"] = op.outputs[position]
    for name, i, text in back:
        body.close_loop(operations[name], i, _resolve(references, text, f"Merge '{name}': input"))
    return operations
