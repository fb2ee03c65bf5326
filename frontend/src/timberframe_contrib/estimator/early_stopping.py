"""Hooks that end a training by its evaluations: those that an estimator wrote into the summaries of a folder."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from glob import glob
from pathlib import Path
from typing import Any

from timberframe.summary.writer import summary_iterator
from timberframe.train.basic_hooks import required_global_step
from timberframe.train.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from timberframe.train.timers import SecondOrStepTimer
from timberframe_contrib.estimator.estimator import Estimator
from timberframe_core import logging
from timberframe_core.errors import InvalidTypeError

__all__ = [
    "make_early_stopping_hook", "read_eval_metrics", "stop_if_higher_hook", "stop_if_lower_hook",
    "stop_if_no_decrease_hook", "stop_if_no_increase_hook",
]  # fmt: skip

_Better = Callable[[Any, Any], bool]


class _StopHook(SessionRunHook):
    """Asks to stop where a function says so."""

    def __init__(self, should_stop: Callable[[], Any], seconds: float | None, steps: int | None) -> None:
        self._should_stop, self._timer = should_stop, SecondOrStepTimer(seconds, steps)
        self._global_step: Any = None

    def begin(self) -> None:
        """Looks the global step up."""
        self._global_step = required_global_step("make_early_stopping_hook")

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the global step."""
        return SessionRunArgs(self._global_step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Asks the function, where the time for it has come."""
        step = int(run_values.results)
        if not self._timer.should_trigger_for_step(step):
            return
        self._timer.update_last_triggered_step(step)
        if self._should_stop():
            logging.info("Requesting early stopping at global step %d", step)
            run_context.request_stop()


def make_early_stopping_hook(
    estimator: Any, should_stop_fn: Callable[[], Any], run_every_secs: float | None = 60, run_every_steps: Any = None
) -> SessionRunHook:
    """Returns a hook that ends training where `should_stop_fn()` is true.

    It is asked every run_every_secs seconds, or every run_every_steps steps; one of the two is None.
    """
    if not isinstance(estimator, Estimator):
        raise InvalidTypeError(
            f"make_early_stopping_hook: estimator is {estimator!r}; a tf.estimator.Estimator is required"
        )
    if not callable(should_stop_fn):
        raise InvalidTypeError(
            f"make_early_stopping_hook: should_stop_fn is {should_stop_fn!r}; a function is required"
        )
    return _StopHook(should_stop_fn, run_every_secs, run_every_steps)


def stop_if_higher_hook(
    estimator: Any,
    metric_name: str,
    threshold: float,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """Returns a hook that ends training after an evaluation whose metric is above a threshold, from step min_steps on.

    eval_dir: the folder of the evaluations, `estimator.eval_dir()` by default.
    """
    found = _Evaluations(estimator, metric_name, eval_dir, min_steps)
    return make_early_stopping_hook(
        estimator, lambda: found.one_is(operator.gt, threshold), run_every_secs, run_every_steps
    )


def stop_if_lower_hook(
    estimator: Any,
    metric_name: str,
    threshold: float,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """`stop_if_higher_hook` for a metric below a threshold."""
    found = _Evaluations(estimator, metric_name, eval_dir, min_steps)
    return make_early_stopping_hook(
        estimator, lambda: found.one_is(operator.lt, threshold), run_every_secs, run_every_steps
    )


def stop_if_no_increase_hook(
    estimator: Any,
    metric_name: str,
    max_steps_without_increase: int,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """Returns a hook that ends training once a metric's greatest value is so many steps old, of
    evaluations from min_steps on.

    eval_dir: the folder of the evaluations, `estimator.eval_dir()` by default.
    """
    found = _Evaluations(estimator, metric_name, eval_dir, min_steps)
    return make_early_stopping_hook(
        estimator, lambda: found.best_is_old(operator.gt, max_steps_without_increase), run_every_secs, run_every_steps
    )


def stop_if_no_decrease_hook(
    estimator: Any,
    metric_name: str,
    max_steps_without_decrease: int,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """`stop_if_no_increase_hook` for a metric's least value."""
    found = _Evaluations(estimator, metric_name, eval_dir, min_steps)
    return make_early_stopping_hook(
        estimator, lambda: found.best_is_old(operator.lt, max_steps_without_decrease), run_every_secs, run_every_steps
    )


def read_eval_metrics(eval_dir: str) -> dict[int, dict[str, float]]:
    """Returns the metrics of each evaluation in a folder's event files, by global step in its order."""
    found: dict[int, dict[str, float]] = {}
    for path in sorted(glob(str(Path(eval_dir) / "*.tfevents.*"))):
        for event in summary_iterator(path):
            values = {v.tag: v.simple_value for v in event.summary.value if v.HasField("simple_value")}
            if values:
                found[event.step] = values
    return dict(sorted(found.items()))


class _Evaluations:
    """A metric's values in the evaluations of a folder."""

    def __init__(self, estimator: Any, metric: str, folder: str | None, min_steps: int) -> None:
        self._metric, self._min_steps = metric, min_steps
        self._folder = folder or estimator.eval_dir()

    def _values(self) -> Iterator[tuple[int, float]]:
        for step, metrics in read_eval_metrics(self._folder).items():
            if step >= self._min_steps:
                yield step, metrics[self._metric]

    def one_is(self, better: _Better, threshold: float) -> bool:
        """Returns whether a value is better than a threshold."""
        return any(better(value, threshold) for _, value in self._values())

    def best_is_old(self, better: _Better, steps: int) -> bool:
        """Returns whether an evaluation came so many steps after the best one before it, and was not better."""
        best: tuple[int, float] | None = None
        for step, value in self._values():
            if best is None or better(value, best[1]):
                best = step, value
            elif step - best[0] >= steps:
                return True
        return False
