"""Models: loaded from ONNX, run in a session, or placed into a graph of the user's own."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import onnx

import timberframe as tf
from timberframe_core.errors import InvalidArgumentError
from timberframe_onnx.errors import InvalidModelError, UnsupportedModelError
from timberframe_onnx.files import Source, opsets_of, read
from timberframe_onnx.ports import Fetch, Port, Structure, fetch_of, placeholders, port_of, structure_of
from timberframe_onnx.translation.scope import MISSING, Scope, Translation, scope_name
from timberframe_onnx.translation.states import pairs_of
from timberframe_onnx.translation.values import Tensor, Value

MOST_GRAPHS = 16
"""Of a model whose graph depends on lengths of lists or on shapes: how many are kept."""


@dataclass(frozen=True)
class Imported:
    """A model in a graph: its inputs and outputs by their names in the model."""

    inputs: Mapping[str, Tensor]
    outputs: Mapping[str, Value]


def load(
    source: Source, device: str | None = None, config: Any = None, states: Mapping[str, str] | None = None
) -> Model:
    """Loads a model from a path, from bytes or from a message.

    device: where it runs, as for `tf.device`; None leaves it to placement. config: the session's configuration.
    states: outputs by the inputs of the next run that they are, as the caches of a decoder: they stay in the session,
    and begin as zeros. One that `TensorScatter` makes and `Attention` alone reads is overwritten in place.
    A model with ranks that depend on the shapes of its inputs becomes a graph for each of these when it runs.
    Raises InvalidModelError for what is no valid model, UnsupportedModelError with all nodes that cannot be imported.
    """
    model, folder = read(source)
    return Model(model, folder, device, config, states or {})


def import_model(
    source: Source, graph: tf.Graph | None = None, inputs: Mapping[str, Any] | None = None, name: str | None = None
) -> Imported:
    """Places a model into a graph, as `tf.import_graph_def` does.

    graph: the default one if None. inputs: tensors of the graph in the place of inputs of the model; the others become
    placeholders. name: the name scope; the model's own name if None. Weights become constants.
    """
    model, folder = read(source)
    with (
        (graph or tf.get_default_graph()).as_default(),
        tf.name_scope(scope_name(name or str(model.graph.name) or "model")),
    ):
        given = {k: tf.convert_to_tensor(v) for k, v in (inputs or {}).items()}
        ports = _inputs(model)
        unknown = sorted(set(given) - {p.name for p in ports})
        if unknown:
            raise InvalidArgumentError(f"the model has no inputs {unknown}; it has {[p.name for p in ports]}")
        values = {p.name: placeholders(p, None if p.kind == "tensor" else 0)[0] for p in ports if p.name not in given}
        made = _translated(model, Translation(_functions(model), folder), {**values, **given})
    return Imported({**values, **given}, made)


def _inputs(model: onnx.ModelProto) -> list[Port]:
    """Returns the inputs that a user feeds: those without an initializer, which is their value."""
    constants = {t.name for t in model.graph.initializer} | {s.values.name for s in model.graph.sparse_initializer}
    return [port_of(info, "input") for info in model.graph.input if info.name not in constants]


def _functions(model: onnx.ModelProto) -> dict[tuple[str, str, str], onnx.FunctionProto]:
    return {(f.domain, f.name, f.overload): f for f in model.functions}


def _translated(model: onnx.ModelProto, translation: Translation, inputs: Mapping[str, Value]) -> dict[str, Value]:
    """Returns the outputs of a model in the current graph; raises UnsupportedModelError with all
    nodes that are in the way.
    """
    scope = Scope(translation, opsets_of(model))
    scope.values.update(inputs)
    outputs = scope.run_graph(model.graph)
    if scope.translation.failures:
        failures = scope.translation.failures
        raise UnsupportedModelError(failures, scope.translation.unknown == len(failures))
    assert not any(v is MISSING for v in outputs)
    return {info.name: value for info, value in zip(model.graph.output, outputs, strict=True)}


class Model:
    """A model that runs: `run` takes its inputs and gives its outputs.

    inputs, outputs: what it takes and gives, without states. proto: the message that it was made of.
    """

    def __init__(
        self,
        proto: onnx.ModelProto,
        folder: Path | None,
        device: str | None,
        config: Any,
        states: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.proto = proto
        inputs = {p.name: p for p in _inputs(proto)}
        outputs = {info.name: port_of(info, "output") for info in proto.graph.output}
        self._states = pairs_of(states, inputs, outputs)
        self._kept = tuple(inputs[name] for name in self._states)
        self.inputs = tuple(p for name, p in inputs.items() if name not in self._states)
        self.outputs = tuple(p for name, p in outputs.items() if name not in self._states.values())
        self._folder = folder
        self._device = device
        self._config = config
        self._graphs: OrderedDict[tuple[Structure, ...], _Running] = OrderedDict()
        self._by_shapes = False
        if all(p.kind == "tensor" for p in self.inputs):
            try:
                self._running((None,) * len(self.inputs))
            except UnsupportedModelError as e:
                if not e.by_shapes or all(p.sizes() and None not in (p.sizes() or ()) for p in self.inputs):
                    raise
                self._by_shapes = True
        if self._kept and (self._by_shapes or not all(p.kind == "tensor" for p in self.inputs)):
            raise InvalidArgumentError(
                f"the model {self.signature} becomes another graph with other inputs; states need one graph"
            )

    @property
    def signature(self) -> str:
        """Inputs and outputs with types and shapes, as "(x: float[n,3]) -> (y: float[n])"."""
        return f"({', '.join(map(str, self.inputs))}) -> ({', '.join(map(str, self.outputs))})"

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the outputs by name for inputs by name: arrays, lists of arrays, None for what is absent.

        Raises InvalidArgumentError for inputs that are missing, unknown, or of another type or shape.
        """
        unknown = sorted(set(feeds) - {p.name for p in self.inputs})
        missing = [p.name for p in self.inputs if p.name not in feeds and p.kind != "optional"]
        if unknown or missing:
            raise InvalidArgumentError(
                f"inputs {missing} are missing, {unknown} are unknown; the model is {self.signature}"
            )
        structure = tuple(structure_of(p, feeds.get(p.name), self._by_shapes) for p in self.inputs)
        return self._running(structure).run([(p, feeds.get(p.name)) for p in self.inputs])

    def reset(self) -> None:
        """Makes all states zeros again."""
        for running in self._graphs.values():
            running.reset()

    def explain(self, feeds: Mapping[str, Any] | None = None) -> Any:
        """Returns where each operation would run and why, as `tf.Session.explain` does; feeds give shapes.

        A model whose graph depends on lengths or shapes of its inputs needs feeds.
        """
        given = feeds or {}
        structure = tuple(structure_of(p, given.get(p.name), self._by_shapes) for p in self.inputs)
        return self._running(structure).explain([(p, given[p.name]) for p in self.inputs if p.name in given])

    def graph_for(self, feeds: Mapping[str, Any]) -> tuple[tf.Graph, dict[Tensor, Any], dict[str, Fetch]]:
        """Returns the graph that runs for these inputs, what its placeholders are fed, and how outputs are fetched."""
        structure = tuple(structure_of(p, feeds.get(p.name), self._by_shapes) for p in self.inputs)
        running = self._running(structure)
        return running.graph, running.fed_with([(p, feeds.get(p.name)) for p in self.inputs]), running.fetches

    def _running(self, structure: tuple[Structure, ...]) -> _Running:
        """Returns the graph for inputs of these lengths or shapes; the most recent ones are kept."""
        if structure not in self._graphs:
            self._graphs[structure] = _Running(self, structure)
            if len(self._graphs) > MOST_GRAPHS:
                self._graphs.popitem(last=False)[1].session.close()
        self._graphs.move_to_end(structure)
        return self._graphs[structure]

    def build(
        self, structure: tuple[Structure, ...]
    ) -> tuple[tf.Graph, list[list[Tensor]], dict[str, Fetch], list[Any]]:
        """Returns a graph of the model, the placeholders of inputs, how outputs are fetched, and updates of states."""
        graph = tf.Graph()
        translation = Translation(_functions(self.proto), self._folder)
        with graph.as_default(), tf.device(self._device) if self._device else nullcontext():
            values, fed = {}, []
            for port, part in zip(self.inputs, structure, strict=True):
                values[port.name], made = placeholders(port, part)
                fed.append(made)
            states = {port.name: translation.states.add(port) for port in self._kept}
            outputs = _translated(self.proto, translation, {**values, **states})
            fetches = {port.name: fetch_of(outputs[port.name]) for port in self.outputs}
            with tf.control_dependencies([t for fetch in fetches.values() for t in fetch.tensors]):
                updates = [translation.states.update(states[k], outputs[v]) for k, v in self._states.items()]
        return graph, fed, fetches, updates

    def session(self, graph: tf.Graph) -> tf.Session:
        """Returns a session of a graph of this model."""
        return tf.Session(graph=graph, config=self._config)


