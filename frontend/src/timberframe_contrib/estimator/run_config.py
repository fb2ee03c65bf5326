"""RunConfig: how an estimator runs."""

from __future__ import annotations

import copy
import json
import os
from typing import Any

from timberframe_core.errors import InvalidArgumentError, UnimplementedError

_USE_DEFAULT = object()
_REPLACEABLE = (
    "model_dir", "tf_random_seed", "save_summary_steps", "save_checkpoints_steps", "save_checkpoints_secs",
    "session_config", "keep_checkpoint_max", "keep_checkpoint_every_n_hours", "log_step_count_steps", "device_fn",
    "protocol", "session_creation_timeout_secs",
)  # fmt: skip


class RunConfig:
    """How an estimator runs: where, how often it saves, with which settings of sessions.

    model_dir: the folder of checkpoints. tf_random_seed: of the graphs. save_summary_steps, save_checkpoints_steps,
    save_checkpoints_secs (600), log_step_count_steps: how often; None for never. session_config: of sessions.
    keep_checkpoint_max, keep_checkpoint_every_n_hours: as in tf.train.Saver. device_fn: places operations. The others
    are TensorFlow's for training on several machines, and change nothing.
    """

    def __init__(
        self,
        model_dir: Any = None,
        tf_random_seed: int | None = None,
        save_summary_steps: int | None = 100,
        save_checkpoints_steps: Any = _USE_DEFAULT,
        save_checkpoints_secs: Any = _USE_DEFAULT,
        session_config: Any = None,
        keep_checkpoint_max: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000,
        log_step_count_steps: int | None = 100,
        train_distribute: Any = None,
        device_fn: Any = None,
        protocol: Any = None,
        eval_distribute: Any = None,
        experimental_distribute: Any = None,
        experimental_max_worker_delay_secs: Any = None,
        session_creation_timeout_secs: float = 7200,
    ) -> None:
        cluster = json.loads(os.environ.get("TF_CONFIG") or "{}")
        if cluster.get("cluster") or train_distribute or eval_distribute or experimental_distribute:
            raise UnimplementedError(
                "RunConfig: TF_CONFIG or a distribution strategy asks for several machines; estimators run on one"
            )
        folder = cluster.get("model_dir") if model_dir is None else model_dir
        self.model_dir: str | None = None if folder is None else os.fspath(folder)
        self.tf_random_seed = tf_random_seed
        self.save_summary_steps = save_summary_steps
        self.save_checkpoints_steps, self.save_checkpoints_secs = _periods(
            save_checkpoints_steps, save_checkpoints_secs
        )
        self.session_config = session_config
        self.keep_checkpoint_max = keep_checkpoint_max
        self.keep_checkpoint_every_n_hours = keep_checkpoint_every_n_hours
        self.log_step_count_steps = log_step_count_steps
        self.device_fn = device_fn
        self.protocol = protocol
        self.session_creation_timeout_secs = session_creation_timeout_secs
        self.train_distribute = self.eval_distribute = None
        self.master = self.evaluation_master = ""
        self.is_chief = True
        self.task_type, self.task_id, self.global_id_in_cluster = "worker", 0, 0
        self.num_worker_replicas, self.num_ps_replicas = 1, 0
        self.service: Any = None
        self._check()

    def _check(self) -> None:
        if self.save_checkpoints_steps is not None and self.save_checkpoints_secs is not None:
            raise InvalidArgumentError(
                "RunConfig: both of save_checkpoints_steps and save_checkpoints_secs given; one at most is required"
            )
        for name in ("save_summary_steps", "save_checkpoints_steps", "save_checkpoints_secs", "keep_checkpoint_max"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise InvalidArgumentError(f"RunConfig: {name} is {value}; it must not be negative")

    def replace(self, **settings: Any) -> RunConfig:
        """Returns another one with these settings; of the two for checkpoints, the one that
        is not given becomes None.
        """
        unknown = [name for name in settings if name not in _REPLACEABLE]
        if unknown:
            raise InvalidArgumentError(
                f"RunConfig.replace: {', '.join(unknown)} cannot be replaced; these can: {', '.join(_REPLACEABLE)}"
            )
        made = copy.copy(self)
        if "save_checkpoints_steps" in settings and "save_checkpoints_secs" not in settings:
            made.save_checkpoints_secs = None
        if "save_checkpoints_secs" in settings and "save_checkpoints_steps" not in settings:
            made.save_checkpoints_steps = None
        for name, value in settings.items():
            setattr(made, name, value)
        made._check()
        return made


def _periods(steps: Any, secs: Any) -> tuple[int | None, float | None]:
    """Returns the steps and the seconds between checkpoints: 600 seconds where neither is given."""
    if steps is _USE_DEFAULT and secs is _USE_DEFAULT:
        return None, 600
    return None if steps is _USE_DEFAULT else steps, None if secs is _USE_DEFAULT else secs
