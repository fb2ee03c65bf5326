"""Normalisation: of batches, of single examples, of groups of channels, of lengths."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from timberframe.api.arrays import identity, reshape, shape
from timberframe.api.framework import GraphKeys, control_dependencies, name_scope
from timberframe.api.initializers import ones_initializer, zeros_initializer
from timberframe.api.nn import batch_normalization, moments
from timberframe.api.nn_backward import weighted_moments
from timberframe.api.reduction import reduce_sum
from timberframe.api.variable_scope import variable_scope
from timberframe.layers.normalization import BatchNormalization
from timberframe.layers.switch import smart_cond
from timberframe.train.moving_averages import assign_moving_average
from timberframe_contrib.contrib.framework import add_arg_scope, model_variable
from timberframe_contrib.contrib.layers.base import called, finished, layout, opened_scope
from timberframe_contrib.contrib.layers.utils import get_variable_collections
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor


@add_arg_scope
def batch_norm(
    inputs: Any,
    decay: float = 0.999,
    center: bool = True,
    scale: bool = False,
    epsilon: float = 0.001,
    activation_fn: Callable[[Any], Any] | None = None,
    param_initializers: Mapping[str, Any] | None = None,
    param_regularizers: Mapping[str, Any] | None = None,
    updates_collections: Any = GraphKeys.UPDATE_OPS,
    is_training: Any = True,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    batch_weights: Any = None,
    fused: bool | None = None,
    data_format: str = "NHWC",
    zero_debias_moving_mean: bool = False,
    scope: Any = None,
    renorm: bool = False,
    renorm_clipping: Any = None,
    renorm_decay: float = 0.99,
    adjustment: Any = None,
) -> Any:
    """Batch normalisation, in scope `BatchNorm`; see `tf.layers.BatchNormalization`, which has renorm and adjustment.

    updates_collections: of the operations that move the means; None makes the output wait for them. batch_weights: how
    often each example counts. zero_debias_moving_mean: divides the moving mean by 1 - decay^n after n steps. fused:
    as in `tf.layers`, and for matrices, too, whose moving variance then gets N / (N - 1) of a batch's.
    """
    initializers, regularizers = param_initializers or {}, param_regularizers or {}
    with opened_scope(scope, "BatchNorm", inputs, reuse) as opened:
        given = convert_to_tensor(inputs)
        first = layout(data_format) == "channels_first"
        fuses = fused is not False and not renorm and adjustment is None
        as_image = fuses and batch_weights is None and given.shape.ndims == 2
        if as_image:
            channels = given.shape.as_list()[1]
            given = reshape(given, [-1, channels, 1, 1] if first else [-1, 1, 1, channels])
        layer = _BatchNorm(
            batch_weights, zero_debias_moving_mean, 1 if first else -1, decay, epsilon, center, scale,
            initializers.get("beta", zeros_initializer), initializers.get("gamma", ones_initializer),
            initializers.get("moving_mean", zeros_initializer),
            initializers.get("moving_variance", ones_initializer), regularizers.get("beta"),
            regularizers.get("gamma"), renorm=renorm, renorm_clipping=renorm_clipping, renorm_momentum=renorm_decay,
            fused=fused if batch_weights is None else False, trainable=trainable, adjustment=adjustment,
            _scope=opened, _reuse=reuse,
        )  # fmt: skip
        layer.updates_collections = _names(updates_collections)
        outputs = called(layer, given, variables_collections, training=is_training)
        if as_image:
            outputs = reshape(outputs, shape(convert_to_tensor(inputs)))
            outputs.set_shape(convert_to_tensor(inputs).static_shape)
        if updates_collections is None:
            with control_dependencies(layer.updates):
                outputs = identity(outputs)
        return finished(outputs, None, None, activation_fn, outputs_collections, opened.name)


class _BatchNorm(BatchNormalization):
    """The layer of `tf.layers` with weights of examples, and with a moving mean that does not begin at zero."""

    def __init__(self, batch_weights: Any, zero_debias: bool, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._weights, self._zero_debias = batch_weights, zero_debias

    def moments_of(self, inputs: Any, axes: list[int], keep_dims: bool = False) -> tuple[Any, Any]:
        if self._weights is None:
            return super().moments_of(inputs, axes, keep_dims)
        weights = reshape(convert_to_tensor(self._weights), [-1] + [1] * (inputs.shape.ndims - 1))
        return weighted_moments(inputs, axes, weights, keep_dims=keep_dims)

    def moved(self, mean: Any, variance: Any, training: Any) -> list[Any]:
        updates = super().moved(mean, variance, training)
        if self._zero_debias:
            updates[0] = smart_cond(
                training,
                lambda: assign_moving_average(self.moving_mean, mean, self.momentum),
                lambda: identity(self.moving_mean),
            )
        return updates


def _names(collections: Any) -> list[str]:
    """Returns the names of no, one or several collections."""
    return [collections] if isinstance(collections, str) else list(collections or [])


@add_arg_scope
def layer_norm(
    inputs: Any,
    center: bool = True,
    scale: bool = True,
    activation_fn: Callable[[Any], Any] | None = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    begin_norm_axis: int = 1,
    begin_params_axis: int = -1,
    scope: Any = None,
) -> Any:
    """Ba et al. 2016: (x - mean) / sqrt(variance + 1e-12) * gamma + beta, in scope `LayerNorm`.

    Mean and variance are over the axes from begin_norm_axis on; beta and gamma have those from begin_params_axis on.
    """
    with variable_scope(scope, "LayerNorm", [inputs], reuse=reuse) as opened:
        given = convert_to_tensor(inputs)
        rank = given.shape.ndims
        if rank is None or not (-rank <= begin_norm_axis < rank and -rank <= begin_params_axis < rank):
            raise InvalidArgumentError(
                f"tf.contrib.layers.layer_norm: begin_norm_axis {begin_norm_axis} and begin_params_axis "
                f"{begin_params_axis} for an input of shape {given.shape}; they must be axes of it"
            )
        sizes = given.shape.as_list()[begin_params_axis % rank :]
        beta, gamma = _beta_and_gamma(sizes, given.dtype, center, scale, None, variables_collections, trainable)
        mean, variance = moments(given, list(range(begin_norm_axis % rank, rank)), keep_dims=True)
        outputs = batch_normalization(given, mean, variance, beta, gamma, 1e-12)
        outputs.set_shape(given.static_shape)
        return finished(outputs, None, None, activation_fn, outputs_collections, opened.name)


def _beta_and_gamma(
    sizes: Sequence[Any], dtype: Any, center: bool, scale: bool, initializers: Any, collections: Any, trainable: bool
) -> list[Any]:
    """Returns the variables `beta` and `gamma`, None for one that is not wanted."""
    given = initializers or {}
    return [
        model_variable(
            name, sizes, dtype, given.get(name, initializer), trainable=trainable,
            collections=get_variable_collections(collections, name),
        ) if wanted else None
        for name, initializer, wanted in (("beta", zeros_initializer(), center), ("gamma", ones_initializer(), scale))
    ]  # fmt: skip


@add_arg_scope
def instance_norm(
    inputs: Any,
    center: bool = True,
    scale: bool = True,
    epsilon: float = 1e-6,
    activation_fn: Callable[[Any], Any] | None = None,
    param_initializers: Mapping[str, Any] | None = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    data_format: str = "NHWC",
    scope: Any = None,
) -> Any:
    """Ulyanov et al. 2016: each channel of each example by its own mean and variance, in scope `InstanceNorm`."""
    with variable_scope(scope, "InstanceNorm", [inputs], reuse=reuse) as opened:
        given = convert_to_tensor(inputs)
        rank = given.shape.ndims
        axis = 1 if layout(data_format) == "channels_first" else (rank or 0) - 1
        if rank is None or rank < 3 or given.shape.as_list()[axis] is None:
            raise InvalidArgumentError(
                f"tf.contrib.layers.instance_norm: the inputs have shape {given.shape}; 3 axes at least, with a known "
                "number of channels, are required"
            )
        channels = given.shape.as_list()[axis]
        made = _beta_and_gamma(
            [channels], given.dtype, center, scale, param_initializers, variables_collections, trainable
        )
        along = [-1 if i == axis else 1 for i in range(rank)]
        beta, gamma = (None if v is None else reshape(v, along) for v in made)
        mean, variance = moments(given, [i for i in range(1, rank) if i != axis], keep_dims=True)
        outputs = batch_normalization(given, mean, variance, beta, gamma, epsilon)
        outputs.set_shape(given.static_shape)
        return finished(outputs, None, None, activation_fn, outputs_collections, opened.name)


@add_arg_scope
def group_norm(
    inputs: Any,
    groups: int = 32,
    channels_axis: int = -1,
    reduction_axes: Sequence[int] = (-3, -2),
    center: bool = True,
    scale: bool = True,
    epsilon: float = 1e-6,
    activation_fn: Callable[[Any], Any] | None = None,
    param_initializers: Mapping[str, Any] | None = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
    mean_close_to_zero: bool = False,
) -> Any:
    """Wu and He 2018: groups of channels by the mean and variance of their values along reduction_axes.

    The variables `beta` and `gamma` are in scope `GroupNorm`. mean_close_to_zero: whether the variance is computed from
    the sum of the squares, which is exact enough then.
    """
    with variable_scope(scope, "GroupNorm", [inputs], reuse=reuse) as opened:
        given = convert_to_tensor(inputs)
        rank = given.shape.ndims or 0
        axis, reduced = channels_axis % max(rank, 1), sorted(a % max(rank, 1) for a in reduction_axes)
        channels = given.shape.as_list()[axis] if rank else None
        if channels is None or axis in reduced or channels % groups:
            raise InvalidArgumentError(
                f"tf.contrib.layers.group_norm: groups is {groups}, channels_axis {channels_axis} and reduction_axes "
                f"{reduction_axes} for an input of shape {given.shape}; a known number of channels that is a multiple "
                "of groups, on an axis that is not reduced, is required"
            )
        made = _beta_and_gamma(
            [channels], given.dtype, center, scale, param_initializers, variables_collections, trainable
        )
        actual = shape(given)
        sizes = [actual[i] if size is None else size for i, size in enumerate(given.shape.as_list())]
        grouped = reshape(given, [*sizes[:axis], groups, channels // groups, *sizes[axis + 1 :]])
        over = [a + (a > axis) for a in reduced] + [axis + 1]
        if mean_close_to_zero:
            mean = apply_op("Mean", [grouped, over], {"keep_dims": True})
            square = apply_op("Mean", [apply_op("Square", [grouped]), over], {"keep_dims": True})
            variance = square - apply_op("Square", [mean])
        else:
            mean, variance = moments(grouped, over, keep_dims=True)
        along = [1] * axis + [groups, channels // groups] + [1] * (rank - 1 - axis)
        beta, gamma = (None if v is None else reshape(v, along) for v in made)
        outputs = reshape(batch_normalization(grouped, mean, variance, beta, gamma, epsilon), actual)
        outputs.set_shape(given.static_shape)
        return finished(outputs, None, None, activation_fn, outputs_collections, opened.name)


@add_arg_scope
def unit_norm(inputs: Any, dim: int, epsilon: float = 1e-7, scope: str | None = None) -> Any:
    """inputs / sqrt(epsilon + sum of squares along axis dim)."""
    with name_scope(scope, "UnitNorm", [inputs]):
        given = convert_to_tensor(inputs)
        if given.shape.ndims is None or not 0 <= dim < given.shape.ndims:
            raise InvalidArgumentError(
                f"tf.contrib.layers.unit_norm: dim is {dim} for an input of shape {given.shape}; it must "
                "be one of its axes"
            )
        squares: Any = reduce_sum(apply_op("Square", [given]), dim, keepdims=True)
        return given / apply_op("Sqrt", [squares + epsilon])


def poincare_normalize(x: Any, axis: Any = 1, epsilon: float = 1e-5, name: str | None = None) -> Any:
    """Nickel and Kiela 2017: vectors along an axis, no longer than 1 - epsilon."""
    with name_scope(name, "poincare_normalize", [x]):
        x = convert_to_tensor(x)
        inverse = apply_op("Rsqrt", [reduce_sum(apply_op("Square", [x]), axis, keepdims=True)])
        return x * apply_op("Minimum", [(1.0 - epsilon) * inverse, 1.0])
