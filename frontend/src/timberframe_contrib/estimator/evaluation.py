"""One call of `Estimator.evaluate`: metrics over batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe.api.framework import GraphKeys, control_dependencies, get_collection, group, make_tensor_proto
from timberframe.api.variables import Variable
from timberframe.metrics.means import mean
from timberframe.summary.writer import FileWriterCache
from timberframe.train.basic_hooks import FinalOpsHook
from timberframe.train.monitored_session import MonitoredSession
from timberframe.train.session_creators import ChiefSessionCreator
from timberframe.train.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from timberframe.train.steps import get_global_step
from timberframe_contrib.estimator.run_config import RunConfig
from timberframe_contrib.estimator.spec import EstimatorSpec
from timberframe_core import logging
from timberframe_core.dtypes import int64
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graphdef import messages

_LOSS = "loss"


class _StopAfterBatches(SessionRunHook):
    """Asks to stop after so many batches. counted: the number of batches, after each."""

    def __init__(self, steps: int, counted: Any) -> None:
        self._steps, self._counted = steps, counted

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the number."""
        return SessionRunArgs(self._counted)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Looks at it."""
        if run_values.results >= self._steps:
            run_context.request_stop()


def evaluate(
    spec: EstimatorSpec,
    config: RunConfig,
    checkpoint: str | None,
    steps: int | None,
    hooks: Sequence[SessionRunHook],
    folder: str,
) -> dict[str, Any]:
    """Returns the metrics of a spec, in the default graph, after all batches; they are also
    written to a folder's summaries.
    """
    for name in (_LOSS, GraphKeys.GLOBAL_STEP):
        if name in spec.eval_metric_ops:
            raise InvalidArgumentError(
                f"Estimator.evaluate: eval_metric_ops has '{name}', which the estimator adds; choose another name"
            )
    metrics = {**spec.eval_metric_ops, _LOSS: mean(spec.loss)}
    update = group(*(metrics[name][1] for name in sorted(metrics)))
    values = {name: value for name, (value, _) in metrics.items()}
    values[GraphKeys.GLOBAL_STEP] = get_global_step()
    all_hooks = [*hooks, *spec.evaluation_hooks]
    counted = _counted(update)
    if steps is not None:
        all_hooks.append(_StopAfterBatches(steps, counted))
    final = FinalOpsHook(values)
    all_hooks.append(final)
    creator = ChiefSessionCreator(spec.scaffold, config=config.session_config, checkpoint_filename_with_path=checkpoint)
    with MonitoredSession(creator, all_hooks) as session:
        while not session.should_stop():
            session.run(counted)
    found: dict[str, Any] = final.final_ops_values
    logging.info("Saving dict for global step %d: %s", found[GraphKeys.GLOBAL_STEP], _shown(found))
    _write(folder, found, checkpoint)
    return found


def _counted(update: Any) -> Any:
    """Returns the number of batches, with this one, once the metrics are updated."""
    known = get_collection(GraphKeys.EVAL_STEP)
    step = known[0] if known else Variable(
        np.int64(0), trainable=False, dtype=int64, name="eval_step",
        collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.EVAL_STEP],
    )  # fmt: skip
    with control_dependencies([update]):
        return step.assign_add(1)


def _shown(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in sorted(values.items()))


def _write(folder: str, values: dict[str, Any], checkpoint: str | None) -> None:
    """Writes the scalars among the metrics as summaries, and the path of the checkpoint that they are of."""
    summary = messages.Summary()
    for name, value in sorted(values.items()):
        if name == GraphKeys.GLOBAL_STEP:
            continue
        if np.ndim(value) == 0 and np.asarray(value).dtype.kind in "fiu":
            summary.value.add(tag=name, simple_value=float(value))
        else:
            logging.warning("metric '%s' is no number; it is not among the summaries", name)
    if checkpoint is not None:
        path = summary.value.add(tag="checkpoint_path", tensor=make_tensor_proto(checkpoint))
        path.metadata.plugin_data.plugin_name = "text"
    writer = FileWriterCache.get(folder)
    writer.add_summary(summary, int(values[GraphKeys.GLOBAL_STEP]))
    writer.flush()
