"""Distributions of a location and a scale: Normal, Laplace, StudentT, Uniform."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from timberframe.api.arithmetic import betainc
from timberframe.api.assertions import assert_less, assert_positive
from timberframe.api.comparison import greater, greater_equal, less, logical_or
from timberframe.api.constants import ones_like, zeros_like
from timberframe.api.framework import control_dependencies
from timberframe.api.random import random_gamma, random_normal, random_uniform
from timberframe.api.selection import where_v2
from timberframe.api.unary import abs as magnitude
from timberframe.api.unary import digamma, exp, lgamma, log, log1p, ndtri, rsqrt, sign, square
from timberframe_contrib.distributions.distribution import FULLY_REPARAMETERIZED, Scalar, new_seed, parameter
from timberframe_contrib.distributions.normal_tails import log_ndtr, ndtr

_HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)


class _LocationAndScale(Scalar):
    """Base of the distributions of loc + scale * z, whose mean and mode are loc. scale: above 0."""

    _parameter_names = ("loc", "scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool, allow_nan_stats: bool, name: str) -> None:
        parameters = dict(locals())
        self._validate_args = validate_args
        self.loc, self.scale = parameter(type(self).__name__, loc=loc, scale=scale)
        self.scale = self._checked(self.scale, assert_positive)
        super().__init__(
            [self.loc, self.scale], FULLY_REPARAMETERIZED, validate_args=validate_args,
            allow_nan_stats=allow_nan_stats, parameters=parameters, name=name,
        )  # fmt: skip

    def _standard(self, x: Any) -> Any:
        return (x - self.loc) / self.scale

    def _mean(self) -> Any:
        return self._whole(self.loc)

    _mode = _mean


class Normal(_LocationAndScale):
    """Normal numbers of mean loc and standard deviation scale."""

    def __init__(
        self, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Normal"
    ) -> None:
        super().__init__(loc, scale, validate_args, allow_nan_stats, name)

    def _sample_n(self, n: Any, seed: int | None) -> Any:
        return random_normal(self._sizes(n), dtype=self.dtype, seed=seed) * self.scale + self.loc

    def _log_prob(self, x: Any) -> Any:
        return -0.5 * square(self._standard(x)) - (_HALF_LOG_2_PI + log(self.scale))

    def _cdf(self, x: Any) -> Any:
        return ndtr(self._standard(x))

    def _log_cdf(self, x: Any) -> Any:
        return log_ndtr(self._standard(x))

    def _survival_function(self, x: Any) -> Any:
        return ndtr(-self._standard(x))

    def _log_survival_function(self, x: Any) -> Any:
        return log_ndtr(-self._standard(x))

    def _quantile(self, p: Any) -> Any:
        return ndtri(p) * self.scale + self.loc

    def _entropy(self) -> Any:
        return self._whole(0.5 + _HALF_LOG_2_PI + log(self.scale))

    def _stddev(self) -> Any:
        return self._whole(self.scale)


class Laplace(_LocationAndScale):
    """Numbers of density exp(-|x - loc| / scale) / (2 scale)."""

    def __init__(
        self, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Laplace"
    ) -> None:
        super().__init__(loc, scale, validate_args, allow_nan_stats, name)

    def _sample_n(self, n: Any, seed: int | None) -> Any:
        lowest = np.nextafter(self.dtype.as_numpy_dtype(-1), self.dtype.as_numpy_dtype(0))  # log1p(-1) is infinite
        drawn: Any = random_uniform(self._sizes(n), lowest, 1.0, self.dtype, seed)
        return self.loc - self.scale * sign(drawn) * log1p(-magnitude(drawn))

    def _log_prob(self, x: Any) -> Any:
        return -magnitude(self._standard(x)) - math.log(2.0) - log(self.scale)

    def _cdf(self, x: Any) -> Any:
        z = self._standard(x)
        return 0.5 + 0.5 * sign(z) * (1.0 - exp(-magnitude(z)))

    def _log_cdf(self, x: Any) -> Any:
        z = self._standard(x)
        return where_v2(less(z, 0.0), z - math.log(2.0), log1p(-0.5 * exp(-magnitude(z))))

    def _log_survival_function(self, x: Any) -> Any:
        z = self._standard(x)
        return where_v2(less(z, 0.0), log1p(-0.5 * exp(-magnitude(z))), -z - math.log(2.0))

    def _entropy(self) -> Any:
        return self._whole(math.log(2.0) + 1.0 + log(self.scale))

    def _stddev(self) -> Any:
        return self._whole(math.sqrt(2.0) * self.scale)


class StudentT(Scalar):
    """Student's t of df degrees of freedom, times scale, plus loc."""

    _parameter_names = ("df", "loc", "scale")

    def __init__(
        self,
        df: Any,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "StudentT",
    ) -> None:
        parameters = dict(locals())
        self._validate_args = validate_args
        self.df, self.loc, self.scale = parameter("StudentT", df=df, loc=loc, scale=scale)
        self.df, self.scale = self._checked(self.df, assert_positive), self._checked(self.scale, assert_positive)
        super().__init__(
            [self.df, self.loc, self.scale], FULLY_REPARAMETERIZED, validate_args=validate_args,
            allow_nan_stats=allow_nan_stats, parameters=parameters, name=name,
        )  # fmt: skip

    def _sample_n(self, n: Any, seed: int | None) -> Any:
        normal: Any = random_normal(self._sizes(n), dtype=self.dtype, seed=seed)
        gamma: Any = random_gamma(
            [n], 0.5 * self._whole(self.df), beta=0.5, dtype=self.dtype, seed=new_seed(seed, "student_t")
        )
        return normal * rsqrt(gamma / self.df) * self.scale + self.loc

    def _log_prob(self, x: Any) -> Any:
        z = (x - self.loc) / self.scale
        constant = log(magnitude(self.scale)) + 0.5 * log(self.df) + 0.5 * math.log(math.pi)
        norm = constant + lgamma(0.5 * self.df) - lgamma(0.5 * (self.df + 1.0))
        return -0.5 * (self.df + 1.0) * log1p(square(z) / self.df) - norm

    def _cdf(self, x: Any) -> Any:
        z = (x - self.loc) / magnitude(self.scale)
        ones: Any = ones_like(z)
        tail: Any = betainc(0.5 * self.df * ones, 0.5 * ones, self.df / (square(z) + self.df))
        return where_v2(less(z, 0.0), 0.5 * tail, 1.0 - 0.5 * tail)

    def _entropy(self) -> Any:
        half = 0.5 * (self.df + 1.0)
        beta = lgamma(0.5 * self.df) + math.lgamma(0.5) - lgamma(half)
        result = (
            log(magnitude(self.scale)) + 0.5 * log(self.df) + beta + half * (digamma(half) - digamma(0.5 * self.df))
        )
        return self._whole(result)

    def _mean(self) -> Any:
        return self._defined(self.df > 1.0, self._whole(self.loc))

    def _mode(self) -> Any:
        return self._whole(self.loc)

    def _variance(self) -> Any:
        ratio = where_v2(greater(self.df, 2.0), self.df / where_v2(greater(self.df, 2.0), self.df - 2.0, 1.0), np.inf)
        return self._defined(self.df > 1.0, self._whole(square(self.scale) * ratio))

    def _defined(self, condition: Any, value: Any) -> Any:
        """NaN where a statistic is not defined; an error there without allow_nan_stats."""
        if self._allow_nan_stats:
            return where_v2(condition, value, np.nan)
        one = ones_like(self.df)
        with control_dependencies([assert_less(one, self.df, message="mean not defined for components of df <= 1")]):
            return value + zeros_like(value)


