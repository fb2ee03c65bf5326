"""Batch normalisation, of whole batches or of parts of them, with moving means or without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from timberframe.api.arrays import concat, reshape
from timberframe.api.arrays import shape as shape_of
from timberframe.api.constants import ones_like, zeros_like
from timberframe.api.framework import name_scope
from timberframe.api.initializers import ones_initializer, zeros_initializer
from timberframe.api.nn import batch_normalization as nn_batch_normalization
from timberframe.api.nn import fused_batch_norm, moments
from timberframe.api.reduction import reduce_mean
from timberframe.api.selection import cast
from timberframe.layers.base import InputSpec, Layer, known_size
from timberframe.layers.renormalization import Renormalization
from timberframe.layers.switch import known_bool, smart_cond
from timberframe_core.dtypes import float32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, constant_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.tensor_shape import TensorShape


class BatchNormalization(Layer):
    """Ioffe and Szegedy 2015: (x - mean) / sqrt(variance + epsilon) * gamma + beta, for each channel.

    While training, mean and variance are the batch's, and operations in GraphKeys.UPDATE_OPS move `moving_mean` and
    `moving_variance` towards them by 1 - momentum; they must run with each step. Otherwise those are taken.

    axis: that of the channels, or a list of several. center, scale: whether there is a beta, and a gamma. fused:
    whether one op does it, as by default for images; it takes N / (N - 1) of the variance for the moving one, as
    TensorFlow's does. `training`, an argument of the call: a bool or a scalar tensor.

    renorm: training goes by moving means, too (see `Renormalization`), with renorm_clipping, a dict of bounds rmin,
    rmax and dmax, and renorm_momentum. virtual_batch_size: while training, each of several batches of so many examples
    has its own mean and variance (Hoffer et al. 2017); as in TensorFlow 1 the n-th example of b is in batch n modulo b
    / virtual_batch_size. adjustment: a function of the inputs' shape that returns a scale and a shift, which while
    training come between normalisation and gamma. None of the three goes with fused.
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
        label = f"layer '{self._base_name}'"
        if fused and (renorm or virtual_batch_size is not None or adjustment is not None):
            raise InvalidArgumentError(
                f"{label}: fused is set with renorm, virtual_batch_size or adjustment; one op does none of them, "
                "leave it out"
            )
        if virtual_batch_size is not None and (virtual_batch_size < 1 or adjustment is not None):
            raise InvalidArgumentError(
                f"{label}: virtual_batch_size is {virtual_batch_size} and adjustment {adjustment}; a size above zero, "
                "and no adjustment with it, are required"
            )
        self.axis: Any = axis
        self.momentum, self.epsilon = momentum, epsilon
        self.center, self.scale = center, scale
        self.fused = False if renorm or virtual_batch_size is not None or adjustment is not None else fused
        self.virtual_batch_size, self.adjustment = virtual_batch_size, adjustment
        self._renorm = Renormalization(label, renorm_clipping, renorm_momentum, epsilon) if renorm else None
        self.beta_initializer, self.gamma_initializer = beta_initializer, gamma_initializer
        self.moving_mean_initializer = moving_mean_initializer
        self.moving_variance_initializer = moving_variance_initializer
        self.beta_regularizer, self.gamma_regularizer = beta_regularizer, gamma_regularizer
        self.beta_constraint, self.gamma_constraint = beta_constraint, gamma_constraint

    def build(self, input_shape: Any) -> None:
        rank = TensorShape(input_shape).ndims
        given = list(self.axis) if isinstance(self.axis, list | tuple) else [self.axis]
        if rank is None or any(not -rank <= a < rank for a in given):
            raise InvalidArgumentError(
                f"layer '{self.name}': axis is {self.axis} for an input of shape {TensorShape(input_shape)}; "
                "it must be one of its axes"
            )
        self.require_numbers()
        axes = [a % rank for a in given]
        self.axis = axes[0] if len(axes) == 1 else axes
        sizes = {a: known_size(self.name, input_shape, a) for a in axes}
        self.input_spec = InputSpec(ndim=rank, axes={**sizes})
        if self.fused is None:
            self.fused = rank == 4 and self.axis in (1, 3)
        self._axes, shape = axes, [sizes[axes[0]]]
        self._keeps_rank = len(axes) > 1 or self.virtual_batch_size is not None
        if self._keeps_rank:
            shape = [sizes.get(i, 1) for i in range(rank)]
        if self.virtual_batch_size is not None:
            self._axes, shape = self._axes_in_virtual_batches(axes), [shape[0], 1, *shape[1:]]
        self._make_variables(shape)
        self.built = True

    def _axes_in_virtual_batches(self, axes: list[int]) -> list[int]:
        if 0 in axes:
            raise InvalidArgumentError(
                f"layer '{self.name}': axis is {self.axis} and virtual_batch_size is given; axis 0 must be that of "
                "examples"
            )
        return [axis + 1 for axis in axes]

    def _make_variables(self, shape: list[int]) -> None:
        kind = float32 if self._dtype is None or self._dtype.name in ("float16", "bfloat16") else self._dtype
        self.gamma = self.beta = None
        if self.scale:
            self.gamma = self.add_weight("gamma", shape, kind, self.gamma_initializer, self.gamma_regularizer,
                                         constraint=self.gamma_constraint)  # fmt: skip
        if self.center:
            self.beta = self.add_weight("beta", shape, kind, self.beta_initializer, self.beta_regularizer,
                                        constraint=self.beta_constraint)  # fmt: skip
        self.moving_mean = self.add_weight("moving_mean", shape, kind, self.moving_mean_initializer, trainable=False)
        self.moving_variance = self.add_weight(
            "moving_variance", shape, kind, self.moving_variance_initializer, trainable=False
        )
        if self._renorm is not None:
            self._renorm.build(self, shape, kind, self.moving_mean_initializer, self.moving_variance_initializer)
        if self.fused:
            self._ones = None if self.scale else constant_op(np.ones(shape, kind.numpy), kind, "ones")
            self._zeros = None if self.center else constant_op(np.zeros(shape, kind.numpy), kind, "zeros")

    def call(self, inputs: Tensor, training: Any = False) -> Any:
        outputs, mean, variance = self._fused(inputs, training) if self.fused else self._plain(inputs, training)
        if known_bool(training) is not False:
            for update in self.moved(mean, variance, training):
                self.add_update(update)
        outputs.set_shape(inputs.static_shape)
        return outputs

    def moved(self, mean: Any, variance: Any, training: Any) -> list[Any]:
        """Returns the operations that move the layer's means towards those of the batch, while training."""

        def move(moving: Any, new: Any, momentum: float) -> Any:
            keep = smart_cond(training, lambda: convert_to_tensor(np.float32(momentum)), lambda: _one())
            return _moved(moving, new, keep)

        moved_mean = move(self.moving_mean, mean, self.momentum)
        if self._renorm is None:
            return [moved_mean.op, move(self.moving_variance, variance, self.momentum).op]
        return [moved_mean.op, *(x.op for x in self._renorm.updates(self, mean, variance, training, move))]

    def moments_of(self, inputs: Tensor, axes: list[int], keep_dims: bool = False) -> tuple[Any, Any]:
        """Mean and variance of a batch over the axes."""
        return moments(inputs, axes, keep_dims=keep_dims)

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
        """Returns the outputs, and the mean and variance that the moving ones move towards."""
        x = self._in_virtual_batches(inputs, training)
        kept = [*self._axes, 1] if self.virtual_batch_size is not None else self._axes
        axes = [i for i in range(x.shape.ndims or 0) if i not in kept]
        mean, variance = smart_cond(
            training,
            lambda: [cast(v, self.moving_mean.dtype) for v in self.moments_of(x, axes, self._keeps_rank)],
            lambda: [apply_op("Identity", [v.value()]) for v in (self.moving_mean, self.moving_variance)],
        )
        scale, offset = self._along_axis(self.gamma, x), self._along_axis(self.beta, x)
        of_batch = mean, variance
        if known_bool(training) is not False:
            if self.virtual_batch_size is not None:
                of_batch = reduce_mean(mean, 1, keepdims=True), reduce_mean(variance, 1, keepdims=True)
            if self.adjustment is not None:
                scale, offset = _composed(*self._adjusted(x, training), scale, offset)
            if self._renorm is not None:
                r, d = self._renorm.correction(*of_batch, training)
                scale, offset = _composed(self._along_axis(r, x), self._along_axis(d, x), scale, offset)
        outputs: Any = nn_batch_normalization(
            x, self._along_axis(mean, x), self._along_axis(variance, x), offset, scale, self.epsilon
        )
        if self.virtual_batch_size is not None:
            outputs = reshape(outputs, shape_of(inputs))
        return outputs, *of_batch

    def _in_virtual_batches(self, inputs: Tensor, training: Any) -> Any:
        """Returns the inputs, [examples of a virtual batch, virtual batches, ...] where there are such."""
        size = self.virtual_batch_size
        if size is None:
            return inputs
        examples = inputs.shape.as_list()[0]
        trains = known_bool(training) is not False
        if trains and examples is not None and examples % size:
            raise InvalidArgumentError(
                f"layer '{self.name}': {examples} examples for a virtual_batch_size of {size}; it must divide their "
                "number"
            )
        rest: Any = shape_of(inputs)
        return reshape(inputs, concat([[size, -1] if trains else [-1, 1], rest[1:]], 0))

    def _adjusted(self, inputs: Any, training: Any) -> tuple[Any, Any]:
        """Returns the scale and the shift of the adjustment; 1 and 0 while not training."""
        scale, shift = (convert_to_tensor(v) for v in self.adjustment(shape_of(inputs)))
        return (
            smart_cond(training, lambda: scale, lambda: ones_like(scale)),
            smart_cond(training, lambda: shift, lambda: zeros_like(shift)),
        )

    def _along_axis(self, value: Any, inputs: Tensor) -> Any:
        """Returns values of the channels in the dtype of the inputs, and so that they broadcast against them."""
        if value is None:
            return None
        value, rank = cast(value, inputs.dtype), inputs.shape.ndims or 1
        if self._keeps_rank or self.axis == rank - 1:
            return value
        return reshape(value, [-1] + [1] * (rank - 1 - self.axis))

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        return TensorShape(input_shape)


