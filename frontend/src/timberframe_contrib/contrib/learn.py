"""`tf.contrib.learn`: the modes that its programs name, and words as numbers; tf.estimator has the estimators."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from timberframe.lazy import lazy_names
from timberframe_contrib.estimator.run_config import RunConfig as _RunConfig
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graphdef import messages

__all__ = ["MetricSpec", "ModeKeys", "RunConfig"]


class ModeKeys:
    """What a graph is made for; these are the values of tf.estimator.ModeKeys, but for that of predictions."""

    TRAIN = "train"
    EVAL = "eval"
    INFER = "infer"


class MetricSpec:
    """A metric of an evaluation: a function, and what it is given.

    metric_fn: takes predictions and labels, and weights where weight_key is given, by position or by the usual names of
    these. prediction_key, label_key, weight_key: which of several they are.
    """

    def __init__(
        self, metric_fn: Callable[..., Any], prediction_key: str | None = None, label_key: str | None = None,
        weight_key: str | None = None,
    ) -> None:  # fmt: skip
        self._metric_fn = metric_fn
        self._prediction_key, self._label_key, self._weight_key = prediction_key, label_key, weight_key

    metric_fn = property(lambda self: self._metric_fn, doc="The function.")
    prediction_key = property(lambda self: self._prediction_key, doc="Which of several predictions.")
    label_key = property(lambda self: self._label_key, doc="Which of several labels.")
    weight_key = property(lambda self: self._weight_key, doc="Which feature has the weights.")

    def create_metric_ops(self, inputs: Any, labels: Any, predictions: Any) -> Any:
        """Returns what the function gives. inputs: features, among which the weights are."""
        given = [_chosen("predictions", predictions, self._prediction_key), _chosen("labels", labels, self._label_key)]
        parameters = list(inspect.signature(self._metric_fn).parameters)
        if parameters[:2] == ["labels", "predictions"]:
            given.reverse()
        if self._weight_key is None:
            return self._metric_fn(*given)
        return self._metric_fn(*given, weights=_chosen("inputs", inputs, self._weight_key))


def _chosen(what: str, given: Any, key: str | None) -> Any:
    """Returns one of several tensors by its name; the only one where there is no name."""
    if isinstance(given, dict):
        if key is None and len(given) == 1:
            return next(iter(given.values()))
        if key not in given:
            raise InvalidArgumentError(f"MetricSpec: {what} are {sorted(given)}; {key!r} must be among them")
        return given[key]
    if key is not None and what != "inputs":
        raise InvalidArgumentError(f"MetricSpec: {what} is one tensor; {key!r} can name one of several only")
    return given


class RunConfig(_RunConfig):
    """How an estimator runs, by the arguments of `tf.contrib.learn`.

    Those that `tf.estimator.RunConfig` has mean the same. gpu_memory_fraction, log_device_placement: of sessions where
    there is no session_config. master, evaluation_master: of sessions. num_cores changes nothing.
    """

    def __init__(
        self,
        master: str | None = None,
        num_cores: int = 0,
        log_device_placement: bool = False,
        gpu_memory_fraction: float = 1,
        tf_random_seed: int | None = None,
        save_summary_steps: int | None = 100,
        save_checkpoints_secs: Any = 600,
        save_checkpoints_steps: Any = None,
        keep_checkpoint_max: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000,
        log_step_count_steps: int | None = 100,
        protocol: Any = None,
        evaluation_master: str = "",
        model_dir: Any = None,
        session_config: Any = None,
        session_creation_timeout_secs: float = 7200,
    ) -> None:
        if session_config is None:
            session_config = messages.ConfigProto(log_device_placement=log_device_placement)
            session_config.gpu_options.per_process_gpu_memory_fraction = gpu_memory_fraction
        super().__init__(
            model_dir=model_dir,
            tf_random_seed=tf_random_seed,
            save_summary_steps=save_summary_steps,
            save_checkpoints_steps=save_checkpoints_steps,
            save_checkpoints_secs=save_checkpoints_secs,
            session_config=session_config,
            keep_checkpoint_max=keep_checkpoint_max,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            log_step_count_steps=log_step_count_steps,
            protocol=protocol,
            session_creation_timeout_secs=session_creation_timeout_secs,
        )
        self.master, self.evaluation_master = master or "", evaluation_master
        self.tf_config = session_config


__getattr__ = lazy_names(
    __name__,
    {
        "datasets": "timberframe_contrib.contrib.learn_datasets",
        "preprocessing": "timberframe_contrib.contrib.preprocessing",
    },
)