class _Running:
    """A graph of a model with its session."""

    def __init__(self, model: Model, structure: tuple[Structure, ...]) -> None:
        self.graph, self.fed, self.fetches, self.updates = model.build(structure)
        with self.graph.as_default():
            self._initialize = tf.global_variables_initializer() if self.updates else None
        self.session = model.session(self.graph)
        self.reset()
        self.tensors = [t for fetch in self.fetches.values() for t in fetch.tensors]

    def reset(self) -> None:
        """Makes all states zeros."""
        if self._initialize is not None:
            self.session.run(self._initialize)

    def explain(self, feeds: list[tuple[Port, Any]]) -> Any:
        return self.session.explain(self.tensors, self.fed_with(feeds) if feeds else None)

    def run(self, feeds: list[tuple[Port, Any]]) -> dict[str, Any]:
        arrays = self.session.run([*self.tensors, *self.updates], self.fed_with(feeds))
        found, at = {}, 0
        for name, fetch in self.fetches.items():
            found[name] = fetch.value(arrays[at : at + len(fetch.tensors)])
            at += len(fetch.tensors)
        return found

    def fed_with(self, feeds: list[tuple[Port, Any]]) -> dict[Tensor, Any]:
        """Returns what the placeholders are fed."""
        fed = {}
        for (port, value), tensors in zip(feeds, self.fed, strict=True):
            items = list(value) if port.is_list and value is not None else [value]
            for tensor, item in zip(tensors, items, strict=False):
                fed[tensor] = port.array(item)
        return fed


__all__ = ["Imported", "InvalidModelError", "Model", "import_model", "load"]
