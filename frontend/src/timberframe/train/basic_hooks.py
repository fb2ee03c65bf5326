"""Hooks that log, watch and stop a training."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from timberframe.train.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from timberframe.train.steps import get_global_step
from timberframe.train.timers import NeverTriggerTimer, SecondOrStepTimer, check_period
from timberframe_core import logging
from timberframe_core.arguments import listed
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError, OpError, OutOfRangeError, WrongStateError
from timberframe_core.graph.graph import get_default_graph


class NanLossDuringTrainingError(OpError, RuntimeError):
    """The loss is no number any more."""

    def __init__(self, message: str = "NaN loss during training.") -> None:
        super().__init__(message)


def _tensor(given: Any) -> Any:
    """Returns the tensor of the default graph that is given, or named: by the name of an operation its only output."""
    graph = get_default_graph()
    if not isinstance(given, str) or ":" in given:
        return graph.as_graph_element(given)
    op = graph.get_operation_by_name(given)
    if len(op.outputs) != 1:
        raise InvalidArgumentError(
            f"LoggingTensorHook: operation '{given}' has {len(op.outputs)} outputs; name one, such as '{given}:0'"
        )
    return op.outputs[0]


def required_global_step(owner: str) -> Any:
    """Returns the global step of the default graph; WrongStateError where there is none."""
    found = get_global_step()
    if found is None:
        raise WrongStateError(f"{owner}: the graph has no global step; tf.train.get_or_create_global_step() makes one")
    return found


class LoggingTensorHook(SessionRunHook):
    """Logs tensors (level INFO) every so many runs or seconds, or at the end.

    tensors: a map from tags to tensors or their names, or a list of these. every_n_iter, every_n_secs: one of them,
    or neither with at_end. formatter: makes the line of a map from tags to values.
    """

    def __init__(
        self,
        tensors: Mapping[str, Any] | Sequence[Any],
        every_n_iter: int | None = None,
        every_n_secs: float | None = None,
        at_end: bool = False,
        formatter: Callable[[dict[str, Any]], str] | None = None,
    ) -> None:
        if not at_end or every_n_iter is not None or every_n_secs is not None:
            check_period("LoggingTensorHook", "every_n_iter", every_n_iter, "every_n_secs", every_n_secs)
        if isinstance(tensors, Mapping):
            self._tensors, self._tag_order = dict(tensors), list(tensors)
        else:
            items = listed(tensors, "LoggingTensorHook: tensors", "tensors or names")
            self._tag_order = [item if isinstance(item, str) else item.name for item in items]
            self._tensors = dict(zip(self._tag_order, items, strict=True))
        self._formatter = formatter
        self._log_at_end = at_end
        self._timer: SecondOrStepTimer | NeverTriggerTimer = NeverTriggerTimer()
        if every_n_iter is not None or every_n_secs is not None:
            self._timer = SecondOrStepTimer(every_secs=every_n_secs, every_steps=every_n_iter)
        self._iter_count = 0
        self._should_trigger = False
        self._current_tensors: dict[str, Any] = {}

    def begin(self) -> None:
        """Looks the tensors up."""
        self._timer.reset()
        self._iter_count = 0
        self._current_tensors = {tag: _tensor(tensor) for tag, tensor in self._tensors.items()}

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Asks for the tensors where it is time."""
        self._should_trigger = self._timer.should_trigger_for_step(self._iter_count)
        return SessionRunArgs(self._current_tensors) if self._should_trigger else None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Logs them."""
        if self._should_trigger:
            self._log(run_values.results)
        self._iter_count += 1

    def end(self, session: Any) -> None:
        """Logs them with at_end."""
        if self._log_at_end:
            self._log(session.run(self._current_tensors))

    def _log(self, values: dict[str, Any]) -> None:
        seconds, _ = self._timer.update_last_triggered_step(self._iter_count)
        if self._formatter is not None:
            logging.info("%s", self._formatter(values))
            return
        with np.printoptions(suppress=True):
            line = ", ".join(f"{tag} = {values[tag]}" for tag in self._tag_order)
        logging.info("%s", line if seconds is None else f"{line} ({seconds:.3f} sec)")


class StopAtStepHook(SessionRunHook):
    """Asks to stop after num_steps further steps, or at the global step last_step; one of the two is given."""

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        if (num_steps is None) == (last_step is None):
            given = "neither" if num_steps is None else "both"
            raise InvalidArgumentError(
                f"StopAtStepHook: {given} of num_steps and last_step given; exactly one is required"
            )
        self._num_steps = num_steps
        self._last_step = last_step
        self._global_step: Any = None

    def begin(self) -> None:
        """Looks the global step up."""
        self._global_step = required_global_step("StopAtStepHook")

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Finds out at which step to stop, once."""
        if self._last_step is None:
            assert self._num_steps is not None
            self._last_step = int(session.run(self._global_step)) + self._num_steps

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the global step."""
        return SessionRunArgs(self._global_step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Asks to stop where the last step is reached: the step that the run saw may be one before the present one."""
        assert self._last_step is not None
        if run_values.results + 1 >= self._last_step and run_context.session.run(self._global_step) >= self._last_step:
            run_context.request_stop()


