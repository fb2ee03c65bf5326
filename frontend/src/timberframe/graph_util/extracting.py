"""Parts of GraphDefs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from timberframe_core.dtypes import int32, string
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.graph import Graph
from timberframe_core.graph.operation import Operation
from timberframe_core.graph.tensor_shape import TensorShape
from timberframe_core.graphdef import messages
from timberframe_core.graphdef.nodes import colocated

_VARIABLES = ("Variable", "VariableV2", "AutoReloadVariable", "VarHandleOp", "ReadVariableOp")


def as_graph_def(given: Any, caller: str) -> Any:
    """Returns the GraphDef; InvalidTypeError for anything else."""
    return messages.as_message(given, messages.GraphDef, f"{caller}: graph_def")


def node_of(name: str) -> str:
    """Returns the node that an input names."""
    return name.removeprefix("^").partition(":")[0]


def extract_sub_graph(graph_def: Any, dest_nodes: Iterable[str]) -> Any:
    """Returns the GraphDef of those nodes that dest_nodes need, themselves included, in the order of the given one.

    Raises InvalidArgumentError where it lacks one of dest_nodes.
    """
    definition = as_graph_def(graph_def, "extract_sub_graph")
    if isinstance(dest_nodes, str):
        raise InvalidTypeError(f"extract_sub_graph: dest_nodes is the str {dest_nodes!r}; a list of names is required")
    nodes = {node.name: node for node in definition.node}
    waiting, wanted = [node_of(name) for name in dest_nodes], set()
    missing = [name for name in waiting if name not in nodes]
    if missing:
        raise InvalidArgumentError(f"extract_sub_graph: the graph has no node '{missing[0]}'; dest_nodes must be in it")
    while waiting:
        name = waiting.pop()
        if name in nodes and name not in wanted:
            wanted.add(name)
            waiting += [*map(node_of, nodes[name].input), *colocated(nodes[name])]
    made = messages.GraphDef()
    made.node.extend(node for node in definition.node if node.name in wanted)
    made.library.CopyFrom(definition.library)
    made.versions.CopyFrom(definition.versions)
    return made


def remove_training_nodes(input_graph: Any, protected_nodes: Sequence[str] | None = None) -> Any:
    """Returns the GraphDef without CheckNumerics, and without Identity and StopGradient where
    no control edge needs them.

    protected_nodes: names of nodes that stay.
    """
    definition = as_graph_def(input_graph, "remove_training_nodes")
    protected = set(protected_nodes or ())
    kept = [node for node in definition.node if node.op != "CheckNumerics" or node.name in protected]
    dropped = {node.name: node.input[0] for node in definition.node if node.op == "CheckNumerics"}
    controls = {node_of(name) for node in kept for name in node.input if name.startswith("^")}
    needed = protected | controls | {name for node in kept for name in colocated(node)}
    spliced = {name: source for name, source in dropped.items() if name not in protected}
    for node in kept:
        alone = not any(name.startswith("^") for name in node.input)
        if node.op in ("Identity", "StopGradient") and node.name not in needed and alone:
            spliced[node.name] = node.input[0]
    made = messages.GraphDef()
    for node in kept:
        if node.name not in spliced:
            copy = made.node.add()
            copy.CopyFrom(node)
            del copy.input[:]
            copy.input.extend(_source(name, spliced) for name in node.input if not _dropped_control(name, spliced))
    made.library.CopyFrom(definition.library)
    made.versions.CopyFrom(definition.versions)
    return made


def _dropped_control(name: str, spliced: dict[str, str]) -> bool:
    return name.startswith("^") and name[1:] in spliced


def _source(name: str, spliced: dict[str, str]) -> str:
    while node_of(name) in spliced and not name.startswith("^"):
        name = spliced[node_of(name)]
    return name


def must_run_on_cpu(node: Any, pin_variables_on_cpu: bool = False) -> bool:
    """Returns whether TensorFlow runs a node on the CPU: constants of strings and int32, and some ops of int32.

    node: an Operation or a NodeDef. pin_variables_on_cpu: variables, too.
    """
    definition = node.node_def if isinstance(node, Operation) else node
    if pin_variables_on_cpu and definition.op in _VARIABLES:
        return True
    attr, kinds = {
        "Const": ("dtype", (string, int32)),
        "DynamicStitch": ("T", (int32,)),
        "ParallelDynamicStitch": ("T", (int32,)),
        "Cast": ("SrcT", (int32,)),
    }.get(definition.op, ("", ()))
    return definition.attr[attr].type in [kind.number for kind in kinds] if attr else False


def tensor_shape_from_node_def_name(graph: Graph, input_name: str) -> TensorShape:
    """Returns the static shape of a tensor of a graph, of the first output where the name has no number."""
    return graph.get_tensor_by_name(input_name if ":" in input_name else f"{input_name}:0").shape
