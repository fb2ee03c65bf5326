"""Random numbers that depend on their inputs alone: a pair of seeds."""

from __future__ import annotations

from typing import Any

from timberframe.api.framework import convert_to_tensor, name_scope
from timberframe.api.random import between, floating, gamma_parameters, scaled, scaled_gamma, shape_tensor
from timberframe_core.dtypes import as_dtype, float32, int32, int64
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Tensor
from timberframe_ops.random.stateless_source import AUTOMATIC, PHILOX

NAMESPACES = {
    "random": (
        "stateless_binomial", "stateless_categorical", "stateless_gamma", "stateless_multinomial", "stateless_normal",
        "stateless_parameterized_truncated_normal", "stateless_poisson", "stateless_truncated_normal",
        "stateless_uniform",
    ),
}  # fmt: skip


def _check_algorithm(alg: Any) -> None:
    if alg not in ("philox", "auto_select", PHILOX, AUTOMATIC):
        raise InvalidArgumentError(f"tf.random: alg is {alg!r}; 'philox' or 'auto_select' is required")


def stateless_uniform(
    shape: Any,
    seed: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = float32,
    name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:
    """Returns uniform numbers in [minval, maxval) that depend on the pair of integers `seed` alone.

    Both bounds None: integers with every bit random.
    """
    _check_algorithm(alg)
    kind = as_dtype(dtype)
    with name_scope(name, "stateless_random_uniform", [shape, seed, minval, maxval]) as scope:
        sizes = shape_tensor(shape)
        if kind.is_integer:
            if minval is None and maxval is None:
                full: Tensor = apply_op("StatelessRandomUniformFullInt", [sizes, seed], {"dtype": kind}, scope)
                return full
            if minval is None or maxval is None:
                raise InvalidArgumentError(
                    f"tf.random.stateless_uniform: minval is {minval!r} and maxval {maxval!r}; "
                    f"integers, {kind.name}, need both or neither"
                )
            made: Tensor = apply_op("StatelessRandomUniformInt", [sizes, seed, minval, maxval], {"dtype": kind}, scope)
            return made
        low = convert_to_tensor(0 if minval is None else minval, kind, name="min")
        high = convert_to_tensor(1 if maxval is None else maxval, kind, name="max")
        drawn = apply_op("StatelessRandomUniform", [sizes, seed], {"dtype": floating("random", kind)})
        return between(drawn, low, high, scope)


def _stateless_normal(
    op: str, default: str, shape: Any, seed: Any, mean: Any, stddev: Any, dtype: Any, name: str | None, alg: Any
) -> Tensor:
    _check_algorithm(alg)
    with name_scope(name, default, [shape, seed, mean, stddev]) as scope:
        kind = floating(default, dtype)
        sizes = shape_tensor(shape)
        center = convert_to_tensor(mean, kind, name="mean")
        deviation = convert_to_tensor(stddev, kind, name="stddev")
        return scaled(apply_op(op, [sizes, seed], {"dtype": kind}), center, deviation, scope)


def stateless_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:
    """Returns normal numbers that depend on the pair of integers `seed` alone."""
    return _stateless_normal(
        "StatelessRandomNormal", "stateless_random_normal", shape, seed, mean, stddev, dtype, name, alg
    )


def stateless_truncated_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:
    """Returns normal numbers within two deviations of the mean that depend on the pair of integers `seed` alone."""
    return _stateless_normal(
        "StatelessTruncatedNormal", "stateless_truncated_normal", shape, seed, mean, stddev, dtype, name, alg
    )


def stateless_categorical(
    logits: Any, num_samples: Any, seed: Any, dtype: Any = int64, name: str | None = None
) -> Tensor:
    """Classes [batch, num_samples] for logits [batch, classes], by the pair of integers `seed` alone."""
    with name_scope(name, "stateless_categorical", [logits, seed]):
        given = convert_to_tensor(logits, name="logits")
        result: Tensor = apply_op("StatelessMultinomial", [given, num_samples, seed], {"output_dtype": as_dtype(dtype)})
        return result


def stateless_multinomial(
    logits: Any, num_samples: Any, seed: Any, output_dtype: Any = int64, name: str | None = None
) -> Tensor:
    """`stateless_categorical` by its older name."""
    return stateless_categorical(logits, num_samples, seed, output_dtype, name or "stateless_multinomial")


def stateless_binomial(
    shape: Any, seed: Any, counts: Any, probs: Any, output_dtype: Any = int32, name: str | None = None
) -> Tensor:
    """Successes among `counts` trials of probability `probs`, in a shape that ends with theirs, by `seed` alone."""
    with name_scope(name, "stateless_random_binomial", [shape, seed, counts, probs]):
        sizes = shape_tensor(shape)
        probability = convert_to_tensor(probs, name="probs", preferred_dtype=float32)
        trials = convert_to_tensor(counts, probability.dtype, name="counts")
        attrs = {"dtype": as_dtype(output_dtype)}
        result: Tensor = apply_op("StatelessRandomBinomial", [sizes, seed, trials, probability], attrs)
        return result


def stateless_gamma(
    shape: Any, seed: Any, alpha: Any, beta: Any = None, dtype: Any = float32, name: str | None = None
) -> Tensor:
    """Gamma numbers in a shape that ends with that of alpha and beta, by `seed` alone."""
    with name_scope(name, "stateless_random_gamma", [shape, seed, alpha, beta]) as scope:
        sizes = shape_tensor(shape)
        parameter, rate = gamma_parameters(alpha, beta, floating("random.stateless_gamma", dtype))
        return scaled_gamma(apply_op("StatelessRandomGammaV2", [sizes, seed, parameter]), rate, scope)


def stateless_poisson(shape: Any, seed: Any, lam: Any, dtype: Any = int32, name: str | None = None) -> Tensor:
    """Poisson numbers in a shape that ends with that of the rates lam, by `seed` alone."""
    with name_scope(name, "stateless_random_poisson", [shape, seed, lam]):
        rate = convert_to_tensor(lam, name="lam", preferred_dtype=float32)
        result: Tensor = apply_op(
            "StatelessRandomPoisson", [shape_tensor(shape), seed, rate], {"dtype": as_dtype(dtype)}
        )
        return result


def stateless_parameterized_truncated_normal(
    shape: Any,
    seed: Any,
    means: Any = 0.0,
    stddevs: Any = 1.0,
    minvals: Any = -2.0,
    maxvals: Any = 2.0,
    name: str | None = None,
) -> Tensor:
    """Returns normal numbers between bounds, in a shape that ends with that of the parameters, by `seed` alone."""
    with name_scope(name, "stateless_parameterized_truncated_normal", [shape, seed, means, stddevs, minvals, maxvals]):
        mean = convert_to_tensor(means, name="means", preferred_dtype=float32)
        rest = [convert_to_tensor(p, mean.dtype) for p in (stddevs, minvals, maxvals)]
        result: Tensor = apply_op("StatelessParameterizedTruncatedNormal", [shape_tensor(shape), seed, mean, *rest])
        return result
