"""GraphDef messages as parts of a graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import NoneType
from typing import Any

from timberframe_core.arguments import instance, listed
from timberframe_core.dtypes import resource
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import convert_to_tensor
from timberframe_core.graph.graph import Graph, get_default_graph
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.graphdef import messages
from timberframe_core.graphdef.contents import read_graph_def
from timberframe_core.graphdef.export import PRODUCER
from timberframe_core.graphdef.functions import Library, import_functions
from timberframe_core.graphdef.nodes import (
    Node,
    NodeBuilder,
    colocated,
    find_ops,
    list_names,
    output_of,
    raise_missing,
    sort_nodes,
    split_inputs,
)
from timberframe_core.ops.definition.opdef import OpDef

Element = Tensor | Operation


def import_graph_def(
    graph_def: Any,
    input_map: Mapping[str, Any] | None = None,
    return_elements: Sequence[str] | None = None,
    name: str | None = None,
    op_dict: None = None,
    producer_op_list: Any = None,
) -> list[Element] | None:
    """Adds the nodes and functions of a GraphDef to the current graph: all of them or, after an error, none.

    graph_def: our message, TensorFlow's, or serialised bytes. Of a file that is mapped with ACCESS_READ, large
    constants stay in the file, which must not change while they are used. input_map: tensors to use in place of the
    GraphDef's, by name (``a:0``, or ``^a`` for a control input). return_elements: names of tensors or operations to
    return. name: put before all names, with a slash; "import" when None, nothing when empty. A name that the graph has
    already gets a number after it, as ``x_1``. producer_op_list: an OpList, from which the defaults of attrs that our
    ops do not have are known. op_dict is ignored, as in TensorFlow.

    Raises NotFoundError naming all ops that are not registered, InvalidArgumentError for everything else that is wrong.
    """
    message, contents = read_graph_def(graph_def)
    _check_versions(message.versions)
    graph = get_default_graph()
    with graph.transaction(), graph.control_dependencies(None):
        with graph.name_scope("import" if name is None else name) as prefix:
            instance(input_map, (Mapping, NoneType), "input_map", "a mapping of names to tensors")
            if return_elements is not None:
                return_elements = listed(return_elements, "return_elements", "names")
            mapping = _convert_input_map(input_map or {})
        importer = _Importer(graph, message, prefix, mapping, _producer_defaults(producer_op_list), contents)
        importer.run()
        return None if return_elements is None else [importer.element(text) for text in return_elements]


def _check_versions(versions: Any) -> None:
    if versions.min_consumer > PRODUCER:
        raise InvalidArgumentError(
            f"GraphDef: needs a consumer of version {versions.min_consumer} (its producer has {versions.producer}); "
            f"this one has {PRODUCER}"
        )
    if PRODUCER in versions.bad_consumers:
        raise InvalidArgumentError(f"GraphDef: excludes consumers of version {PRODUCER}; this one has that version")


def _producer_defaults(op_list: Any) -> dict[str, dict[str, Any]]:
    if op_list is None:
        return {}
    message = messages.as_message(op_list, messages.OpList, "producer_op_list")
    return {op.name: {a.name: a.default_value for a in op.attr if a.HasField("default_value")} for op in message.op}


def _convert_input_map(input_map: Mapping[str, Any]) -> dict[str, Element]:
    converted: dict[str, Element] = {}
    for key, value in input_map.items():
        if key.startswith("^"):
            converted[key] = getattr(value, "op", value)
        else:
            name, index = output_of(key)
            converted[f"{name}:{index}"] = convert_to_tensor(value)
    return converted


class _Importer:
    """One import: the nodes of a GraphDef on their way into a graph."""

    def __init__(
        self,
        graph: Graph,
        message: Any,
        prefix: str,
        mapping: dict[str, Element],
        producer_defaults: Mapping[str, Mapping[str, Any]],
        contents: Mapping[str, memoryview],
    ) -> None:
        self.graph = graph
        self.message = message
        self.mapping = mapping
        self.used: set[str] = set()
        self.producer_defaults = producer_defaults
        self.producer = message.versions.producer
        self.library = Library(message.library.function)
        self.functions = self.library.functions
        self.builder = NodeBuilder(graph, prefix, self.functions, producer_defaults, self.producer, contents)
        self.operations: dict[str, Operation] = {}

    def run(self) -> None:
        op_defs, callable_functions = self._find_ops()
        self._map_values()
        nodes = self._nodes(op_defs)
        import_functions(self.graph, callable_functions, self.library, op_defs, self._function_builder)
        order = sort_nodes(nodes)
        for node in order:
            inputs = [None if self._closes_loop(text, node, nodes) else self._tensor(text, node) for text in node.data]
            control = [self._control(name, node) for name in node.control]
            self.operations[node.proto.name] = self.builder.build(node, inputs, control)
        for node in order:
            for i, text in enumerate(node.data):
                if self._closes_loop(text, node, nodes):
                    self.graph.close_loop(self.operations[node.proto.name], i, self._tensor(text, node))
        unused = [key for key in self.mapping if key not in self.used and not self._exists(key)]
        if unused:
            raise InvalidArgumentError(
                f"input_map: {list_names(unused)} not in the GraphDef; its keys must name tensors of it"
            )

    def _map_values(self) -> None:
        """Makes a value that is mapped to a variable stand for what is read of it, as in `Graph.get_tensor_by_name`."""
        handles = {f"{n.name}:0": n.name for n in self.message.node if self.mapping and n.op == "VarHandleOp"}
        for key, name in handles.items():
            value = self.mapping.get(key)
            if not isinstance(value, Tensor) or value.dtype is resource:
                continue
            reads = [n for n in self.message.node if n.op == "ReadVariableOp" and n.input[0] in (name, key)]
            self.mapping.update((f"{n.name}:0", value) for n in reads)
            if reads:
                del self.mapping[key]

    def _closes_loop(self, text: str, node: Node, nodes: Mapping[str, Node]) -> bool:
        name, index = (text, 0) if text in nodes else output_of(text)
        return node.closes_loop(nodes.get(name)) and f"{name}:{index}" not in self.mapping

    def element(self, text: str) -> Element:
        """Returns the operation or tensor that a name of the GraphDef became."""
        if not isinstance(text, str):
            raise InvalidArgumentError(f"return_elements: {text!r} is {type(text).__name__}; names are required")
        name, index = output_of(text)
        op = self.operations.get(name)
        if op is not None and ":" not in text:
            return op
        mapped = self.mapping.get(f"{name}:{index}") if ":" in text else None
        if mapped is not None:
            return mapped
        if op is None or index >= len(op.outputs):
            raise InvalidArgumentError(
                f"return_elements: '{text}' is not in the GraphDef; names must be of its nodes or tensors"
            )
        return self.graph.as_graph_element(op.outputs[index])

    def _function_builder(self, body: Graph) -> NodeBuilder:
        return NodeBuilder(body, "", self.functions, self.producer_defaults, self.producer)

    def _find_ops(self) -> tuple[dict[str, OpDef], set[str]]:
        """Returns the ops of all nodes, and the functions to import: those that nodes call, and
        others whose ops all exist.
        """
        found: dict[str, OpDef] = {}
        missing: Counter[str] = Counter()
        wanted = self.library.called_by(self.message.node)
        find_ops(self.message.node, self.functions, found, missing)
        for name in sorted(wanted):
            find_ops(self.functions[name].node_def, self.functions, found, missing)
        raise_missing(missing)
        incomplete = []
        for name in self.functions.keys() - wanted:
            absent: Counter[str] = Counter()
            find_ops(self.functions[name].node_def, self.functions, found, absent)
            if absent:
                incomplete.append(name)
        return found, self.functions.keys() - self.library.callers_of(incomplete)

    def _nodes(self, op_defs: Mapping[str, OpDef]) -> dict[str, Node]:
        nodes: dict[str, Node] = {}
        for proto in self.message.node:
            if proto.name in nodes or not proto.name:
                what = f"name '{proto.name}' is there twice" if proto.name else "has no name"
                raise InvalidArgumentError(
                    f"{proto.op} '{proto.name}': {what}; nodes of a GraphDef have unique names", proto.name
                )
            nodes[proto.name] = split_inputs(proto, op_defs[proto.op])
        for node in nodes.values():
            node.wait_for(self._data_sources(node, nodes), self._control_sources(node, nodes), nodes)
            unknown = [name for name in colocated(node.proto) if name not in nodes]
            if unknown:
                raise InvalidArgumentError(
                    f"{node.proto.op} '{node.proto.name}': is to be placed with '{unknown[0]}', which is not in the "
                    "GraphDef; colocation must name one of its nodes",
                    node.proto.name,
                )
        return nodes

    def _data_sources(self, node: Node, nodes: Mapping[str, Node]) -> Iterable[str]:
        for text in node.data:
            source, index = (text, 0) if text in nodes else output_of(text)
            if self.mapping and f"{source}:{index}" in self.mapping:
                continue
            if source not in nodes:
                raise self._no_input(node, text)
            yield source

    def _control_sources(self, node: Node, nodes: Mapping[str, Node]) -> Iterable[str]:
        for source in node.control:
            if self.mapping and f"^{source}" in self.mapping:
                continue
            if source not in nodes:
                raise self._no_input(node, f"^{source}")
            yield source

    def _no_input(self, node: Node, text: str) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"{node.proto.op} '{node.proto.name}': input '{text}' is not in the GraphDef; inputs must be its nodes",
            node.proto.name,
        )

    def _tensor(self, text: str, node: Node) -> Tensor:
        name, index = (text, 0) if text in self.operations else output_of(text)
        if self.mapping:
            key = f"{name}:{index}"
            mapped = self.mapping.get(key)
            if isinstance(mapped, Tensor):
                self.used.add(key)
                return mapped
        outputs = self.operations[name].outputs
        if index >= len(outputs):
            raise InvalidArgumentError(
                f"{node.proto.op} '{node.proto.name}': input '{text}' asks for output {index}; "
                f"{self.operations[name].type} '{name}' has {len(outputs)} outputs",
                node.proto.name,
            )
        return outputs[index]

    def _control(self, name: str, node: Node) -> Operation:
        mapped = self.mapping.get(f"^{name}") if self.mapping else None
        if mapped is None:
            return self.operations[name]
        self.used.add(f"^{name}")
        return mapped if isinstance(mapped, Operation) else mapped.op

    def _exists(self, key: str) -> bool:
        op = self.operations.get(key.removeprefix("^").rpartition(":")[0] or key.removeprefix("^"))
        return op is not None and (key.startswith("^") or output_of(key)[1] < len(op.outputs))
