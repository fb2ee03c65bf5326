"""Random numbers: ops that draw from streams of the Session, and those that depend on their inputs alone."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from timberframe.api.arithmetic import broadcast_dynamic_shape, floormod
from timberframe.api.arrays import broadcast_to, identity, shape
from timberframe.api.assertions import assert_less_equal
from timberframe.api.framework import control_dependencies, convert_to_tensor, name_scope
from timberframe.api.random_seeds import seed_attrs
from timberframe.api.slicing import slice as slice_tensor
from timberframe_core.dtypes import DType, as_dtype, float32, int32, int64
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.tensor_shape import TensorShape

__all__ = [
    "multinomial", "random_crop", "random_gamma", "random_normal", "random_poisson", "random_shuffle",
    "random_uniform", "truncated_normal",
]  # fmt: skip

NAMESPACES = {
    "image": ("random_crop",),
    "random": (
        "categorical", "gamma", "multinomial", "normal", "poisson", "shuffle", "truncated_normal", "uniform",
    ),
}  # fmt: skip

_FLOATING = ("float16", "bfloat16", "float32", "float64")


def shape_tensor(shape: Any) -> Tensor:
    """Returns a shape as the vector that random ops take: int32 where its sizes fit."""
    if isinstance(shape, TensorShape):
        shape = shape.as_list()
    if isinstance(shape, list | tuple) and not any(hasattr(d, "dtype") or hasattr(d, "__tf_tensor__") for d in shape):
        try:
            sizes = np.array([operator.index(d) for d in shape], np.int64)
        except TypeError:
            raise InvalidTypeError(f"tf.random: shape is {list(shape)}; known integers are required") from None
        shape = sizes.astype(np.int32) if np.all(np.abs(sizes) < 2**31) else sizes
    result: Tensor = convert_to_tensor(shape, name="shape", preferred_dtype=int32)
    return result


def floating(function: str, dtype: Any) -> DType:
    """Returns the dtype, which must be a floating one that random ops have."""
    found = as_dtype(dtype)
    if found.name not in _FLOATING:
        raise InvalidTypeError(f"tf.{function}: dtype is {found.name}; one of {', '.join(_FLOATING)} is required")
    return found


def between(drawn: Tensor, low: Any, high: Any, name: str) -> Tensor:
    """Returns numbers of [0, 1) stretched to [low, high)."""
    result: Tensor = apply_op("AddV2", [apply_op("Mul", [drawn, apply_op("Sub", [high, low])]), low], name=name)
    return result


def scaled(drawn: Tensor, mean: Any, stddev: Any, name: str) -> Tensor:
    """Standard normals with a mean and a deviation."""
    result: Tensor = apply_op("AddV2", [apply_op("Mul", [drawn, stddev]), mean], name=name)
    return result


def _is_number(value: Any, wanted: float) -> bool:
    return isinstance(value, int | float) and value == wanted


def random_uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Returns uniform numbers in [minval, maxval), of the Session's stream of the op.

    maxval: 1 for floats where it is None; integers need one. Integers are remainders: if the range is no power of 2,
    the lower ones are slightly more frequent.
    """
    kind = as_dtype(dtype)
    if maxval is None:
        if kind.is_integer:
            raise InvalidArgumentError(f"tf.random_uniform: maxval is None; an integer dtype, {kind.name}, needs one")
        maxval = 1
    with name_scope(name, "random_uniform", [shape, minval, maxval]) as scope:
        sizes = shape_tensor(shape)
        unit = not kind.is_integer and _is_number(minval, 0) and _is_number(maxval, 1)
        if not unit:
            minval = convert_to_tensor(minval, kind, name="min")
            maxval = convert_to_tensor(maxval, kind, name="max")
        attrs = seed_attrs(seed)
        if kind.is_integer:
            made: Tensor = apply_op("RandomUniformInt", [sizes, minval, maxval], attrs, scope)
            return made
        drawn = apply_op("RandomUniform", [sizes], {"dtype": floating("random_uniform", kind), **attrs})
        return drawn if unit else between(drawn, minval, maxval, scope)


def _normal(
    op: str, default: str, shape: Any, mean: Any, stddev: Any, dtype: Any, seed: int | None, name: str | None
) -> Tensor:
    with name_scope(name, default, [shape, mean, stddev]) as scope:
        kind = floating(default, dtype)
        sizes = shape_tensor(shape)
        center = convert_to_tensor(mean, kind, name="mean")
        deviation = convert_to_tensor(stddev, kind, name="stddev")
        return scaled(apply_op(op, [sizes], {"dtype": kind, **seed_attrs(seed)}), center, deviation, scope)


def random_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Returns normal numbers; mean and stddev broadcast against the shape.

    shape: of the result, known or a tensor. dtype: a floating one. seed: with it, or a seed of the graph, each session
    draws the same numbers.
    """
    return _normal("RandomStandardNormal", "random_normal", shape, mean, stddev, dtype, seed, name)


def truncated_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Returns normal numbers within two deviations of the mean: those outside are drawn again.

    The arguments are those of `random_normal`.
    """
    return _normal("TruncatedNormal", "truncated_normal", shape, mean, stddev, dtype, seed, name)


