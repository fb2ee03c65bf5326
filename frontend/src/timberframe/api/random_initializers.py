"""Initializers that draw random numbers; the same seeds give the numbers that TensorFlow gives."""

from __future__ import annotations

import math
from typing import Any

from timberframe.api import random as draws
from timberframe.api.initializers import Initializer, static_sizes
from timberframe_core.dtypes import DType, as_dtype, float32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Tensor
from timberframe_core.shapes import StaticShape, format_shape

__all__ = [
    "glorot_normal_initializer", "glorot_uniform_initializer", "orthogonal_initializer", "random_normal_initializer",
    "random_uniform_initializer", "truncated_normal_initializer", "uniform_unit_scaling_initializer",
    "variance_scaling_initializer",
]  # fmt: skip

NAMESPACES = {
    "initializers": (
        "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "lecun_normal", "lecun_uniform", "orthogonal",
        "random_normal", "random_uniform", "truncated_normal", "uniform_unit_scaling", "variance_scaling",
    ),
}  # fmt: skip

_TRUNCATED_DEVIATION = 0.87962566103423978
"""The standard deviation of a standard normal truncated at two deviations."""


def _floating(dtype: Any) -> DType:
    found = as_dtype(dtype)
    if not found.is_floating:
        raise InvalidArgumentError(f"initializer: dtype is {found.name}; a floating dtype is required")
    return found


class random_uniform_initializer(Initializer):  # noqa: N801 - TensorFlow's name
    """Fills a variable with uniform numbers in [minval, maxval); maxval None is 1, for floats alone."""

    def __init__(self, minval: Any = 0.0, maxval: Any = None, seed: int | None = None, dtype: Any = float32) -> None:
        self.minval = minval
        self.maxval = maxval
        self.seed = seed
        self.dtype = as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        return draws.random_uniform(shape, self.minval, self.maxval, dtype or self.dtype, self.seed)

    def get_config(self) -> dict[str, Any]:
        return {"minval": self.minval, "maxval": self.maxval, "seed": self.seed, "dtype": self.dtype.name}


class random_normal_initializer(Initializer):  # noqa: N801 - TensorFlow's name
    """Fills a variable with normal numbers.

    mean, stddev: numbers. seed: as in `tf.random_normal`. dtype: of variables that ask for none.
    """

    def __init__(self, mean: Any = 0.0, stddev: Any = 1.0, seed: int | None = None, dtype: Any = float32) -> None:
        self.mean = mean
        self.stddev = stddev
        self.seed = seed
        self.dtype = _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        return draws.random_normal(shape, self.mean, self.stddev, dtype or self.dtype, self.seed)

    def get_config(self) -> dict[str, Any]:
        return {"mean": self.mean, "stddev": self.stddev, "seed": self.seed, "dtype": self.dtype.name}


class truncated_normal_initializer(random_normal_initializer):  # noqa: N801 - TensorFlow's name
    """Fills a variable with normal numbers within two deviations of the mean.

    The arguments are those of `random_normal_initializer`.
    """

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        return draws.truncated_normal(shape, self.mean, self.stddev, dtype or self.dtype, self.seed)


class uniform_unit_scaling_initializer(Initializer):  # noqa: N801 - TensorFlow's name
    """Fills a variable with uniform numbers that keep the scale of a product's inputs, times `factor`.

    They lie within factor * sqrt(3 / inputs), all dimensions but the last being inputs.
    """

    def __init__(self, factor: float = 1.0, seed: int | None = None, dtype: Any = float32) -> None:
        self.factor = factor
        self.seed = seed
        self.dtype = _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        inputs = max(1.0, float(math.prod(_full_shape(shape, partition_info)[:-1])))
        limit = math.sqrt(3 / inputs) * self.factor
        return draws.random_uniform(shape, -limit, limit, dtype or self.dtype, self.seed)

    def get_config(self) -> dict[str, Any]:
        return {"factor": self.factor, "seed": self.seed, "dtype": self.dtype.name}


def _full_shape(shape: Any, partition_info: Any) -> StaticShape:
    """Returns the shape of the variable of which `shape` may be a part."""
    return static_sizes(shape if partition_info is None else partition_info.full_shape)


def _fans(sizes: StaticShape) -> tuple[float, float]:
    """Inputs and outputs of one unit: the last two sizes, times the positions of a filter."""
    if len(sizes) < 2:
        return (float(sizes[0]), float(sizes[0])) if sizes else (1.0, 1.0)
    positions = math.prod(sizes[:-2])
    return float(sizes[-2] * positions), float(sizes[-1] * positions)


