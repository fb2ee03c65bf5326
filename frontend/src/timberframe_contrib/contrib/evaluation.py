"""`tf.contrib.slim.evaluation` and `tf.contrib.training`'s: metrics of the checkpoints of a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from timberframe import train as _train
from timberframe.api.framework import GraphKeys
from timberframe.summary.functions import merge_all
from timberframe.summary.writer import FileWriterCache
from timberframe.train.checkpoint_state import checkpoints_iterator as checkpoints_iterator
from timberframe.train.checkpoint_state import wait_for_new_checkpoint as wait_for_new_checkpoint
from timberframe_core import logging
from timberframe_core.graph.graph import get_default_graph

_DEFAULT: Any = object()

Feeds = Mapping[Any, Any] | None


def evaluate_once(
    master: str,
    checkpoint_path: str,
    logdir: str | None,
    num_evals: int = 1,
    initial_op: Any = None,
    initial_op_feed_dict: Feeds = None,
    eval_op: Any = None,
    eval_op_feed_dict: Feeds = None,
    final_op: Any = None,
    final_op_feed_dict: Feeds = None,
    summary_op: Any = _DEFAULT,
    summary_op_feed_dict: Feeds = None,
    variables_to_restore: Any = None,
    session_config: Any = None,
    hooks: Sequence[Any] | None = None,
    *,
    scaffold: Any = None,
) -> Any:
    """Restores a checkpoint, runs eval_op num_evals times, and returns the value of final_op.

    initial_op: runs before. summary_op: runs after, and is written to logdir; all summaries of the graph by default.
    variables_to_restore: all that are saved if None. The feeds are those of each operation. scaffold: restores
    them, and is made of variables_to_restore if None.
    """
    if summary_op is _DEFAULT:
        summary_op = merge_all()
    scaffold = scaffold or _scaffold(variables_to_restore)
    creator = _train.ChiefSessionCreator(
        scaffold, master, session_config, checkpoint_filename_with_path=checkpoint_path
    )
    logging.info("evaluating %s", checkpoint_path)
    with _train.MonitoredSession(creator, hooks) as session:
        if initial_op is not None:
            session.run(initial_op, initial_op_feed_dict)
        if eval_op is not None:
            for _ in range(num_evals):
                session.run(eval_op, eval_op_feed_dict)
        if summary_op is not None and logdir:
            step = get_default_graph().get_collection(GraphKeys.GLOBAL_STEP)
            number = int(session.run(step[0])) if step else None
            writer = FileWriterCache.get(logdir)
            writer.add_summary(session.run(summary_op, summary_op_feed_dict), number)
            writer.flush()
        return None if final_op is None else session.run(final_op, final_op_feed_dict)


def _scaffold(variables: Any) -> Any:
    _train.get_or_create_global_step()  # which checkpoints have
    return _train.Scaffold(saver=_train.Saver(variables))


def evaluation_loop(
    master: str,
    checkpoint_dir: str,
    logdir: str | None,
    num_evals: int = 1,
    initial_op: Any = None,
    initial_op_feed_dict: Feeds = None,
    eval_op: Any = None,
    eval_op_feed_dict: Feeds = None,
    final_op: Any = None,
    final_op_feed_dict: Feeds = None,
    summary_op: Any = _DEFAULT,
    summary_op_feed_dict: Feeds = None,
    variables_to_restore: Any = None,
    eval_interval_secs: float = 60,
    max_number_of_evaluations: int | None = None,
    session_config: Any = None,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
    hooks: Sequence[Any] | None = None,
) -> Any:
    """`evaluate_once` of each checkpoint that becomes the latest of a folder; returns the last value of final_op.

    eval_interval_secs: the least number of seconds between two. max_number_of_evaluations: any number if None. timeout,
    timeout_fn: see `checkpoints_iterator`.
    """
    value: Any = None
    scaffold = _scaffold(variables_to_restore)
    chosen = merge_all() if summary_op is _DEFAULT else summary_op
    for count, path in enumerate(checkpoints_iterator(checkpoint_dir, eval_interval_secs, timeout, timeout_fn), 1):
        value = evaluate_once(
            master, path, logdir, num_evals, initial_op, initial_op_feed_dict, eval_op, eval_op_feed_dict, final_op,
            final_op_feed_dict, chosen, summary_op_feed_dict, variables_to_restore, session_config, hooks,
            scaffold=scaffold,
        )  # fmt: skip
        if max_number_of_evaluations is not None and count >= max_number_of_evaluations:
            break
    return value
