"""Estimator: a model that is trained, evaluated, asked and exported."""

from __future__ import annotations

import copy
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from timberframe.api.framework import GraphKeys
from timberframe.api.random_seeds import set_random_seed
from timberframe.train.basic_hooks import StopAtStepHook
from timberframe.train.checkpoint_state import latest_checkpoint
from timberframe.train.checkpoint_utils import list_variables, load_variable
from timberframe.train.monitored_session import MonitoredSession
from timberframe.train.session_creators import ChiefSessionCreator
from timberframe.train.session_run_hook import SessionRunHook
from timberframe.train.steps import create_global_step
from timberframe_contrib.estimator import evaluation, exporting, training_run
from timberframe_contrib.estimator.calls import call_input_fn, call_model_fn, check_model_fn
from timberframe_contrib.estimator.run_config import RunConfig
from timberframe_contrib.estimator.spec import EstimatorSpec, ModeKeys
from timberframe_contrib.estimator.warm_start import WarmStartSettings
from timberframe_core import logging
from timberframe_core.arguments import instance
from timberframe_core.errors import InvalidArgumentError, NotFoundError
from timberframe_core.graph.graph import Graph

InputFn = Callable[..., Any]


class Estimator:
    """A model, in a folder of checkpoints.

    model_fn: a function of features, labels, mode, params and config, or of some of these, that returns an
    EstimatorSpec. model_dir: the folder, that of config or a new one if None. config: a RunConfig. params: handed to
    model_fn. warm_start_from: a checkpoint, folder or WarmStartSettings whose values the first training begins with.

    Training that was killed goes on when `train` is called again, with the same random numbers and elements of a
    Dataset, as in `tf.train.MonitoredTrainingSession`.
    """

    def __init__(
        self,
        model_fn: Callable[..., EstimatorSpec],
        model_dir: Any = None,
        config: RunConfig | None = None,
        params: Any = None,
        warm_start_from: str | WarmStartSettings | None = None,
    ) -> None:
        check_model_fn(model_fn, params)
        self._model_fn = model_fn
        self._params = copy.deepcopy({} if params is None else params)
        config = RunConfig() if config is None else instance(config, RunConfig, "Estimator: config", "a RunConfig")
        self._model_dir = _model_dir(type(self).__name__, model_dir, config.model_dir)
        self._config = copy.deepcopy(config).replace(model_dir=self._model_dir)
        self._warm_start = WarmStartSettings.of(warm_start_from)

    @property
    def model_dir(self) -> str:
        """The folder."""
        return self._model_dir

    @property
    def config(self) -> RunConfig:
        """How it runs."""
        return copy.deepcopy(self._config)

    @property
    def params(self) -> Any:
        """A copy of the params."""
        return copy.deepcopy(self._params)

    @property
    def model_fn(self) -> Callable[..., EstimatorSpec]:
        """The model function as a function of features, labels, mode and config, whatever arguments it has."""

        def public_model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
            return call_model_fn(self._model_fn, features, labels, mode, self.params, config)

        return public_model_fn

    # What it has learned

    def latest_checkpoint(self) -> str | None:
        """Returns the path of the latest checkpoint; None before the first training."""
        return latest_checkpoint(self._model_dir)

    def get_variable_names(self) -> list[str]:
        """Returns the names of all variables in the latest checkpoint."""
        return [name for name, _ in list_variables(self._trained())]

    def get_variable_value(self, name: str) -> np.ndarray:
        """Returns the value of a variable in the latest checkpoint."""
        return np.asarray(load_variable(self._trained(), name))

    def _trained(self) -> str:
        found = self.latest_checkpoint()
        if found is None:
            raise _MissingModelError(
                f"Estimator: there is no checkpoint in model_dir '{self._model_dir}'; `train` writes one"
            )
        return found

    # Training

    def train(
        self,
        input_fn: InputFn,
        hooks: Sequence[SessionRunHook] | None = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Sequence[Any] | None = None,
    ) -> Estimator:
        """Trains from the latest checkpoint on, until the input ends, for so many steps, or up to a step.

        input_fn: returns (features, labels), or a tf.data.Dataset of such pairs. hooks: SessionRunHooks. steps: how
        many more; max_steps: the last global step; neither: until the input ends. saving_listeners:
        CheckpointSaverListeners. Returns itself.
        """
        if steps is not None and max_steps is not None:
            raise InvalidArgumentError("Estimator.train: both of steps and max_steps given; one at most is required")
        for name, value in (("steps", steps), ("max_steps", max_steps)):
            if value is not None and value <= 0:
                raise InvalidArgumentError(f"Estimator.train: {name} is {value}; it must be positive")
        if max_steps is not None and self._global_step() >= max_steps:
            logging.info("Skipping training since max_steps has already saved.")
            return self
        all_hooks = _checked_hooks(hooks, "train")
        if steps is not None or max_steps is not None:
            all_hooks.append(StopAtStepHook(steps, max_steps))
        with self._graph():
            features, labels = call_input_fn(input_fn, ModeKeys.TRAIN, self._params_of(ModeKeys.TRAIN), self.config)
            spec = self._spec(features, labels, ModeKeys.TRAIN)
            if self._warm_start is not None and self.latest_checkpoint() is None:
                self._warm_start.apply()
            loss = training_run.train(spec, self._config, all_hooks, saving_listeners)
        logging.info("Loss for final step: %s.", loss)
        return self

    def _global_step(self) -> int:
        """Returns the global step of the latest checkpoint, 0 without one."""
        path = self.latest_checkpoint()
        if path is None:
            return 0
        try:
            return int(load_variable(path, GraphKeys.GLOBAL_STEP))
        except NotFoundError:
            return 0

    @contextmanager
    def _graph(self) -> Iterator[Graph]:
        """A new graph with a global step, which is the default one inside."""
        with Graph().as_default() as graph, graph.device(self._config.device_fn):
            set_random_seed(self._config.tf_random_seed)
            create_global_step(graph)
            yield graph

    def _spec(self, features: Any, labels: Any, mode: str) -> EstimatorSpec:
        return call_model_fn(self._model_fn, features, labels, mode, self._params_of(mode), self.config)

    def _params_of(self, mode: str) -> Any:
        """Returns what input_fn and model_fn get as params in a mode."""
        return self.params

    # Evaluating

    def evaluate(
        self,
        input_fn: InputFn,
        steps: int | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        checkpoint_path: str | None = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """Returns the metrics of the model by name, with `loss` (the mean of batches) and `global_step`.

        input_fn: as for train. steps: how many batches, all if None. checkpoint_path: the latest one if None; without
        one the model is initialized. name: of the evaluation, whose summaries go to the folder ``eval_<name>``.
        """
        if steps is not None and steps <= 0:
            raise InvalidArgumentError(f"Estimator.evaluate: steps is {steps}; it must be positive")
        all_hooks = _checked_hooks(hooks, "evaluate")
        path = checkpoint_path or self._latest_or_none("evaluate")
        with self._graph():
            features, labels = call_input_fn(input_fn, ModeKeys.EVAL, self._params_of(ModeKeys.EVAL), self.config)
            spec = self._spec(features, labels, ModeKeys.EVAL)
            if path is None and self._warm_start is not None:
                self._warm_start.apply()
            return evaluation.evaluate(spec, self._config, path, steps, all_hooks, self.eval_dir(name))

    def eval_dir(self, name: str | None = None) -> str:
        """Returns the folder of the summaries of an evaluation."""
        return os.path.join(self._model_dir, f"eval_{name}" if name else "eval")

    def _latest_or_none(self, what: str) -> str | None:
        path = self.latest_checkpoint()
        if path is None:
            logging.info(
                "Could not find trained model in model_dir: %s, running initialization to %s.", self._model_dir, what
            )
        return path

    # Predicting

    def predict(
        self,
        input_fn: InputFn,
        predict_keys: Sequence[str] | str | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        checkpoint_path: str | None = None,
        yield_single_examples: bool = True,
    ) -> Iterator[Any]:
        """Yields the predictions of each example, until the input ends: arrays, or dicts of arrays.

        input_fn: returns features, or a Dataset of them; labels beside them are left out. predict_keys: which of the
        predictions, if they are a dict. yield_single_examples: False to yield whole batches.
        """
        all_hooks = _checked_hooks(hooks, "predict")
        path = checkpoint_path or self._latest_or_none("predict")
        with self._graph():
            features, _ = call_input_fn(input_fn, ModeKeys.PREDICT, self._params_of(ModeKeys.PREDICT), self.config)
            spec = self._spec(features, None, ModeKeys.PREDICT)
            if path is None and self._warm_start is not None:
                self._warm_start.apply()
            predictions = _chosen(spec.predictions, predict_keys)
            creator = ChiefSessionCreator(
                spec.scaffold, config=self._config.session_config, checkpoint_filename_with_path=path
            )
            with MonitoredSession(creator, [*all_hooks, *spec.prediction_hooks]) as session:
                while not session.should_stop():
                    batch = session.run(predictions)
                    if yield_single_examples:
                        yield from _examples(batch)
                    else:
                        yield batch

    # Exporting

    def export_saved_model(
        self,
        export_dir_base: Any,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        experimental_mode: str = ModeKeys.PREDICT,
    ) -> bytes:
        """Writes the model as a SavedModel into a new folder, named by the time; returns its path, as bytes.

        serving_input_receiver_fn: returns a tf.estimator.export.ServingInputReceiver. assets_extra: files to copy, by
        their paths in the folder ``assets.extra``. checkpoint_path: the latest one if None.
        """
        path = checkpoint_path or self._trained()
        with self._graph():
            receiver = exporting.receive(serving_input_receiver_fn)
            spec = self._spec(receiver.features, None, experimental_mode)
            base, settings = os.fsdecode(export_dir_base), self._config.session_config
            return exporting.export(spec, receiver, base, path, assets_extra, as_text, settings)

    def export_savedmodel(
        self,
        export_dir_base: Any,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        strip_default_attrs: bool = False,
    ) -> bytes:
        """`export_saved_model` by its older name."""
        receive = serving_input_receiver_fn
        return self.export_saved_model(export_dir_base, receive, assets_extra, as_text, checkpoint_path)


class _MissingModelError(NotFoundError, ValueError):
    """There is nothing trained yet; TensorFlow raises a ValueError."""


def _model_dir(owner: str, given: Any, configured: str | None) -> str:
    if given is None:
        return configured or tempfile.mkdtemp()
    folder: str = os.fspath(instance(given, (str, bytes, os.PathLike), f"{owner}: model_dir", "a path"))
    if configured is not None and configured != folder:
        raise InvalidArgumentError(
            f"{owner}: model_dir is '{folder}', and config has '{configured}'; give one, or equal ones"
        )
    return folder


def _checked_hooks(hooks: Sequence[SessionRunHook] | None, what: str) -> list[SessionRunHook]:
    return [
        instance(hook, SessionRunHook, f"Estimator.{what}: an item of hooks", "a tf.train.SessionRunHook")
        for hook in hooks or ()
    ]


def _chosen(predictions: Any, keys: Sequence[str] | str | None) -> Any:
    """Returns the predictions of these keys."""
    if not keys:
        return predictions
    if not isinstance(predictions, Mapping):
        raise InvalidArgumentError(
            "Estimator.predict: predict_keys are given, and predictions are no dict; leave them out"
        )
    wanted = [keys] if isinstance(keys, str) else list(keys)
    found = {key: tensor for key, tensor in predictions.items() if key in wanted}
    if not found:
        raise InvalidArgumentError(
            f"Estimator.predict: predict_keys are {', '.join(wanted)}, and predictions are {', '.join(predictions)}; "
            "one at least must be among them"
        )
    return found


def _examples(batch: Any) -> Iterator[Any]:
    """Yields the examples of a batch of predictions."""
    if not isinstance(batch, Mapping):
        yield from batch
        return
    sizes = {name: value.shape[0] if np.ndim(value) else None for name, value in batch.items()}
    if len(set(sizes.values())) > 1 or None in sizes.values():
        raise InvalidArgumentError(
            f"Estimator.predict: predictions have batches of sizes {sizes}; equal ones are required, or "
            "yield_single_examples=False"
        )
    for i in range(next(iter(sizes.values()), None) or 0):
        yield {name: value[i] for name, value in batch.items()}