class variance_scaling_initializer(Initializer):  # noqa: N801 - TensorFlow's name
    """Fills a variable with numbers of variance `scale` over the number of inputs or outputs of a unit.

    mode: fan_in, fan_out or fan_avg. distribution: truncated_normal (or normal), untruncated_normal or uniform.
    """

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: int | None = None,
        dtype: Any = float32,
    ) -> None:
        if scale <= 0:
            raise InvalidArgumentError(f"initializer: scale is {scale}; it must be above 0")
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise InvalidArgumentError(f"initializer: mode is {mode!r}; fan_in, fan_out or fan_avg is required")
        distribution = distribution.lower()
        if distribution not in ("normal", "truncated_normal", "untruncated_normal", "uniform"):
            raise InvalidArgumentError(
                f"initializer: distribution is {distribution!r}; normal, truncated_normal, untruncated_normal or "
                "uniform is required"
            )
        self.scale = scale
        self.mode = mode
        self.distribution = distribution
        self.seed = seed
        self.dtype = _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        kind = dtype or self.dtype
        fan_in, fan_out = _fans(_full_shape(shape, partition_info))
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        variance = self.scale / max(1.0, fan)
        if self.distribution == "uniform":
            limit = math.sqrt(3.0 * variance)
            return draws.random_uniform(shape, -limit, limit, kind, self.seed)
        if self.distribution == "untruncated_normal":
            return draws.random_normal(shape, 0.0, math.sqrt(variance), kind, self.seed)
        return draws.truncated_normal(shape, 0.0, math.sqrt(variance) / _TRUNCATED_DEVIATION, kind, self.seed)

    def get_config(self) -> dict[str, Any]:
        return {
            "scale": self.scale,
            "mode": self.mode,
            "distribution": self.distribution,
            "seed": self.seed,
            "dtype": self.dtype.name,
        }


class glorot_uniform_initializer(variance_scaling_initializer):  # noqa: N801 - TensorFlow's name
    """Uniform numbers within sqrt(6 / (inputs + outputs)) (X. Glorot, Y. Bengio, AISTATS 2010)."""

    def __init__(self, seed: int | None = None, dtype: Any = float32) -> None:
        super().__init__(1.0, "fan_avg", "uniform", seed, dtype)

    def get_config(self) -> dict[str, Any]:
        return {"seed": self.seed, "dtype": self.dtype.name}


class glorot_normal_initializer(variance_scaling_initializer):  # noqa: N801 - TensorFlow's name
    """Truncated normals of deviation sqrt(2 / (inputs + outputs)) (X. Glorot, Y. Bengio, AISTATS 2010)."""

    def __init__(self, seed: int | None = None, dtype: Any = float32) -> None:
        super().__init__(1.0, "fan_avg", "truncated_normal", seed, dtype)

    def get_config(self) -> dict[str, Any]:
        return {"seed": self.seed, "dtype": self.dtype.name}


def he_normal(seed: int | None = None) -> variance_scaling_initializer:
    """Truncated normals of deviation sqrt(2 / inputs) (K. He et al., ICCV 2015)."""
    return variance_scaling_initializer(2.0, "fan_in", "truncated_normal", seed)


def he_uniform(seed: int | None = None) -> variance_scaling_initializer:
    """Returns uniform numbers within sqrt(6 / inputs) (K. He et al., ICCV 2015)."""
    return variance_scaling_initializer(2.0, "fan_in", "uniform", seed)


def lecun_normal(seed: int | None = None) -> variance_scaling_initializer:
    """Truncated normals of deviation sqrt(1 / inputs) (Y. LeCun et al., Efficient BackProp, 1998)."""
    return variance_scaling_initializer(1.0, "fan_in", "truncated_normal", seed)


def lecun_uniform(seed: int | None = None) -> variance_scaling_initializer:
    """Returns uniform numbers within sqrt(3 / inputs) (Y. LeCun et al., Efficient BackProp, 1998)."""
    return variance_scaling_initializer(1.0, "fan_in", "uniform", seed)


class orthogonal_initializer(Initializer):  # noqa: N801 - TensorFlow's name
    """Fills a variable with an orthogonal matrix, times `gain`; dimensions before the last count as one.

    It is Q of a QR decomposition of normal numbers, with signs such that R's diagonal is positive.
    """

    def __init__(self, gain: float = 1.0, seed: int | None = None, dtype: Any = float32) -> None:
        self.gain = gain
        self.seed = seed
        self.dtype = _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        sizes = static_sizes(shape)
        if len(sizes) < 2:
            raise InvalidArgumentError(
                f"initializer: shape is {format_shape(sizes)}; an orthogonal matrix has at least rank 2"
            )
        rows, columns = math.prod(sizes[:-1]), sizes[-1]
        drawn = draws.random_normal(sorted((rows, columns), reverse=True), dtype=dtype or self.dtype, seed=self.seed)
        q, r = apply_op("Qr", [drawn], {"full_matrices": False})
        turned = q * apply_op("Sign", [apply_op("MatrixDiagPart", [r])])
        if rows < columns:
            turned = apply_op("Transpose", [turned, [1, 0]])
        result: Tensor = self.gain * apply_op("Reshape", [turned, list(sizes)])
        return result

    def get_config(self) -> dict[str, Any]:
        return {"gain": self.gain, "seed": self.seed, "dtype": self.dtype.name}


random_uniform, random_normal = random_uniform_initializer, random_normal_initializer
truncated_normal, uniform_unit_scaling = truncated_normal_initializer, uniform_unit_scaling_initializer
glorot_uniform, glorot_normal = glorot_uniform_initializer, glorot_normal_initializer
variance_scaling, orthogonal = variance_scaling_initializer, orthogonal_initializer
