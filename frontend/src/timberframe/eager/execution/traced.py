"""TracedFunction: what a Python function did with tensors, as a graph that runs again and again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from timberframe.eager.execution.calls import trim
from timberframe.eager.execution.graph import EagerGraph
from timberframe.eager.execution.resources import ResourceSpec, add_handle
from timberframe_core.compiler.plan import Located
from timberframe_core.dtypes import resource
from timberframe_core.errors import InternalError
from timberframe_core.gradients.reverse import gradients, is_differentiable
from timberframe_core.gradients.tape import record
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.eager_tensor import EagerSpec, EagerTensor
from timberframe_core.graph.function import FuncGraph
from timberframe_core.graph.indexed_slices import IndexedSlices
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.runtime.fetches import Fetches
from timberframe_core.runtime.runner import Runner

_NO_EFFECT = frozenset({"variable", "read_variable", "placeholder", "constant", "no_op"})
_DIRECT = 64  # kinds of arguments whose shortest way is kept
_ROUNDS = 8  # of gradients of gradients, until nothing further has to be kept


class FunctionGraph(FuncGraph):
    """The graph of a traced function. Eager tensors that it uses become further inputs, handles of resources stay."""

    def __init__(self, name: str, context: EagerGraph) -> None:
        super().__init__(name, context)
        self.context = context
        self.values: dict[EagerTensor, Tensor] = {}
        """Eager tensor -> the input that stands for it."""
        self.handles: dict[EagerTensor, Tensor] = {}
        """Handle of a resource -> the handle of the same one in this graph."""

    def capture(self, tensor: Tensor) -> Tensor:
        """Returns what stands in this graph for an eager tensor."""
        return self.capture_value(tensor, self.name) if tensor.eager else super().capture(tensor)

    def capture_value(self, tensor: Tensor, where: str) -> Tensor:
        assert isinstance(tensor, EagerTensor)
        known = self.handles if tensor.dtype is resource else self.values
        found = known.get(tensor)
        if found is None:
            with self.name_scope(None), self.control_dependencies(None), self.device(None):
                if isinstance(tensor.spec, ResourceSpec):
                    found = add_handle(self, tensor.spec, self.unique_name(tensor.op.name))
                else:
                    attrs = {"dtype": tensor.dtype, "shape": tensor.static_shape}
                    found = self.apply("Placeholder", (), attrs, "captured").outputs[0]
                    found.handle, found.host_value = tensor.handle, tensor.host_value
            known[tensor] = found
        return found

    def stand_in(self, tensor: Tensor) -> Tensor:
        if not isinstance(tensor, EagerTensor):
            return super().stand_in(tensor)
        return (self.handles if tensor.dtype is resource else self.values).get(tensor, tensor)

    def captured_tensor(self, inner: Tensor) -> Tensor | None:
        """Returns None: gradients end at what was captured."""
        return None


class TracedFunction:
    """A part of a FunctionGraph from `inputs` to `outputs`, which runs by a Runner of eager execution's session.

    effects: operations that must run in each call, too. Calls are recorded by tapes, and may be differentiated any
    number of times.
    """

    def __init__(
        self,
        graph: FunctionGraph,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        effects: Sequence[Operation] = (),
    ) -> None:
        self.graph = graph
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        self._effects = list(effects)
        self._captured = dict(graph.values)
        self._handles = dict(graph.handles)
        self._runner: _Runner | None = None
        self._forward: dict[bool, _Forward] = {}

    def call(self, arguments: Sequence[EagerTensor]) -> list[EagerTensor]:
        """Runs once with these values of the inputs."""
        context = self.graph.context
        fed = [*arguments, *self._captured]
        tapes = context.tapes
        if tapes:
            sources = [*fed, *self._handles]
            if any(tape.wants(sources, True) for tape in tapes):
                return self._call_recorded(fed, sources)
        if self._runner is None:
            self._runner = _Runner(self.graph, self._feeds(), self.outputs, self._effects)
        return self._runner.run(fed)

    def _feeds(self) -> list[Tensor]:
        return [*self.inputs, *self._captured.values()]

    def _call_recorded(self, fed: list[Any], sources: list[Any]) -> list[EagerTensor]:
        context = self.graph.context
        higher = len(context.tapes) > 1 or any(tape.persistent for tape in context.tapes)
        if higher not in self._forward:
            self._forward[higher] = _Forward(self, higher)
        forward = self._forward[higher]
        with context.recording(()):
            made = forward.runner.run(fed)
        outputs, kept = made[: len(self.outputs)], made[len(self.outputs) :]

        def gradient(op: Any, *grads: Any) -> list[Any]:
            return forward.gradients(kept, recorded, grads)

        recorded = made if higher else outputs
        if recorded:
            record(context.tapes, recorded[0].op, sources, recorded, gradient, reads=True)
        return outputs

    def differentiated(self, ys: Sequence[Tensor]) -> tuple[list[Any], list[Tensor], list[Tensor]]:
        """Adds the gradients of these tensors with respect to all sources.

        Gives them (a tensor, IndexedSlices or None for each source), the inputs that are the gradients of ys, and the
        tensors made until now that the gradients need.
        """
        graph = self.graph
        before = set(graph.get_operations())
        sources = [*self._feeds(), *self._handles.values()]
        with graph.as_default(), graph.name_scope(None), graph.control_dependencies(None):
            seeds = [
                graph.apply("Placeholder", (), {"dtype": y.dtype, "shape": y.static_shape}, "gradient").outputs[0]
                for y in ys
            ]
            wanted = [x for x in sources if is_differentiable(x)]
            found = iter(gradients(list(ys), wanted, list(seeds), stop_gradients=self._feeds()) if ys else [])
            made = [next(found, None) if is_differentiable(x) else None for x in sources]
        needed = dict[Tensor, None]()
        for op in graph.get_operations():
            if op in before:
                continue
            if op.op_def.role == "read_variable":  # of the value at the time of the call
                needed[op.outputs[0]] = None
            else:
                needed.update((t, None) for t in op.inputs if t.op in before)
        needed.update((t, None) for g in made for t in _parts(g) if t.op in before)
        kept = [t for t in needed if t.op.op_def.role != "constant" and t.dtype is not resource]
        return made, seeds, kept


class _Forward:
    """A function made ready to be differentiated: it gives what its gradient needs, too.

    higher: the gradient may be differentiated again, so what it needs is among the results that have gradients.
    """

    def __init__(self, function: TracedFunction, higher: bool) -> None:
        kept: list[Tensor] = []
        for _ in range(_ROUNDS):
            results = [*function.outputs, *(kept if higher else ())]
            self._differentiable = [i for i, t in enumerate(results) if is_differentiable(t)]
            made, seeds, needed = function.differentiated([results[i] for i in self._differentiable])
            further = [t for t in needed if t not in kept]
            kept += further
            # Integers, such as shapes of lists that each gradient asks for again, have no gradient to be lacking.
            if not higher or not any(map(is_differentiable, further)):
                break
        else:
            raise InternalError(
                f"function '{function.graph.name}': after {_ROUNDS} rounds its gradient still needs tensors without a "
                f"gradient of their own, such as '{further[0].name}'; its higher derivatives would lack their part"
            )
        graph = function.graph
        self.runner = _Runner(graph, function._feeds(), [*function.outputs, *kept], function._effects)
        self._needed = [kept.index(t) for t in needed]
        flat = [t for g in made for t in _parts(g)]
        self._gradients = made
        self._backward = TracedFunction(graph, [*needed, *seeds], flat)
        self._backward._captured = {}

    def gradients(
        self, kept: Sequence[EagerTensor], recorded: Sequence[EagerTensor], grads: Sequence[Any]
    ) -> list[Any]:
        """Returns the gradients of the sources, given what a call kept, and what was recorded
        of it with its gradients.
        """
        seeds = [apply_op("ZerosLike", [recorded[i]]) if grads[i] is None else grads[i] for i in self._differentiable]
        flat = iter(self._backward.call([*(kept[i] for i in self._needed), *seeds]))
        made: list[Any] = []
        for g in self._gradients:
            parts = [next(flat) for _ in _parts(g)]
            if isinstance(g, IndexedSlices):
                made.append(IndexedSlices(*parts))
            else:
                made.append(parts[0] if parts else None)
        return made


def _parts(gradient: Any) -> list[Tensor]:
    """Returns the tensors of a gradient."""
    if isinstance(gradient, IndexedSlices):
        shape = [] if gradient.dense_shape is None else [gradient.dense_shape]
        return [gradient.values, gradient.indices, *shape]
    return [] if gradient is None else [gradient]


class _Runner:
    """Runs a part of a graph with eager tensors."""

    def __init__(
        self, graph: FunctionGraph, feeds: Sequence[Tensor], outputs: Sequence[Tensor], effects: Sequence[Operation]
    ) -> None:
        self._context = graph.context
        elements: list[Tensor | Operation] = [*dict.fromkeys(outputs), *effects]
        self._tensors = [x for x in elements if isinstance(x, Tensor)]
        self._positions = [self._tensors.index(t) for t in outputs]
        self._direct: dict[Any, tuple[Any, list[EagerSpec]]] = {}
        self._outputs = list(outputs)
        self._runner = Runner(graph.context.session, graph, Fetches.of(elements), tuple(feeds))

    def run(self, fed: Sequence[EagerTensor]) -> list[EagerTensor]:
        """Returns the outputs for these values of the feeds."""
        context, specs = self._context, tuple([x.spec for x in fed])
        direct = self._direct.get(specs)
        if direct is not None:
            found = direct[0](*[x.array for x in fed])
            arrays = found if len(direct[1]) > 1 else [found]
            return [
                EagerTensor(arrays[i], direct[1][i], t.op, t.value_index)
                for t, i in zip(self._outputs, self._positions, strict=True)
            ]
        located: list[Located] = [(x.array, x.spec.device) for x in fed]
        results = self._runner.run_located(located, context.session.context())
        made = []
        for t, i in zip(self._outputs, self._positions, strict=True):
            array, device = results[i]
            made.append(EagerTensor(array, context.spec_of(t.dtype, array, device), t.op, t.value_index))
        self._remember(specs, located, results)
        return made

    def _remember(self, specs: tuple[EagerSpec, ...], located: list[Located], results: list[Located]) -> None:
        """Makes later calls of these shapes take the shortest way, where there is one."""
        call = self._runner.direct_arrays(located, self._general)
        if call is None or len(self._tensors) != len(results):
            return
        trim(self._direct, _DIRECT)
        pairs = zip(self._tensors, results, strict=True)
        self._direct[specs] = call, [self._context.spec_of(t.dtype, x, device) for t, (x, device) in pairs]

    def _general(self, *arrays: Any) -> Any:
        context = self._context
        located: list[Located] = [(x, context.host) for x in arrays]
        found = [x for x, _ in self._runner.run_located(located, context.session.context())]
        return found if len(found) > 1 else found[0]


def effects(graph: FunctionGraph) -> list[Operation]:
    """Returns the operations of a function that must run although no output needs them, in order."""
    return [
        op
        for op in graph.get_operations()
        if op.op_def.stateful
        and op.op_def.role not in _NO_EFFECT
        and op.op_def.stream is None
        and not op.op_def.resource
    ]
