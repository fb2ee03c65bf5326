"""`train_and_evaluate`: an evaluation, and exports, after checkpoints of a training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from timberframe.train.checkpoint_hooks import CheckpointSaverListener
from timberframe.train.session_run_hook import SessionRunHook
from timberframe.train.timers import SecondOrStepTimer
from timberframe_contrib.estimator.estimator import Estimator
from timberframe_contrib.estimator.exporters import Exporter, export_all
from timberframe_core import logging
from timberframe_core.arguments import instance
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError


class _Train(NamedTuple):
    input_fn: Callable[..., Any]
    max_steps: int | None
    hooks: tuple[SessionRunHook, ...]
    saving_listeners: tuple[CheckpointSaverListener, ...]


class TrainSpec(_Train):
    """How `train_and_evaluate` trains: the arguments of `Estimator.train`."""

    __slots__ = ()

    def __new__(
        cls,
        input_fn: Callable[..., Any],
        max_steps: int | None = None,
        hooks: Iterable[SessionRunHook] | None = None,
        saving_listeners: Iterable[CheckpointSaverListener] | None = None,
    ) -> TrainSpec:
        _check_function(input_fn, "TrainSpec")
        if max_steps is not None and max_steps <= 0:
            raise InvalidArgumentError(f"TrainSpec: max_steps is {max_steps}; it must be positive")
        return super().__new__(cls, input_fn, max_steps, _hooks(hooks, "TrainSpec"), tuple(saving_listeners or ()))


class _Eval(NamedTuple):
    input_fn: Callable[..., Any]
    steps: int | None
    name: str | None
    hooks: tuple[SessionRunHook, ...]
    exporters: tuple[Exporter, ...]
    start_delay_secs: float
    throttle_secs: float


class EvalSpec(_Eval):
    """How `train_and_evaluate` evaluates: the arguments of `Estimator.evaluate`, and when.

    exporters: Exporters, one or several. throttle_secs: the least number of seconds between evaluations.
    start_delay_secs: TensorFlow's for several machines; changes nothing.
    """

    __slots__ = ()

    def __new__(
        cls,
        input_fn: Callable[..., Any],
        steps: int | None = 100,
        name: str | None = None,
        hooks: Iterable[SessionRunHook] | None = None,
        exporters: Any = None,
        start_delay_secs: float = 120,
        throttle_secs: float = 600,
    ) -> EvalSpec:
        _check_function(input_fn, "EvalSpec")
        if steps is not None and steps <= 0:
            raise InvalidArgumentError(f"EvalSpec: steps is {steps}; it must be positive")
        for label, seconds in (("start_delay_secs", start_delay_secs), ("throttle_secs", throttle_secs)):
            if seconds < 0:
                raise InvalidArgumentError(f"EvalSpec: {label} is {seconds}; it must not be negative")
        listed = (exporters,) if isinstance(exporters, Exporter) else tuple(exporters or ())
        for exporter in listed:
            instance(exporter, Exporter, "EvalSpec: an item of exporters", "a tf.estimator.Exporter")
        names = [e.name for e in listed]
        if len(set(names)) < len(names):
            raise InvalidArgumentError(f"EvalSpec: exporters have the names {names}; each needs one of its own")
        return super().__new__(
            cls, input_fn, steps, name, _hooks(hooks, "EvalSpec"), listed, start_delay_secs, throttle_secs
        )


def _check_function(given: Any, owner: str) -> None:
    if not callable(given):
        raise InvalidTypeError(f"{owner}: input_fn is {given!r}; a function is required")


def _hooks(hooks: Iterable[SessionRunHook] | None, owner: str) -> tuple[SessionRunHook, ...]:
    return tuple(
        instance(h, SessionRunHook, f"{owner}: an item of hooks", "a tf.train.SessionRunHook") for h in hooks or ()
    )


class _Evaluates(CheckpointSaverListener):
    """Evaluates after checkpoints: not the first, not more often than throttle_secs, and after the last in any case."""

    def __init__(self, estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec) -> None:
        self.metrics: dict[str, Any] | None = None
        self.exported: Sequence[Any] = []
        self._estimator, self._train_spec, self._eval_spec = estimator, train_spec, eval_spec
        self._timer = SecondOrStepTimer(every_secs=eval_spec.throttle_secs)
        self._first = True

    def begin(self) -> None:
        """Begins with a new training."""
        self._timer.reset()
        self._first = True

    def after_save(self, session: Any, global_step_value: int) -> None:
        """Evaluates where it is time."""
        if self._first:
            self._first = False  # nothing was trained yet
        elif self._timer.should_trigger_for_step(global_step_value):
            self._evaluate(global_step_value)
        else:
            seconds = self._eval_spec.throttle_secs
            logging.info("Skip the current checkpoint eval due to throttle secs (%s secs).", seconds)

    def end(self, session: Any, global_step_value: int) -> None:
        """Evaluates the last checkpoint."""
        if global_step_value != self._timer.last_triggered_step():
            self._evaluate(global_step_value)

    def _evaluate(self, step: int) -> None:
        self._timer.update_last_triggered_step(step)
        spec, last = self._eval_spec, self._train_spec.max_steps
        self.metrics = self._estimator.evaluate(spec.input_fn, spec.steps, spec.hooks, name=spec.name)
        final = last is None or int(self.metrics["global_step"]) >= last
        self.exported = export_all(spec.exporters, self._estimator, self.metrics, final)


def train_and_evaluate(
    estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec
) -> tuple[dict[str, Any] | None, Sequence[Any]]:
    """Trains an estimator, and evaluates and exports it after checkpoints and at the end.

    Returns the metrics of the last evaluation and what was exported after it; None and [] where the estimator had
    reached max_steps before.
    """
    instance(estimator, Estimator, "train_and_evaluate: estimator", "a tf.estimator.Estimator")
    instance(train_spec, TrainSpec, "train_and_evaluate: train_spec", "a tf.estimator.TrainSpec")
    instance(eval_spec, EvalSpec, "train_and_evaluate: eval_spec", "a tf.estimator.EvalSpec")
    listener = _Evaluates(estimator, train_spec, eval_spec)
    estimator.train(
        train_spec.input_fn,
        train_spec.hooks,
        max_steps=train_spec.max_steps,
        saving_listeners=[*train_spec.saving_listeners, listener],
    )
    return listener.metrics, listener.exported
