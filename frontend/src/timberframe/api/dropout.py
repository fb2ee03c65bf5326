"""Dropout."""

from __future__ import annotations

from typing import Any

from timberframe.api.arrays import shape
from timberframe.api.framework import convert_to_tensor, name_scope
from timberframe.api.random import random_uniform
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.tensor_shape import as_shape
from timberframe_core.shapes import is_static

NAMESPACES = {"nn": ("dropout",)}


def dropout(
    x: Any,
    keep_prob: Any = None,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
    rate: Any = None,
) -> Tensor:
    """Sets elements to zero at random, and scales the others so that the expected sum stays.

    rate: probability of a zero (or keep_prob, 1 less it). noise_shape: broadcasts against x; along its sizes of 1 all
    elements are kept or dropped together, None means x's size.
    """
    if (keep_prob is None) == (rate is None):
        count = "neither" if rate is None else "both"
        raise InvalidArgumentError(f"tf.nn.dropout: {count} of rate and keep_prob given; one is required")
    with name_scope(name, "dropout", [x]) as scope:
        given = convert_to_tensor(x, name="x")
        if not given.dtype.is_floating:
            raise InvalidArgumentError(f"tf.nn.dropout: x has dtype {given.dtype.name}; a floating dtype is required")
        dropped = 1 - keep_prob if rate is None else rate
        if isinstance(dropped, int | float):
            if not 0 <= dropped < 1:
                fact = f"rate is {rate}; it must be in [0, 1)"
                if rate is None:
                    fact = f"keep_prob is {keep_prob}; it must be in (0, 1]"
                raise InvalidArgumentError(f"tf.nn.dropout: {fact}")
            if dropped == 0:
                return given
        return _dropped(given, dropped, noise_shape, seed, scope)


def _dropped(x: Tensor, rate: Any, noise_shape: Any, seed: int | None, name: str) -> Tensor:
    if isinstance(rate, int | float):
        scale: Any = 1 / (1 - rate)
    else:
        rate = convert_to_tensor(rate, x.dtype, name="rate")
        scale = apply_op("RealDiv", [1, apply_op("Sub", [1, rate])])
    scaled = apply_op("Mul", [x, scale])
    drawn = random_uniform(_noise_shape(x, noise_shape), dtype=x.dtype, seed=seed)
    kept = apply_op("GreaterEqual", [drawn, rate])
    result: Tensor = apply_op("SelectV2", [kept, scaled, 0], name=name)
    result.set_shape(x.static_shape)  # nothing broadcasts x: the rate is a scalar, also where that is not known yet
    return result


def _noise_shape(x: Tensor, noise_shape: Any) -> Any:
    if noise_shape is None:
        return shape(x)
    if hasattr(noise_shape, "dtype"):
        return noise_shape
    sizes, own = as_shape(noise_shape), x.static_shape
    if sizes is None or own is None or len(sizes) != len(own) or is_static(sizes):
        return noise_shape
    whole = shape(x)
    return [whole[i] if n is None and own[i] is None else own[i] if n is None else n for i, n in enumerate(sizes)]
