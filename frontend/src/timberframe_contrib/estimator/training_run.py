"""One call of `Estimator.train`: the session, its hooks, and its loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from timberframe.api.framework import GraphKeys, add_to_collection, get_collection
from timberframe.saving.positions import note_input
from timberframe.summary.functions import scalar
from timberframe.train.basic_hooks import LoggingTensorHook, NanTensorHook
from timberframe.train.checkpoint_hooks import CheckpointSaverHook
from timberframe.train.monitored_session import MonitoredTrainingSession
from timberframe.train.saver import Saver
from timberframe.train.session_run_hook import SessionRunHook
from timberframe.train.steps import get_global_step
from timberframe_contrib.estimator.run_config import RunConfig
from timberframe_contrib.estimator.spec import EstimatorSpec
from timberframe_core import logging
from timberframe_core.errors import InvalidArgumentError


def train(spec: EstimatorSpec, config: RunConfig, given_hooks: Sequence[SessionRunHook], saving_listeners: Any) -> Any:
    """Trains the model of a spec, in the default graph; returns the last loss, None where there was no step."""
    if not any(summary.op.name == "loss" for summary in get_collection(GraphKeys.SUMMARIES)):
        scalar("loss", spec.loss)
    add_to_collection(GraphKeys.LOSSES, spec.loss)
    hooks: list[SessionRunHook] = [*given_hooks, NanTensorHook(spec.loss)]
    if config.log_step_count_steps:
        tensors = {"loss": spec.loss, "step": get_global_step()}
        hooks.append(LoggingTensorHook(tensors, every_n_iter=config.log_step_count_steps))
    hooks.extend(spec.training_hooks)
    if spec.scaffold.saver is None and not get_collection(GraphKeys.SAVERS):
        saver = Saver(
            max_to_keep=config.keep_checkpoint_max,
            keep_checkpoint_every_n_hours=config.keep_checkpoint_every_n_hours,
            defer_build=True,
            save_relative_paths=True,
        )
        add_to_collection(GraphKeys.SAVERS, saver)
    loss = None
    with MonitoredTrainingSession(
        checkpoint_dir=config.model_dir,
        scaffold=spec.scaffold,
        hooks=hooks,
        chief_only_hooks=[*_saver_hooks(spec, config, hooks, saving_listeners), *spec.training_chief_hooks],
        save_checkpoint_secs=0,  # the hooks save
        save_summaries_steps=config.save_summary_steps,
        config=config.session_config,
        log_step_count_steps=config.log_step_count_steps,
    ) as session:
        while not session.should_stop():
            _, loss = session.run([spec.train_op, spec.loss])
        note_input(session._tf_sess(), ended=True)  # the next call of `train` calls input_fn for another one
    if loss is None:
        logging.warning("Training made no steps; perhaps the input is empty.")
    return loss


def _saver_hooks(
    spec: EstimatorSpec, config: RunConfig, hooks: Sequence[SessionRunHook], listeners: Any
) -> list[SessionRunHook]:
    """Returns the CheckpointSaverHook to add: none where the user has one; it, or the user's, gets the listeners."""
    savers = [h for h in (*hooks, *spec.training_chief_hooks) if isinstance(h, CheckpointSaverHook)]
    added: list[SessionRunHook] = []
    if not savers and (config.save_checkpoints_secs or config.save_checkpoints_steps):
        saver = CheckpointSaverHook(
            config.model_dir, config.save_checkpoints_secs, config.save_checkpoints_steps, scaffold=spec.scaffold
        )
        added, savers = [saver], [saver]
    if listeners:
        if not savers:
            raise InvalidArgumentError(
                "Estimator.train: saving_listeners are given, and nothing saves; save_checkpoints_steps or "
                "save_checkpoints_secs of the RunConfig, or a CheckpointSaverHook, is required"
            )
        savers[0].add_listeners(listeners)
    return added
