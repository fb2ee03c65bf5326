"""`tf.contrib.tpu`: estimators written for TPUs, as they run where there are none (`use_tpu=False`)."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from timberframe.boundary import guard
from timberframe_contrib.estimator import Estimator, EstimatorSpec, ModeKeys
from timberframe_contrib.estimator import RunConfig as _RunConfig
from timberframe_core.errors import InvalidArgumentError, UnimplementedError

__all__ = ["InputPipelineConfig", "RunConfig", "TPUConfig", "TPUEstimator", "TPUEstimatorSpec"]


class InputPipelineConfig:
    """Which host of a TPU reads the input; without one, this process does."""

    PER_SHARD_V1, PER_HOST_V1, PER_HOST_V2, BROADCAST, SLICED = range(1, 6)


class TPUConfig(NamedTuple):
    """How a TPU runs; it changes nothing where there is none."""

    iterations_per_loop: int = 2
    num_shards: int | None = None
    num_cores_per_replica: int | None = None
    per_host_input_for_training: Any = True
    tpu_job_name: str | None = None
    initial_infeed_sleep_secs: int | None = None
    input_partition_dims: Any = None
    eval_training_input_configuration: Any = InputPipelineConfig.PER_HOST_V1
    experimental_host_call_every_n_steps: int = 1


class RunConfig(_RunConfig):
    """A tf.estimator.RunConfig with the settings of a TPU, which change nothing.

    evaluation_master, master, cluster: those of TPUs; none may be given.
    """

    def __init__(
        self,
        tpu_config: TPUConfig | None = None,
        evaluation_master: str | None = None,
        master: str | None = None,
        cluster: Any = None,
        **settings: Any,
    ) -> None:
        if master or evaluation_master or cluster is not None:
            raise UnimplementedError(
                f"tf.contrib.tpu.RunConfig: master {master or evaluation_master!r}, cluster {cluster!r}; "
                "there are no TPUs, so that none may be given"
            )
        super().__init__(**settings)
        self.tpu_config = tpu_config or TPUConfig()
        self.cluster = None


class TPUEstimatorSpec(NamedTuple):
    """What a model_fn returns for TPUs.

    eval_metrics: (a function that returns metrics by name, its arguments: a list or dict of tensors). scaffold_fn:
    returns a Scaffold. host_call: for TPUs alone. The others are those of tf.estimator.EstimatorSpec.
    """

    mode: str
    predictions: Any = None
    loss: Any = None
    train_op: Any = None
    eval_metrics: tuple[Callable[..., Mapping[str, Any]], Any] | None = None
    export_outputs: Mapping[str, Any] | None = None
    scaffold_fn: Callable[[], Any] | None = None
    host_call: Any = None
    training_hooks: Sequence[Any] | None = None
    evaluation_hooks: Sequence[Any] | None = None
    prediction_hooks: Sequence[Any] | None = None

    def as_estimator_spec(self) -> EstimatorSpec:
        """Returns the same without a TPU."""
        metrics = None
        if self.eval_metrics is not None:
            function, tensors = self.eval_metrics
            metrics = function(**tensors) if isinstance(tensors, Mapping) else function(*tensors)
        return EstimatorSpec(
            self.mode,
            self.predictions,
            self.loss,
            self.train_op,
            metrics,
            self.export_outputs,
            scaffold=self.scaffold_fn() if self.scaffold_fn is not None else None,
            training_hooks=self.training_hooks,
            evaluation_hooks=self.evaluation_hooks,
            prediction_hooks=self.prediction_hooks,
        )


class TPUEstimator(Estimator):
    """An estimator whose model_fn returns a TPUEstimatorSpec, and whose functions find `params["batch_size"]`.

    train_batch_size, eval_batch_size, predict_batch_size: what that is in each mode. use_tpu must be False, as there
    are no TPUs; the other arguments that are for them change nothing.
    """

    def __init__(
        self,
        model_fn: Callable[..., Any],
        model_dir: Any = None,
        config: _RunConfig | None = None,
        params: Mapping[str, Any] | None = None,
        use_tpu: bool = True,
        train_batch_size: int | None = None,
        eval_batch_size: int | None = None,
        predict_batch_size: int | None = None,
        batch_axis: Any = None,
        eval_on_tpu: bool = True,
        export_to_tpu: bool = True,
        export_to_cpu: bool = True,
        warm_start_from: Any = None,
    ) -> None:
        if use_tpu:
            raise UnimplementedError("tf.contrib.tpu.TPUEstimator: use_tpu is True, and there are no TPUs; give False")
        if params is not None and "batch_size" in params:
            raise InvalidArgumentError(
                "tf.contrib.tpu.TPUEstimator: params have 'batch_size', which is what the estimator sets; "
                "train_batch_size and its like give it"
            )
        self._batch_sizes = {
            ModeKeys.TRAIN: train_batch_size, ModeKeys.EVAL: eval_batch_size, ModeKeys.PREDICT: predict_batch_size,
        }  # fmt: skip

        @functools.wraps(model_fn)
        def plain_model_fn(*args: Any, **kwargs: Any) -> Any:
            spec = model_fn(*args, **kwargs)
            return spec.as_estimator_spec() if isinstance(spec, TPUEstimatorSpec) else spec

        super().__init__(plain_model_fn, model_dir, config, dict(params or {}), warm_start_from)

    def _params_of(self, mode: str) -> Any:
        size = self._batch_sizes[mode]
        return self.params if size is None else {**self.params, "batch_size": size}


guard([sys.modules[__name__]])  # here, since `import timberframe` does not load this module
