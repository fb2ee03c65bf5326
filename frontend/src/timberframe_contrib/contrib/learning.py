"""`tf.contrib.slim.learning`: an operation that trains a model, and the loop that runs it under a Supervisor."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from timberframe import train as _train
from timberframe.api.arrays import check_numerics as _check_numerics
from timberframe.api.arrays import identity
from timberframe.api.comparison import equal, greater_equal
from timberframe.api.composites import clip_by_norm, global_norm
from timberframe.api.framework import GraphKeys, constant, control_dependencies, get_collection, group
from timberframe.api.variable_collections import trainable_variables
from timberframe.summary.functions import histogram, scalar
from timberframe_core import logging
from timberframe_core.config import RunMetadata, RunOptions
from timberframe_core.errors import AbortedError, InvalidArgumentError, OutOfRangeError
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.graph import Graph, get_default_graph
from timberframe_core.graph.indexed_slices import IndexedSlices
from timberframe_core.graph.operation import Tensor

_DEFAULT: Any = _train.Supervisor.USE_DEFAULT
_GLOBAL_STEP: Any = object()
_SECONDS_BETWEEN_LOOKS = 0.1

Gradients = Sequence[tuple[Any, Any]]


def _mapped(gradient: Any, function: Callable[[Any], Any]) -> Any:
    """Returns a function of a gradient; of rows, of their values."""
    if isinstance(gradient, IndexedSlices):
        return IndexedSlices(function(gradient.values), gradient.indices, gradient.dense_shape)
    return function(gradient)


def _times(factor: Any, values: Any) -> Any:
    return values * factor


def clip_gradient_norms(gradients_to_variables: Gradients, max_norm: float) -> list[tuple[Any, Any]]:
    """Returns pairs (gradient, variable) with each gradient's norm at most max_norm."""
    return [
        (None if g is None else _mapped(g, lambda x: clip_by_norm(x, max_norm)), v) for g, v in gradients_to_variables
    ]


