"""The compiler's own nodes: a pruned copy of the user's graph that passes may rewrite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from timberframe_core.dtypes import DType
from timberframe_core.graph.inference import arg_ranges
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.shapes import Shape

if TYPE_CHECKING:
    from timberframe_core.graph.function import FuncGraph
    from timberframe_core.graph.graph import Graph
    from timberframe_core.graph.operation import Operation, Tensor
    from timberframe_core.plugin.contracts import Device


class Output:
    """A value that a node makes. static_shape is what was known while the graph was built."""

    __slots__ = ("dtype", "index", "node", "static_shape")

    def __init__(self, node: Node, index: int, dtype: DType, static_shape: Shape) -> None:
        self.node = node
        self.index = index
        self.dtype = dtype
        self.static_shape = static_shape

    @property
    def name(self) -> str:
        return f"{self.node.name}:{self.index}"

    def __repr__(self) -> str:
        return f"<{self.name}>"


class Node:
    """One operation of the program.

    control: nodes that must run before. after: the same, for the order of accesses to a variable. variable: name of the
    variable that a resource input means. bodies: functions of While (cond, body), If (then, else) and
    Case (its branches). functions: those that the attrs of a host op name. feed: the node
    only stands for a value that the caller hands in.
    """

    __slots__ = (
        "after", "attrs", "bodies", "colocation", "control", "depends", "depth", "device", "driven_because", "endless",
        "feed", "functions", "host_driven", "host_value", "inputs", "late", "name", "on_lists", "op", "outputs",
        "reason", "requested", "step", "variable", "where",
    )  # fmt: skip

    def __init__(self, op: OpDef, name: str, attrs: dict[str, Any], inputs: list[Output]) -> None:
        self.op = op
        self.name = name
        self.attrs = attrs
        self.inputs = inputs
        self.outputs: list[Output] = []
        self.control: list[Node] = []
        self.after: list[Node] = []
        self.requested = ""
        self.colocation: tuple[str, ...] = ()
        self.where = ""
        self.feed = False
        self.variable: str | None = None
        self.bodies: tuple[FuncGraph, ...] = ()
        self.functions: tuple[FuncGraph, ...] = ()
        self.endless = False
        """It runs bodies, and how often has no small bound that is known."""
        self.device: Device | None = None
        self.reason = ""
        self.depth = 0
        self.depends = False
        """Its device answered DEPENDS, and is asked again when shapes are known."""
        self.host_value = False
        """Its value is computed on the host while planning; no device runs it."""
        self.host_driven = False
        """The executor carries it out; of a While, If or Case the bodies are plans of their own."""
        self.driven_because = ""
        """Why the executor drives a While, If or Case; see `give_to_executor`."""
        self.on_lists = False
        """It works on lists, arrays or stacks of tensors, which the executor keeps."""
        self.step: Any = None
        """What the executor prepared for a node that it carries out itself."""
        self.late = False
        """The shapes of what it takes out of a list are known only once it has run."""

    def give_to_executor(self, why: str) -> None:
        """Makes the executor drive a loop or branch, and nodes on lists find out their shapes when they run."""
        if self.on_lists:
            self.late = True
        else:
            self.host_driven, self.driven_because = True, why

    def __repr__(self) -> str:
        return f"<{self.op.name} {self.name}>"


@dataclass(frozen=True)
class Subgraph:
    """The part of a graph that is to be compiled: operations in order, what gives each fetch, and the fed tensors.

    TensorFlow 1's control flow and reference variables have been rewritten.
    """

    graph: Graph
    order: Sequence[Operation]
    fetches: Sequence[Sequence[Tensor | Operation]]
    feeds: Sequence[Tensor]


class Program:
    """Nodes of a graph in topological order, what is fed, and what is fetched (a node stands for 'run it').

    source: the operations that they were made of.
    """

    def __init__(self, source: Subgraph, nodes: list[Node], feeds: list[Output], fetches: list[Output | Node]) -> None:
        self.source = source
        self.graph = source.graph
        self.nodes = nodes
        self.feeds = feeds
        self.fetches = fetches


class FunctionProgram(Program):
    """The body of a function: the first `result_count` fetches are its results, the rest its side effects."""

    def __init__(
        self,
        function: FuncGraph,
        source: Subgraph,
        nodes: list[Node],
        feeds: list[Output],
        fetches: list[Output | Node],
        result_count: int,
    ) -> None:
        super().__init__(source, nodes, feeds, fetches)
        self.graph = function
        self.function = function
        self.result_count = result_count

    @property
    def results(self) -> list[Output]:
        """What the function returns."""
        return [f for f in self.fetches[: self.result_count] if isinstance(f, Output)]


def sets_variable(op: OpDef) -> bool:
    """Returns whether the op gives a variable a value without needing the one that it has."""
    return op.role == "assign_variable" and not op.update_op


def written_inputs(op: OpDef, attrs: Mapping[str, Any]) -> list[int]:
    """Flat positions of the handles whose variables the op's kernel gives new values, in the order of its outputs."""
    if not op.updates:
        return []
    ranges = arg_ranges(op.inputs, attrs)
    return [i for name in op.updates for i in ranges[name]]


VARIABLE_READS = frozenset({"read_variable", "inspect_variable"})
VARIABLE_WRITES = frozenset({"assign_variable", "destroy_variable"})
VARIABLE_ACCESSES = VARIABLE_READS | VARIABLE_WRITES
"""Roles of ops on a variable that no kernel runs; others name in `reads` and `updates` what their kernel works on."""

ARRAYS = frozenset({"make_array", "make_gradient_array", "use_array"})
"""Roles of ops on arrays and stacks that live as long as a run."""

CONTROL_FLOW = frozenset({
    "switch", "merge", "enter", "exit", "next_iteration", "loop_condition", "control_trigger",
})  # fmt: skip
"""The roles of TensorFlow 1's control flow."""
RAISED = CONTROL_FLOW | {"reference"}
"""Roles of ops that are rewritten; nothing else runs them."""

BRANCHES = frozenset({"branch", "case"})
RUNS_BODIES = BRANCHES | {"loop"}
"""Roles of ops whose functions stay functions; those that calls run are put in their places."""


def body_scope(scope: str, node: Node, function: FuncGraph) -> str:
    """Returns the name of a body that `node`, itself in `scope`, runs: the way to it, which
    recursion makes no longer.
    """
    step = f"/{function.name}/"
    head, found, _ = scope.partition(step)
    return head + found if found else f"{scope}{node.name}{step}"