def random_shuffle(value: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """Returns the rows of a tensor (its first dimension) in random order."""
    tensor = convert_to_tensor(value)
    result: Tensor = apply_op("RandomShuffle", [tensor], seed_attrs(seed), name)
    return result


def multinomial(
    logits: Any, num_samples: Any, seed: int | None = None, name: str | None = None, output_dtype: Any = None
) -> Tensor:
    """Classes [batch, num_samples] for logits [batch, classes]: probabilities are in proportion to exp(logits).

    logits: floats. output_dtype: int32 or int64, the latter by default. seed: as in `random_normal`.
    """
    with name_scope(name, "multinomial", [logits]):
        return _categories(logits, num_samples, output_dtype, seed)


def categorical(
    logits: Any, num_samples: Any, dtype: Any = None, seed: int | None = None, name: str | None = None
) -> Tensor:
    """Classes [batch, num_samples] for logits [batch, classes]: probabilities are in proportion to exp(logits).

    dtype: int32 or int64, the latter by default. The others are those of `multinomial`.
    """
    with name_scope(name, "categorical", [logits]):
        return _categories(logits, num_samples, dtype, seed)


def _categories(logits: Any, num_samples: Any, dtype: Any, seed: int | None) -> Tensor:
    given = convert_to_tensor(logits, name="logits")
    attrs = {"output_dtype": as_dtype(dtype or int64), **seed_attrs(seed)}
    result: Tensor = apply_op("Multinomial", [given, num_samples], attrs)
    return result


def gamma_parameters(alpha: Any, beta: Any, dtype: DType) -> tuple[Tensor, Tensor]:
    """alpha, in the shape to which it and beta broadcast, and beta."""
    shape_parameter = convert_to_tensor(alpha, dtype, name="alpha")
    rate = convert_to_tensor(1 if beta is None else beta, dtype, name="beta")
    both = broadcast_dynamic_shape(shape(shape_parameter), shape(rate))
    return broadcast_to(shape_parameter, both), rate


def scaled_gamma(drawn: Tensor, beta: Tensor, name: str) -> Tensor:
    """Gamma numbers over their rate; what underflows becomes the smallest normal number."""
    tiny = np.ldexp(1.0, {"float16": -14, "float32": -126, "float64": -1022}[drawn.dtype.name])
    result: Tensor = apply_op("Maximum", [tiny, apply_op("RealDiv", [drawn, beta])], name=name)
    return result


def random_gamma(
    shape: Any, alpha: Any, beta: Any = None, dtype: Any = float32, seed: int | None = None, name: str | None = None
) -> Tensor:
    """Gamma numbers [*shape, *parameters] of the shape parameters alpha and the rates beta (1 where None).

    alpha and beta broadcast to one shape, and are above 0. dtype: a floating one. seed: as in `random_normal`.
    """
    with name_scope(name, "random_gamma", [shape, alpha, beta]) as scope:
        sizes = shape_tensor(shape)
        parameter, rate = gamma_parameters(alpha, beta, floating("random_gamma", dtype))
        return scaled_gamma(apply_op("RandomGamma", [sizes, parameter], seed_attrs(seed)), rate, scope)


def random_poisson(
    lam: Any, shape: Any, dtype: Any = float32, seed: int | None = None, name: str | None = None
) -> Tensor:
    """Poisson numbers [*shape, *lam's shape] of the rates lam.

    lam: 0 or above. dtype: of the result, of floats or integers. seed: as in `random_normal`.
    """
    with name_scope(name, "random_poisson", [lam, shape]):
        sizes = shape_tensor(shape)
        attrs = {"dtype": as_dtype(dtype), **seed_attrs(seed)}
        result: Tensor = apply_op("RandomPoissonV2", [sizes, lam], attrs)
        return result


def random_crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """Returns a part of a tensor with the given size in each dimension, at a random offset."""
    with name_scope(name, "random_crop", [value, size]) as scope:
        given = convert_to_tensor(value, name="value")
        wanted = convert_to_tensor(size, int32, name="size")
        whole = shape(given)
        fits = assert_less_equal(wanted, whole, message="tf.random_crop: size must not exceed the shape of the value")
        with control_dependencies([fits] if fits is not None else []):
            whole = identity(whole)
        limit = apply_op("AddV2", [apply_op("Sub", [whole, wanted]), 1])
        drawn = random_uniform(shape(whole), dtype=int32, maxval=int32.max, seed=seed)
        return slice_tensor(given, floormod(drawn, limit), wanted, name=scope)


uniform, normal, shuffle, gamma, poisson = random_uniform, random_normal, random_shuffle, random_gamma, random_poisson