def _composed(scale: Any, offset: Any, then_scale: Any, then_offset: Any) -> tuple[Any, Any]:
    """Scale and offset of x * scale + offset, then times and plus the others, which may be None."""
    if then_scale is not None:
        scale, offset = scale * then_scale, offset * then_scale
    return scale, offset if then_offset is None else offset + then_offset


def _one() -> Tensor:
    return convert_to_tensor(np.float32(1))


def _moved(moving: Any, new: Any, keep: Any) -> Any:
    """Returns a variable after it was moved towards a new value by 1 - keep."""
    with name_scope("AssignMovingAvg"):
        step = apply_op("Sub", [1.0, cast(keep, moving.dtype)])
        change = apply_op("Mul", [apply_op("Sub", [moving.value(), cast(new, moving.dtype)]), step])
        return moving.assign_sub(change)


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
    """Returns a `BatchNormalization` layer, made and called on `inputs`. training: a bool or a scalar tensor.

    The operations that move the means are in GraphKeys.UPDATE_OPS; a training step must depend on them.
    """
    layer = BatchNormalization(
        axis, momentum, epsilon, center, scale, beta_initializer, gamma_initializer, moving_mean_initializer,
        moving_variance_initializer, beta_regularizer, gamma_regularizer, beta_constraint, gamma_constraint, renorm,
        renorm_clipping, renorm_momentum, fused, trainable, virtual_batch_size, adjustment, name, _scope=name,
        _reuse=reuse,
    )  # fmt: skip
    return layer(inputs, training=training)
