"""Calls: what one op became for given attrs, shapes and devices, to be run again and again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe.eager.execution.resources import ResourceSpec, add_handle
from timberframe_core.compiler.plan import Located
from timberframe_core.dtypes import resource, variant
from timberframe_core.graph.eager_tensor import EagerSpec, EagerTensor
from timberframe_core.graph.function import FuncGraph
from timberframe_core.graph.graph import Graph
from timberframe_core.graph.inference import HOST_VALUE_ELEMENTS, arg_ranges
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.graph.tensor_shape import TensorShape
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.runtime.fetches import Fetches
from timberframe_core.runtime.runner import Runner
from timberframe_core.shapes import is_static, num_elements

if TYPE_CHECKING:
    from timberframe.eager.execution.graph import EagerGraph


class Call:
    """An op with its attrs, for inputs of given specs: a graph of it alone, with its Runner.

    constants: positions of the inputs whose values the plan needs, which are constants of the graph. direct: the
    shortest way, a function of arrays, with the specs of what it makes.
    """

    __slots__ = ("_feeds", "_graph", "_known", "_runner", "constants", "direct", "operation", "settled", "specs")

    def __init__(
        self,
        context: EagerGraph,
        op_def: OpDef,
        attrs: Mapping[str, Any],
        inputs: Sequence[EagerTensor],
        constants: Sequence[int],
        device: str,
    ) -> None:
        graph = Graph()
        tensors, feeds = [], []
        self._feeds: list[int] = []
        for i, x in enumerate(inputs):
            if isinstance(x.spec, ResourceSpec):
                tensors.append(add_handle(graph, x.spec))
            elif i in constants:
                value = {"value": x._on_host(), "dtype": x.dtype}
                tensors.append(graph.apply("Const", (), value, f"value{i}").outputs[0])
            else:
                tensors.append(_placeholder(graph, x, i))
                feeds.append(tensors[-1])
                self._feeds.append(i)
        given = {k: graph.add_function(v) if isinstance(v, FuncGraph) else v for k, v in attrs.items()}
        self.operation = graph.create_op(op_def, tensors, given, _name(op_def, given), device=device)
        for op in graph.get_operations():
            op._where = None  # the line of this call says nothing of later ones
        self._graph = context
        self.constants = constants
        elements: list[Tensor | Operation] = [*self.operation.outputs] or [self.operation]
        self._runner = Runner(context.session, graph, Fetches.of(elements), tuple(feeds))
        self.direct: Any = None
        self.settled = False
        """Whether it has its final way, and others may remember it."""
        self.specs: list[EagerSpec] = []
        self._known = all(is_static(t.static_shape) and t.dtype is not variant for t in self.operation.outputs)

    def run(self, inputs: Sequence[EagerTensor]) -> list[EagerTensor]:
        """Runs once; gives the outputs."""
        operation = self.operation
        if self.direct is not None:
            made = self.direct(*[inputs[i].array for i in self._feeds])
            if len(self.specs) == 1:
                return [EagerTensor(made, self.specs[0], operation)]
            return [EagerTensor(x, s, operation, i) for i, (x, s) in enumerate(zip(made, self.specs, strict=True))]
        located: list[Located] = [(x.array, x.spec.device) for x in (inputs[i] for i in self._feeds)]
        found = self._runner.run_located(located, self._graph.session.context())[: len(operation.outputs)]
        outputs = [
            EagerTensor(array, self._graph.spec_of(t.dtype, array, device), operation, i)
            for i, ((array, device), t) in enumerate(zip(found, operation.outputs, strict=True))
        ]
        if not self.settled:
            self._settle(outputs, located)
        return outputs

    def _settle(self, outputs: Sequence[EagerTensor], located: Sequence[Located]) -> None:
        """Looks for the shortest way once a call comes again: most that come once never do, and it takes long."""
        repeats = bool(self.specs)
        self.specs = [x.spec for x in outputs]
        self.settled = repeats or not (self._known and outputs) or self.operation.op_def.on_host
        if repeats:
            self.direct = self._runner.direct_arrays(located, self._general)

    def is_direct_pair(self, inputs: Sequence[Any]) -> bool:
        """Returns whether it is a function of the arrays of its two inputs that gives the array of its one output."""
        return self.direct is not None and len(inputs) == len(self._feeds) == 2 and len(self.specs) == 1

    def _general(self, *arrays: np.ndarray) -> Any:
        home = self._graph.host
        found = [x for x, _ in self._runner.run_located([(x, home) for x in arrays], self._graph.session.context())]
        return found if len(found) > 1 else found[0]


def _placeholder(graph: Graph, x: EagerTensor, i: int) -> Tensor:
    made = graph.apply("Placeholder", (), {"dtype": x.dtype, "shape": x.static_shape}, f"input{i}").outputs[0]
    if x.dtype is variant:
        made.handle = x.handle
    return made


def _name(op_def: OpDef, attrs: Mapping[str, Any]) -> str:
    """Returns the name of the node: of one that draws random numbers another for each seed, so
    that its stream is its own.
    """
    if op_def.stream is None:
        return op_def.name
    kinds = "_".join(v.name if hasattr(v, "name") else str(v) for k, v in sorted(attrs.items()))
    return "".join(c if c.isalnum() or c in "_-." else "_" for c in f"{op_def.name}_{kinds}")


def constant_positions(op_def: OpDef, attrs: Mapping[str, Any], inputs: Sequence[EagerTensor]) -> list[int]:
    """Returns the positions of the inputs whose values are needed to plan a node with these attrs."""
    if not op_def.shape_inputs and op_def.planned is None:
        return []
    ranges = arg_ranges(op_def.inputs, attrs)
    first = [i for name in op_def.shape_inputs for i in ranges[name]]
    if op_def.planned is None:
        return first
    known = [x._on_host() if i in first else None for i, x in enumerate(inputs)]
    return [*first, *(i for name in op_def.planned(attrs, known) for i in ranges[name])]


def is_small(x: EagerTensor) -> bool:
    """Returns whether a value is one to plan with, not data."""
    return num_elements(x.spec.shape) <= HOST_VALUE_ELEMENTS


def frozen(value: Any) -> Any:
    """Returns a key that two values of an attr share exactly when they are equal; TypeError where there is none."""
    if isinstance(value, list | tuple):
        return tuple([frozen(v) for v in value])
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            return "array", value.shape, tuple(value.flat)
        return "array", value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, TensorShape):
        return "shape", value.as_tuple()
    hash(value)
    return value


_EXACT = (int, bool, str, bytes)


def arguments_key(
    op: str, inputs: Sequence[Any], attrs: Mapping[str, Any] | None, device: str, tensors: list[EagerTensor]
) -> Any:
    """Returns a key of everything that decides which call an op takes, where tensors count by
    their specs; None without one.

    tensors: gets the tensors among the inputs in order. Handles count by the names of their resources, so that no key
    keeps a resource alive.
    """
    parts: list[Any] = [op, device]
    for x in inputs:
        kind = type(x)
        if kind is EagerTensor:
            tensors.append(x)
            parts.append(x.spec.key if x.dtype is resource else x.spec)
        elif kind in _EXACT:
            parts.append((kind, x))
        elif kind is float:
            parts.append(x.hex())
        elif kind is list or kind is tuple:
            inner: list[Any] = [kind]
            for y in x:
                if type(y) is EagerTensor:
                    tensors.append(y)
                    inner.append(y.spec.key if y.dtype is resource else y.spec)
                elif type(y) in _EXACT:
                    inner.append((type(y), y))
                else:
                    return None
            parts.append(tuple(inner))
        else:
            return None
    if attrs:
        try:
            parts.append(tuple([(k, v if type(v) in _EXACT else frozen(v)) for k, v in attrs.items()]))
        except TypeError:
            return None
    return tuple(parts)


def filled(template: Sequence[EagerTensor | None], tensors: Sequence[EagerTensor]) -> Sequence[EagerTensor]:
    """Returns the flat inputs of a call: the given tensors in the gaps between what Python values became."""
    given = iter(tensors)
    return [next(given) if x is None else x for x in template]


def trim(kept: dict[Any, Any], most: int) -> None:
    """Drops the oldest eighth of what is kept where there are too many."""
    if len(kept) >= most:
        for key in list(kept)[: most // 8]:
            kept.pop(key, None)
