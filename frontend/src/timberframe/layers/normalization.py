"""Batch normalisation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from timberframe.api.arrays import reshape
from timberframe.api.framework import name_scope
from timberframe.api.initializers import ones_initializer, zeros_initializer
from timberframe.api.nn import batch_normalization as nn_batch_normalization
from timberframe.api.nn import fused_batch_norm, moments
from timberframe.api.selection import cast
from timberframe.layers.base import InputSpec, Layer, known_size
from timberframe.layers.switch import known_bool, smart_cond
from timberframe_core.dtypes import float32
from timberframe_core.errors import InvalidArgumentError, UnimplementedError
from timberframe_core.graph.apply import apply_op, constant_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.tensor_shape import TensorShape


class BatchNormalization(Layer):
    """Ioffe and Szegedy 2015: (x - mean) / sqrt(variance + epsilon) * gamma + beta, for each channel.

    While training, mean and variance are the batch's, and operations in GraphKeys.UPDATE_OPS move `moving_mean` and
    `moving_variance` towards them by 1 - momentum; they must run with each step. Otherwise those are taken.

    axis: that of the channels. center, scale: whether there is a beta, and a gamma. fused: whether one op does it, as
    by default for images; it takes N / (N - 1) of the variance for the moving one, as TensorFlow's does.
    `training`, an argument of the call: a bool or a scalar tensor. renorm, virtual_batch_size and adjustment
    are refused.
    """

    def __init__(
        self,
        axis: int = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = zeros_initializer,
        gamma_initializer: Any = ones_initializer,
        moving_mean_initializer: Any = zeros_initializer,
        moving_variance_initializer: Any = ones_initializer,
        beta_regularizer: Callable[[Any], Any] | None = None,
        gamma_regularizer: Callable[[Any], Any] | None = None,
        beta_constraint: Callable[[Any], Any] | None = None,
        gamma_constraint: Callable[[Any], Any] | None = None,
        renorm: bool = False,
        renorm_clipping: Any = None,
        renorm_momentum: float = 0.99,
        fused: bool | None = None,
        trainable: bool = True,
        virtual_batch_size: int | None = None,
        adjustment: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(trainable, name, **kwargs)
        for what, value in (
            ("renorm", renorm), ("virtual_batch_size", virtual_batch_size), ("adjustment", adjustment)
        ):  # fmt: skip
            if value:
                raise UnimplementedError(
                    f"layer '{self._base_name}': {what} is {value!r}; batch normalisation is by whole batches here, "
                    "leave it out"
                )
        if isinstance(axis, list | tuple):
            if len(axis) != 1:
                raise UnimplementedError(f"layer '{self._base_name}': axis is {axis}; one axis is required")
            axis = axis[0]
        self.axis, self.momentum, self.epsilon = axis, momentum, epsilon
        self.center, self.scale, self.fused = center, scale, fused
        self.beta_initializer, self.gamma_initializer = beta_initializer, gamma_initializer
        self.moving_mean_initializer = moving_mean_initializer
        self.moving_variance_initializer = moving_variance_initializer
        self.beta_regularizer, self.gamma_regularizer = beta_regularizer, gamma_regularizer
        self.beta_constraint, self.gamma_constraint = beta_constraint, gamma_constraint

    def build(self, input_shape: Any) -> None:
        rank = TensorShape(input_shape).ndims
        if rank is None or not -rank <= self.axis < rank:
            raise InvalidArgumentError(
                f"layer '{self.name}': axis is {self.axis} for an input of shape {TensorShape(input_shape)}; "
                "it must be one of its axes"
            )
        self.axis %= rank
        self.require_numbers()
        size = known_size(self.name, input_shape, self.axis)
        self.input_spec = InputSpec(ndim=rank, axes={self.axis: size})
        if self.fused is None:
            self.fused = rank == 4 and self.axis in (1, 3)
        kind = float32 if self._dtype is None or self._dtype.name in ("float16", "bfloat16") else self._dtype
        self.gamma = self.beta = None
        if self.scale:
            self.gamma = self.add_weight("gamma", [size], kind, self.gamma_initializer, self.gamma_regularizer,
                                         constraint=self.gamma_constraint)  # fmt: skip
        if self.center:
            self.beta = self.add_weight("beta", [size], kind, self.beta_initializer, self.beta_regularizer,
                                        constraint=self.beta_constraint)  # fmt: skip
        self.moving_mean = self.add_weight("moving_mean", [size], kind, self.moving_mean_initializer, trainable=False)
        self.moving_variance = self.add_weight(
            "moving_variance", [size], kind, self.moving_variance_initializer, trainable=False
        )
        self._ones = constant_op(np.ones(size, kind.numpy), kind, "ones") if not self.scale and self.fused else None
        self._zeros = constant_op(np.zeros(size, kind.numpy), kind, "zeros") if not self.center and self.fused else None
        self.built = True

    def call(self, inputs: Tensor, training: Any = False) -> Any:
        outputs, mean, variance = self._fused(inputs, training) if self.fused else self._plain(inputs, training)
        if known_bool(training) is not False:
            for update in self.moved(mean, variance, training):
                self.add_update(update)
        outputs.set_shape(inputs.static_shape)
        return outputs

    def moved(self, mean: Any, variance: Any, training: Any) -> list[Any]:
        """The operations that move `moving_mean` and `moving_variance` towards those of the batch, while training."""
        keep = smart_cond(training, lambda: convert_to_tensor(np.float32(self.momentum)), lambda: _one())
        return [_moved(self.moving_mean, mean, keep), _moved(self.moving_variance, variance, keep)]

    def moments_of(self, inputs: Tensor, axes: list[int]) -> tuple[Any, Any]:
        """Mean and variance of a batch over the axes."""
        return moments(inputs, axes)

    def _fused(self, inputs: Tensor, training: Any) -> tuple[Any, Any, Any]:
        layout = "NHWC" if self.axis == 3 else "NCHW"
        scale = self._ones if self.gamma is None else self.gamma
        offset = self._zeros if self.beta is None else self.beta

        def by_batch() -> Any:
            return fused_batch_norm(inputs, scale, offset, epsilon=self.epsilon, data_format=layout)

        def by_moving() -> Any:
            return fused_batch_norm(
                inputs, scale, offset, self.moving_mean, self.moving_variance, self.epsilon, layout, is_training=False
            )

        outputs, mean, variance = smart_cond(training, by_batch, by_moving)
        return outputs, mean, variance

    def _plain(self, inputs: Tensor, training: Any) -> tuple[Any, Any, Any]:
        axes = [i for i in range(inputs.shape.ndims or 0) if i != self.axis]
        mean, variance = smart_cond(
            training,
            lambda: [cast(v, self.moving_mean.dtype) for v in self.moments_of(inputs, axes)],
            lambda: [apply_op("Identity", [v.value()]) for v in (self.moving_mean, self.moving_variance)],
        )
        along = [self._along_axis(v, inputs) for v in (mean, variance, self.beta, self.gamma)]
        outputs = nn_batch_normalization(inputs, along[0], along[1], along[2], along[3], self.epsilon)
        return outputs, mean, variance

    def _along_axis(self, value: Any, inputs: Tensor) -> Any:
        """A vector of the channels in the dtype of the inputs, and so that it broadcasts against them."""
        if value is None:
            return None
        value, rank = cast(value, inputs.dtype), inputs.shape.ndims or 1
        return value if self.axis == rank - 1 else reshape(value, [-1] + [1] * (rank - 1 - self.axis))

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        return TensorShape(input_shape)


def _one() -> Tensor:
    return convert_to_tensor(np.float32(1))


def _moved(moving: Any, new: Any, keep: Any) -> Any:
    """Moves a variable towards a new value by 1 - keep."""
    with name_scope("AssignMovingAvg"):
        step = apply_op("Sub", [1.0, cast(keep, moving.dtype)])
        change = apply_op("Mul", [apply_op("Sub", [moving.value(), cast(new, moving.dtype)]), step])
        return moving.assign_sub(change).op


def batch_normalization(
    inputs: Any,
    axis: int = -1,
    momentum: float = 0.99,
    epsilon: float = 1e-3,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Any = zeros_initializer,
    gamma_initializer: Any = ones_initializer,
    moving_mean_initializer: Any = zeros_initializer,
    moving_variance_initializer: Any = ones_initializer,
    beta_regularizer: Callable[[Any], Any] | None = None,
    gamma_regularizer: Callable[[Any], Any] | None = None,
    beta_constraint: Callable[[Any], Any] | None = None,
    gamma_constraint: Callable[[Any], Any] | None = None,
    training: Any = False,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
    renorm: bool = False,
    renorm_clipping: Any = None,
    renorm_momentum: float = 0.99,
    fused: bool | None = None,
    virtual_batch_size: int | None = None,
    adjustment: Any = None,
) -> Any:
    """A `BatchNormalization` layer, made and called on `inputs`. training: a bool or a scalar tensor.

    The operations that move the means are in GraphKeys.UPDATE_OPS; a training step must depend on them.
    """
    layer = BatchNormalization(
        axis, momentum, epsilon, center, scale, beta_initializer, gamma_initializer, moving_mean_initializer,
        moving_variance_initializer, beta_regularizer, gamma_regularizer, beta_constraint, gamma_constraint, renorm,
        renorm_clipping, renorm_momentum, fused, trainable, virtual_batch_size, adjustment, name, _scope=name,
        _reuse=reuse,
    )  # fmt: skip
    return layer(inputs, training=training)