class NanTensorHook(SessionRunHook):
    """Watches a loss: where it is NaN, raises NanLossDuringTrainingError, or asks to stop without fail_on_nan_loss."""

    def __init__(self, loss_tensor: Any, fail_on_nan_loss: bool = True) -> None:
        self._loss_tensor = loss_tensor
        self._fail_on_nan_loss = fail_on_nan_loss

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the loss."""
        return SessionRunArgs(self._loss_tensor)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Looks at it."""
        if not np.isnan(run_values.results).any():
            return
        if self._fail_on_nan_loss:
            logging.error("Model diverged with loss = NaN.")
            raise NanLossDuringTrainingError
        logging.warning("Model diverged with loss = NaN.")
        run_context.request_stop()  # no error: training has a result


class FinalOpsHook(SessionRunHook):
    """Runs tensors and operations at the end. final_ops: in any structure. final_ops_feed_dict: feeds for them."""

    def __init__(self, final_ops: Any, final_ops_feed_dict: Any = None) -> None:
        self._final_ops = final_ops
        self._final_ops_feed_dict = final_ops_feed_dict
        self._final_ops_values: Any = None

    @property
    def final_ops_values(self) -> Any:
        """Their values in the same structure, None before the end."""
        return self._final_ops_values

    def end(self, session: Any) -> None:
        """Runs them."""
        if self._final_ops is None:
            return
        try:
            self._final_ops_values = session.run(self._final_ops, self._final_ops_feed_dict)
        except (OutOfRangeError, StopIteration):
            logging.warning("FinalOpsHook: final_ops take from an input that has ended; they must not depend on it")
            raise


class FeedFnHook(SessionRunHook):
    """Feeds each run with what a function without arguments returns: a feed_dict."""

    def __init__(self, feed_fn: Callable[[], Any]) -> None:
        if not callable(feed_fn):
            raise InvalidTypeError(f"FeedFnHook: feed_fn is {feed_fn!r}; a function that returns feeds is required")
        self.feed_fn = feed_fn

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Feeds."""
        return SessionRunArgs(None, self.feed_fn())


class GlobalStepWaiterHook(SessionRunHook):
    """Lets the first run wait until the global step has come so far, which other workers raise."""

    def __init__(self, wait_until_step: int) -> None:
        self._wait_until_step = wait_until_step
        self._global_step: Any = None
        self._reached = False

    def begin(self) -> None:
        """Looks the global step up."""
        self._reached = False
        self._global_step = required_global_step("GlobalStepWaiterHook")

    def before_run(self, run_context: SessionRunContext) -> None:
        """Waits."""
        while not self._reached and self._wait_until_step > 0:
            step = int(run_context.session.run(self._global_step))
            self._reached = step >= self._wait_until_step
            if not self._reached:
                logging.log_every_n(
                    logging.INFO, "waiting for global step %d, which is %d", 120, self._wait_until_step, step
                )
                time.sleep(0.5)