class Uniform(Scalar):
    """Numbers of [low, high), each as likely."""

    _parameter_names = ("low", "high")

    def __init__(
        self,
        low: Any = 0.0,
        high: Any = 1.0,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Uniform",
    ) -> None:
        parameters = dict(locals())
        self._validate_args = validate_args
        self.low, self.high = parameter("Uniform", low=low, high=high)
        self.high = self._checked(
            self.high, lambda high: assert_less(self.low, high, message="uniform not defined when low >= high.")
        )
        super().__init__(
            [self.low, self.high], FULLY_REPARAMETERIZED, validate_args=validate_args,
            allow_nan_stats=allow_nan_stats, parameters=parameters, name=name,
        )  # fmt: skip

    def range(self, name: str = "range") -> Any:
        """high - low."""
        with self._scope(name):
            return self.high - self.low

    def _sample_n(self, n: Any, seed: int | None) -> Any:
        return self.low + self.range() * random_uniform(self._sizes(n), dtype=self.dtype, seed=seed)

    def _prob(self, x: Any) -> Any:
        outside = logical_or(less(x, self.low), greater_equal(x, self.high))
        whole = x + zeros_like(self.low) + zeros_like(self.high)
        density = ones_like(whole) / self.range()
        return where_v2(whole != whole, whole, where_v2(outside, zeros_like(density), density))

    def _cdf(self, x: Any) -> Any:
        inside = (x - self.low) / self.range()
        return where_v2(less(x, self.low), 0.0, where_v2(greater_equal(x, self.high), 1.0, inside))

    def _quantile(self, p: Any) -> Any:
        return (1.0 - p) * self.low + p * self.high

    def _entropy(self) -> Any:
        return log(self.range())

    def _mean(self) -> Any:
        return (self.low + self.high) / 2.0

    def _variance(self) -> Any:
        return square(self.range()) / 12.0

    def _stddev(self) -> Any:
        return self.range() / math.sqrt(12.0)