def multiply_gradients(grads_and_vars: Gradients, gradient_multipliers: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    """Returns pairs (gradient, variable) with gradients times factors, by variables or the
    names of their operations.
    """
    if not gradient_multipliers:
        raise InvalidArgumentError("multiply_gradients: gradient_multipliers is empty; one factor at least is required")
    made = []
    for gradient, variable in grads_and_vars:
        factor = gradient_multipliers.get(variable, gradient_multipliers.get(variable.op.name))
        if factor is not None and gradient is None:
            raise InvalidArgumentError(f"multiply_gradients: '{variable.name}' has no gradient; it can have no factor")
        made.append((gradient if factor is None else _mapped(gradient, partial(_times, factor)), variable))
    return made


def add_gradients_summaries(grads_and_vars: Gradients) -> list[Tensor]:
    """Histograms of the gradients, and scalars of their norms."""
    made = []
    for gradient, variable in grads_and_vars:
        if gradient is None:
            logging.info("%s has no gradient", variable.op.name)
            continue
        values = gradient.values if isinstance(gradient, IndexedSlices) else gradient
        made.append(histogram(f"{variable.op.name}/gradient", values))
        made.append(scalar(f"{variable.op.name}/gradient_norm", global_norm([values])))
    return made


def create_train_op(
    total_loss: Any,
    optimizer: Any,
    global_step: Any = _GLOBAL_STEP,
    update_ops: Sequence[Any] | None = None,
    variables_to_train: Sequence[Any] | None = None,
    clip_gradient_norm: float = 0,
    summarize_gradients: bool = False,
    gate_gradients: int = 1,
    aggregation_method: int | None = None,
    colocate_gradients_with_ops: bool = False,
    gradient_multipliers: Mapping[Any, Any] | None = None,
    check_numerics: bool = True,
) -> Tensor:
    """Returns the loss, whose evaluation makes a training step and adds one to global_step (none where that is None).

    update_ops: run before the loss, GraphKeys.UPDATE_OPS if None. clip_gradient_norm: the greatest norm of each
    gradient, 0 for any. gradient_multipliers: see `multiply_gradients`. check_numerics: whether a loss that is not
    finite is an error.
    """
    step = _train.get_or_create_global_step() if global_step is _GLOBAL_STEP else global_step
    updates = get_collection(GraphKeys.UPDATE_OPS) if update_ops is None else list(update_ops)
    if updates:
        with control_dependencies([group(*updates, name="update_barrier")]):
            total_loss = identity(total_loss)
    pairs = optimizer.compute_gradients(
        total_loss, trainable_variables() if variables_to_train is None else list(variables_to_train),
        gate_gradients=gate_gradients, aggregation_method=aggregation_method,
        colocate_gradients_with_ops=colocate_gradients_with_ops,
    )  # fmt: skip
    if gradient_multipliers:
        pairs = multiply_gradients(pairs, gradient_multipliers)
    if clip_gradient_norm > 0:
        pairs = clip_gradient_norms(pairs, clip_gradient_norm)
    if summarize_gradients:
        add_gradients_summaries(pairs)
    applied = optimizer.apply_gradients(pairs, global_step=step)
    if check_numerics:
        total_loss = _check_numerics(total_loss, "LossTensor is inf or nan")
    with control_dependencies([applied]):
        made = identity(total_loss, name="train_op")
    get_default_graph().add_to_collection(GraphKeys.TRAIN_OP, made)
    return made


def train_step(sess: Any, train_op: Any, global_step: Any, train_step_kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
    """Returns one step: the loss, and whether to stop, which the tensor `should_stop` of train_step_kwargs says.

    Where the tensor `should_log` of train_step_kwargs is true the loss is logged. Where `should_trace` is, a timeline
    of the step is written into the folder `logdir` of train_step_kwargs, as ``tf_trace-<step>.json``.
    """
    traced = "should_trace" in train_step_kwargs and sess.run(train_step_kwargs["should_trace"])
    options, metadata = (RunOptions(trace_level=RunOptions.FULL_TRACE), RunMetadata()) if traced else (None, None)
    began = time.monotonic()
    loss, step = sess.run([train_op, global_step], options=options, run_metadata=metadata)
    seconds = time.monotonic() - began
    if metadata is not None:
        metadata.save_trace(os.path.join(train_step_kwargs["logdir"], f"tf_trace-{step}.json"))
    if "should_log" in train_step_kwargs and sess.run(train_step_kwargs["should_log"]):
        logging.info("global step %d: loss = %.4f (%.3f sec/step)", step, loss, seconds)
    stop = "should_stop" in train_step_kwargs and bool(sess.run(train_step_kwargs["should_stop"]))
    return loss, stop


def train(
    train_op: Any, logdir: str | None, train_step_fn: Callable[..., tuple[Any, Any]] = train_step,
    train_step_kwargs: Any = _DEFAULT, log_every_n_steps: int | None = 1, graph: Graph | None = None, master: str = "",
    is_chief: bool = True, global_step: Any = None, number_of_steps: int | None = None, init_op: Any = _DEFAULT,
    init_feed_dict: Any = None, local_init_op: Any = _DEFAULT, init_fn: Callable[[Any], Any] | None = None,
    ready_op: Any = _DEFAULT, summary_op: Any = _DEFAULT, save_summaries_secs: float = 600,
    summary_writer: Any = _DEFAULT, startup_delay_steps: int = 0, saver: Any = None, save_interval_secs: float = 600,
    sync_optimizer: Any = None, session_config: Any = None, session_wrapper: Callable[[Any], Any] | None = None,
    trace_every_n_steps: int | None = None, ignore_live_threads: bool = False,
) -> Any:  # fmt: skip
    """Runs train_op until number_of_steps are made, the input ends, or a thread asks to stop; returns the last loss.

    logdir: where checkpoints and summaries go, and the checkpoint from which training goes on; None for neither.
    train_step_fn: called with the session, train_op, the global step and train_step_kwargs. The arguments from init_op
    to save_interval_secs are those of `tf.train.Supervisor`. startup_delay_steps: the global step at which a replica
    that is not the chief begins. sync_optimizer: the SyncReplicasOptimizer of train_op, whose steps the chief takes.
    session_wrapper: called with each session, returns what runs the steps. trace_every_n_steps: how often a timeline
    is written, see `train_step`. ignore_live_threads: whether threads may go on after the training.
    """
    _check_arguments(train_op, logdir, number_of_steps, startup_delay_steps, sync_optimizer, trace_every_n_steps)
    given = graph or get_default_graph()
    with given.as_default():
        step = _train.get_or_create_global_step() if global_step is None else global_step
        arguments = train_step_kwargs
        if arguments is _DEFAULT:
            arguments = _arguments(step, number_of_steps, log_every_n_steps, trace_every_n_steps, logdir)
        hook = None if sync_optimizer is None else sync_optimizer.make_session_run_hook(is_chief)
        if hook is not None:
            hook.begin()
        supervisor = _train.Supervisor(
            graph=given, is_chief=is_chief, logdir=logdir, init_op=init_op, init_feed_dict=init_feed_dict,
            local_init_op=local_init_op, ready_op=ready_op, summary_op=summary_op if logdir else None,
            summary_writer=summary_writer if logdir else None, global_step=step,
            saver=saver or _train.Saver(), save_summaries_secs=save_summaries_secs,
            save_model_secs=save_interval_secs, init_fn=init_fn,
        )  # fmt: skip
    delay = 0 if is_chief else min(startup_delay_steps, number_of_steps or startup_delay_steps)

    def begin(session: Any) -> Callable[[], tuple[Any, Any]]:
        _join_replicas(supervisor, session, hook, step, delay)
        running = session if session_wrapper is None else session_wrapper(session)
        return lambda: train_step_fn(running, train_op, step, arguments)

    while True:
        try:
            return _train_in_session(supervisor, master, session_config, begin, ignore_live_threads)
        except AbortedError as e:
            logging.info("the session is lost (%s); another one goes on from the last checkpoint", e)


def _check_arguments(
    train_op: Any, logdir: str | None, number_of_steps: int | None, startup_delay_steps: int, sync_optimizer: Any,
    trace_every_n_steps: int | None,
) -> None:  # fmt: skip
    """Raises InvalidArgumentError where arguments of `train` are wrong."""
    if train_op is None:
        raise InvalidArgumentError("slim.learning.train: train_op is None; an operation is required")
    if number_of_steps is not None and number_of_steps <= 0:
        raise InvalidArgumentError(
            f"slim.learning.train: number_of_steps is {number_of_steps}; it must be positive, or None for any"
        )
    if trace_every_n_steps is not None and not logdir:
        raise InvalidArgumentError(
            f"slim.learning.train: trace_every_n_steps is {trace_every_n_steps} and logdir {logdir!r}; a folder is "
            "required"
        )
    if sync_optimizer is not None and startup_delay_steps:
        raise InvalidArgumentError(
            f"slim.learning.train: startup_delay_steps is {startup_delay_steps} with a sync_optimizer, whose replicas "
            "make their steps together; 0 is required"
        )


def _arguments(
    step: Any, number_of_steps: int | None, log_every_n_steps: int | None, trace_every_n_steps: int | None,
    logdir: str | None,
) -> dict[str, Any]:  # fmt: skip
    """Returns the train_step_kwargs of `train_step`."""
    made: dict[str, Any] = {"logdir": logdir}
    made["should_stop"] = constant(False) if number_of_steps is None else greater_equal(step, number_of_steps)
    for name, period in (("should_log", log_every_n_steps), ("should_trace", trace_every_n_steps)):
        if period:
            made[name] = equal(apply_op("FloorMod", [step, period]), 0)
    return made


def _join_replicas(supervisor: Any, session: Any, hook: Any, global_step: Any, delay: int) -> None:
    """Starts what a sync_optimizer does in a session; without one, waits until others have made `delay` steps."""
    if hook is not None:
        hook.after_create_session(session, supervisor.coord)
        return
    while delay and session.run(global_step) < delay and not supervisor.should_stop():
        time.sleep(_SECONDS_BETWEEN_LOOKS)


def _train_in_session(
    supervisor: Any,
    master: str,
    config: Any,
    begin: Callable[[Any], Callable[[], tuple[Any, Any]]],
    ignore_live_threads: bool,
) -> Any:
    """Trains in one session, and writes the last checkpoint; returns the last loss. begin: gives what makes a step."""
    loss, writes = None, supervisor.save_path is not None
    with supervisor.managed_session(master, config, start_standard_services=writes) as session:
        if not writes:
            supervisor.start_queue_runners(session)
        loss = _loop(supervisor, begin(session))
        # Stopped first, so that no thread writes an older checkpoint after the last one.
        supervisor.stop(close_summary_writer=False, ignore_live_threads=ignore_live_threads)
        if writes:
            supervisor.saver.save(session, supervisor.save_path, global_step=supervisor.global_step)
    return loss


def _loop(supervisor: Any, make_step: Callable[[], tuple[Any, Any]]) -> Any:
    """Makes steps until one asks to stop; returns the last loss."""
    loss = None
    try:
        while not supervisor.should_stop():
            loss, stop = make_step()
            if stop:
                supervisor.request_stop()
                break
    except OutOfRangeError as e:
        logging.info("the input is at its end: %s", e)
    return loss
