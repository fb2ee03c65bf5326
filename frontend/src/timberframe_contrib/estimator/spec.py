"""EstimatorSpec: what a model function returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, NoReturn

from timberframe.api.arrays import reshape
from timberframe.api.variables import Variable
from timberframe.train.scaffold import Scaffold
from timberframe.train.session_run_hook import SessionRunHook
from timberframe_contrib.estimator.export_outputs import ExportOutput, checked_export_outputs
from timberframe_core import nest
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.operation import Operation, Tensor


class ModeKeys:
    """What a model function is called for."""

    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "infer"


class _Fields(NamedTuple):
    mode: str
    predictions: Any
    loss: Any
    train_op: Any
    eval_metric_ops: dict[str, Any]
    export_outputs: dict[str, ExportOutput] | None
    training_chief_hooks: tuple[SessionRunHook, ...]
    training_hooks: tuple[SessionRunHook, ...]
    scaffold: Scaffold
    evaluation_hooks: tuple[SessionRunHook, ...]
    prediction_hooks: tuple[SessionRunHook, ...]


class EstimatorSpec(_Fields):
    """What a model function returns: operations for one mode, and what goes with them.

    mode: one of ModeKeys. predictions: a tensor or a dict of tensors; required to predict. loss: a scalar; required to
    train and to evaluate. train_op: a training step; required to train. eval_metric_ops: by name what a function of
    `tf.metrics` returns, (value, update). export_outputs: by name an ExportOutput, for export_saved_model.
    training_chief_hooks, training_hooks, evaluation_hooks, prediction_hooks: SessionRunHooks. scaffold: a
    tf.train.Scaffold.
    """

    __slots__ = ()

    def __new__(
        cls,
        mode: str,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metric_ops: Mapping[str, Any] | None = None,
        export_outputs: Mapping[str, ExportOutput] | None = None,
        training_chief_hooks: Iterable[SessionRunHook] | None = None,
        training_hooks: Iterable[SessionRunHook] | None = None,
        scaffold: Scaffold | None = None,
        evaluation_hooks: Iterable[SessionRunHook] | None = None,
        prediction_hooks: Iterable[SessionRunHook] | None = None,
    ) -> EstimatorSpec:
        _check_mode(mode)
        if scaffold is not None and not isinstance(scaffold, Scaffold):
            _wrong(f"scaffold is a {type(scaffold).__name__}; a tf.train.Scaffold is required", InvalidTypeError)
        return super().__new__(
            cls,
            mode=mode,
            predictions=_predictions(predictions, mode),
            loss=_loss(loss, mode),
            train_op=_train_op(train_op, mode),
            eval_metric_ops=_metrics(eval_metric_ops),
            export_outputs=checked_export_outputs(export_outputs, predictions, mode == ModeKeys.PREDICT),
            training_chief_hooks=_hooks(training_chief_hooks, "training_chief_hooks"),
            training_hooks=_hooks(training_hooks, "training_hooks"),
            scaffold=scaffold or Scaffold(),
            evaluation_hooks=_hooks(evaluation_hooks, "evaluation_hooks"),
            prediction_hooks=_hooks(prediction_hooks, "prediction_hooks"),
        )


def _wrong(fact: str, kind: type[InvalidArgumentError] = InvalidArgumentError) -> NoReturn:
    raise kind(f"EstimatorSpec: {fact}")


def _check_mode(mode: Any) -> None:
    if mode not in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT):
        _wrong(f"mode is {mode!r}; one of tf.estimator.ModeKeys is required")


def _predictions(given: Any, mode: str) -> Any:
    if given is None:
        if mode == ModeKeys.PREDICT:
            _wrong("there are no predictions; mode PREDICT requires a tensor or a dict of tensors")
        return {}
    for name, value in given.items() if isinstance(given, Mapping) else (("predictions", given),):
        _check_tensor(value, f"prediction '{name}'" if isinstance(given, Mapping) else "predictions")
    return given


def _loss(given: Any, mode: str) -> Any:
    if given is None:
        if mode != ModeKeys.PREDICT:
            _wrong("there is no loss; modes TRAIN and EVAL require one")
        return None
    _check_tensor(given, "loss")
    loss: Tensor = get_default_graph().as_graph_element(given)  # type: ignore[assignment]  # no operation, as checked
    if any(size not in (None, 1) for size in loss.static_shape or ()):
        _wrong(f"loss '{loss.name}' has shape {loss.shape}; a scalar is required, such as tf.reduce_mean gives")
    return loss if loss.shape.is_compatible_with([]) else reshape(loss, [])


def _train_op(given: Any, mode: str) -> Any:
    if given is None:
        if mode == ModeKeys.TRAIN:
            _wrong("there is no train_op; mode TRAIN requires one, such as optimizer.minimize gives")
        return None
    if not isinstance(given, Tensor | Operation | Variable):
        _wrong(f"train_op is a {type(given).__name__}; an operation is required", InvalidTypeError)
    _check_graph(given, "train_op")
    return get_default_graph().as_graph_element(given)


def _metrics(given: Mapping[str, Any] | None) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        _wrong(f"eval_metric_ops is a {type(given).__name__}; a dict is required", InvalidTypeError)
    for name, pair in given.items():
        if not isinstance(pair, tuple) or len(pair) != 2:
            _wrong(
                f"eval metric '{name}' is a {type(pair).__name__}; a pair (value, update) is required, as functions of "
                "tf.metrics return it",
                InvalidTypeError,
            )
        for element in nest.flatten(pair):
            _check_graph(element, f"eval metric '{name}'")
    return dict(given)


def _hooks(given: Iterable[SessionRunHook] | None, what: str) -> tuple[SessionRunHook, ...]:
    hooks = tuple(given or ())
    for hook in hooks:
        if not isinstance(hook, SessionRunHook):
            _wrong(f"{what} has a {type(hook).__name__}; a tf.train.SessionRunHook is required", InvalidTypeError)
    return hooks


def _check_tensor(value: Any, what: str) -> None:
    if not isinstance(value, Tensor | Variable):
        _wrong(f"{what} is a {type(value).__name__}; a tensor is required", InvalidTypeError)
    _check_graph(value, what)


def _check_graph(value: Any, what: str) -> None:
    graph = getattr(value, "graph", None)
    if graph is not None and graph is not get_default_graph():
        _wrong(f"{what} ('{value.name}') is of another graph; what model_fn returns is made in it, from its arguments")
