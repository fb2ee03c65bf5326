"""`tf.contrib.predictor`: functions of dictionaries of arrays, made of saved models and of estimators."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from timberframe.boundary import guard
from timberframe.saved_model.constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY, SERVING
from timberframe.saved_model.loader import load
from timberframe.train.monitored_session import MonitoredSession
from timberframe.train.session_creators import ChiefSessionCreator
from timberframe.train.steps import create_global_step
from timberframe_contrib.estimator.exporting import receive
from timberframe_contrib.estimator.spec import ModeKeys
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.graph import Graph
from timberframe_core.runtime.session import Session

__all__ = ["Predictor", "from_estimator", "from_saved_model"]


class Predictor:
    """``predictor({"x": array})``: a dictionary of arrays. graph and session stay open as long as it is used.

    feed_tensors, fetch_tensors: the tensors of the inputs and of the outputs by name.
    """

    def __init__(self, graph: Any, session: Any, feeds: Mapping[str, Any], fetches: Mapping[str, Any]) -> None:
        self._graph, self._session = graph, session
        self._feeds, self._fetches = dict(feeds), dict(fetches)

    @property
    def graph(self) -> Any:
        return self._graph

    @property
    def session(self) -> Any:
        return self._session

    @property
    def feed_tensors(self) -> dict[str, Any]:
        return self._feeds

    @property
    def fetch_tensors(self) -> dict[str, Any]:
        return self._fetches

    def __call__(self, input_dict: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the outputs for inputs by name; InvalidArgumentError (a ValueError) for a name that is no input."""
        unknown = sorted(set(input_dict) - set(self._feeds))
        if unknown:
            raise InvalidArgumentError(
                f"Predictor: there is no input {', '.join(unknown)}; its inputs are {', '.join(sorted(self._feeds))}"
            )
        found: dict[str, Any] = self._session.run(self._fetches, {self._feeds[k]: v for k, v in input_dict.items()})
        return found

    def __repr__(self) -> str:
        return f"Predictor with feed tensors {self._feeds} and fetch_tensors {self._fetches}"


def from_saved_model(
    export_dir: Any,
    signature_def_key: str | None = None,
    signature_def: Any = None,
    input_names: Mapping[str, str] | None = None,
    output_names: Mapping[str, str] | None = None,
    tags: Iterable[str] | str | None = None,
    graph: Graph | None = None,
    config: Any = None,
) -> Predictor:
    """Returns a predictor of a saved model.

    Its inputs and outputs are those of signature_def; or of the one called signature_def_key, `serving_default` by
    default; or input_names and output_names, from names of the predictor's own to those of tensors. tags: of the graph
    in the model, `serve` by default; a text has commas between them.
    """
    own = input_names is not None or output_names is not None
    given = [signature_def_key is not None, signature_def is not None, own]
    if sum(given) > 1 or (own and not (input_names and output_names)):
        names = ("signature_def_key", "signature_def", "input_names", "output_names")
        values = (signature_def_key, signature_def, input_names, output_names)
        found = ", ".join(name for name, value in zip(names, values, strict=True) if value is not None)
        raise InvalidArgumentError(
            f"tf.contrib.predictor.from_saved_model: {found} given; signature_def_key, signature_def, or input_names "
            "with output_names is required, or none of them"
        )
    wanted = [SERVING] if tags is None else tags.split(",") if isinstance(tags, str) else list(tags)
    graph = graph or Graph()
    with graph.as_default():
        session = Session(graph=graph, config=config)
        meta = load(session, wanted, export_dir)
    if not own:
        definition = signature_def or _definition(meta, signature_def_key or DEFAULT_SERVING_SIGNATURE_DEF_KEY)
        input_names = {key: info.name for key, info in definition.inputs.items()}
        output_names = {key: info.name for key, info in definition.outputs.items()}
    return Predictor(graph, session, _tensors(graph, input_names), _tensors(graph, output_names))


def from_estimator(
    estimator: Any,
    serving_input_receiver_fn: Callable[[], Any],
    output_key: str | None = None,
    graph: Graph | None = None,
    config: Any = None,
) -> Predictor:
    """Returns a predictor of an estimator's latest checkpoint.

    Its inputs are the receiver tensors; its outputs those of export_outputs[output_key], by default those of the
    predictions of the model function.
    """
    graph = graph or Graph()
    with graph.as_default():
        create_global_step()
        receiver = receive(serving_input_receiver_fn)
        spec = estimator.model_fn(receiver.features, None, ModeKeys.PREDICT, estimator.config)
        creator = ChiefSessionCreator(spec.scaffold, config=config, checkpoint_dir=estimator.model_dir)
        session = MonitoredSession(creator)
    feeds = receiver.receiver_tensors
    outputs = spec.predictions if output_key is None else _output(spec, output_key)
    return Predictor(
        graph,
        session,
        feeds if isinstance(feeds, Mapping) else {"input": feeds},
        outputs if isinstance(outputs, Mapping) else {"output": outputs},
    )


def _definition(meta: Any, key: str) -> Any:
    if key not in meta.signature_def:
        there = ", ".join(sorted(meta.signature_def)) or "none"
        raise InvalidArgumentError(
            f"tf.contrib.predictor.from_saved_model: the model has no signature '{key}'; it has {there}"
        )
    return meta.signature_def[key]


def _tensors(graph: Graph, names: Mapping[str, str] | None) -> dict[str, Any]:
    return {key: graph.get_tensor_by_name(name) for key, name in (names or {}).items()}


def _output(spec: Any, key: str) -> Any:
    outputs = spec.export_outputs or {}
    if key not in outputs:
        raise InvalidArgumentError(
            f"tf.contrib.predictor.from_estimator: export_outputs has no '{key}'; it has "
            f"{', '.join(sorted(outputs)) or 'none'}"
        )
    return outputs[key].outputs


guard([sys.modules[__name__]], "tf.contrib.predictor")
