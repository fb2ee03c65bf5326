"""Distributions of positive numbers: Gamma, Exponential, Beta, Dirichlet."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe.api.arithmetic import betainc, xlogy
from timberframe.api.arrays import expand_dims
from timberframe.api.assertions import assert_less, assert_positive
from timberframe.api.comparison import greater
from timberframe.api.constants import ones_like, zeros_like
from timberframe.api.diagonal import matrix_diag
from timberframe.api.framework import control_dependencies
from timberframe.api.linalg import matmul
from timberframe.api.random import random_gamma, random_uniform
from timberframe.api.reduction import reduce_min, reduce_sum
from timberframe.api.selection import cast, where_v2
from timberframe.api.special import lbeta
from timberframe.api.unary import digamma, exp, lgamma, log, log1p, square
from timberframe_contrib.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    Distribution,
    OfVectors,
    Scalar,
    new_seed,
    parameter,
)

_NOT_ALL_ABOVE_1 = "mode not defined when any concentration <= 1"


class Gamma(Scalar):
    """Numbers of density in proportion to x ** (concentration - 1) exp(-rate x)."""

    _parameter_names: tuple[str, ...] = ("concentration", "rate")

    def __init__(
        self,
        concentration: Any,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Gamma",
    ) -> None:
        parameters = dict(locals())
        self._validate_args = validate_args
        self.concentration, self.rate = (
            self._checked(p, assert_positive) for p in parameter("Gamma", concentration=concentration, rate=rate)
        )
        super().__init__(
            [self.concentration, self.rate], FULLY_REPARAMETERIZED, validate_args=validate_args,
            allow_nan_stats=allow_nan_stats, parameters=parameters, name=name,
        )  # fmt: skip

    def _sample_n(self, n: Any, seed: int | None) -> Any:
        return random_gamma([n], self.concentration, self.rate, self.dtype, seed)

    def _log_prob(self, x: Any) -> Any:
        norm = lgamma(self.concentration) - self.concentration * log(self.rate)
        return xlogy(self.concentration - 1.0, x) - self.rate * x - norm

    def _entropy(self) -> Any:
        a = self.concentration
        return a - log(self.rate) + lgamma(a) + (1.0 - a) * digamma(a)

    def _mean(self) -> Any:
        return self.concentration / self.rate

    def _variance(self) -> Any:
        return self.concentration / square(self.rate)

    def _mode(self) -> Any:
        found = (self.concentration - 1.0) / self.rate
        return _where_above_1(self, self.concentration + zeros_like(found), found)


class Exponential(Gamma):
    """Numbers of density rate exp(-rate x)."""

    _parameter_names: tuple[str, ...] = ("rate",)

    def __init__(
        self, rate: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Exponential"
    ) -> None:
        parameters = dict(locals())
        (tensor,) = parameter("Exponential", rate=rate)
        super().__init__(ones_like(tensor), tensor, validate_args, allow_nan_stats, name)
        self._parameters = {k: v for k, v in parameters.items() if k not in ("self", "__class__")}

    def _sample_n(self, n: Any, seed: int | None) -> Any:
        smallest = np.finfo(self.dtype.as_numpy_dtype).tiny  # log(0) is infinite
        return -log(random_uniform(self._sizes(n), smallest, 1.0, self.dtype, seed)) / self.rate

    def _log_prob(self, x: Any) -> Any:
        return log(self.rate) - self.rate * x

    def _cdf(self, x: Any) -> Any:
        return where_v2(greater(x, 0.0), 1.0 - exp(-self.rate * x), zeros_like(x))

    def _log_survival_function(self, x: Any) -> Any:
        return -self.rate * x

    def _quantile(self, p: Any) -> Any:
        return -log1p(-p) / self.rate


class Beta(Scalar):
    """Numbers of (0, 1) of density in proportion to x ** (concentration1 - 1) (1 - x) ** (concentration0 - 1)."""

    _parameter_names = ("concentration1", "concentration0")

    def __init__(
        self,
        concentration1: Any = None,
        concentration0: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Beta",
    ) -> None:
        parameters = dict(locals())
        self._validate_args = validate_args
        given = parameter("Beta", concentration1=concentration1, concentration0=concentration0)
        self.concentration1, self.concentration0 = (self._checked(p, assert_positive) for p in given)
        super().__init__(
            [self.concentration1, self.concentration0], FULLY_REPARAMETERIZED, validate_args=validate_args,
            allow_nan_stats=allow_nan_stats, parameters=parameters, name=name,
        )  # fmt: skip

    @property
    def total_concentration(self) -> Any:
        """The sum of both parameters."""
        return self.concentration1 + self.concentration0

    def _sample_n(self, n: Any, seed: int | None) -> Any:
        first: Any = random_gamma([n], self._whole(self.concentration1), dtype=self.dtype, seed=seed)
        other: Any = random_gamma([n], self._whole(self.concentration0), dtype=self.dtype, seed=new_seed(seed, "beta"))
        return first / (first + other)

    def _norm(self) -> Any:
        return lgamma(self.concentration1) + lgamma(self.concentration0) - lgamma(self.total_concentration)

    def _log_prob(self, x: Any) -> Any:
        a, b = self.concentration1, self.concentration0
        return xlogy(a - 1.0, x) + (b - 1.0) * log1p(-x) - self._norm()

    def _cdf(self, x: Any) -> Any:
        whole = x * self._whole(ones_like(self.concentration1))
        return betainc(self.concentration1 + zeros_like(whole), self.concentration0 + zeros_like(whole), whole)

    def _entropy(self) -> Any:
        a, b, both = self.concentration1, self.concentration0, self.total_concentration
        return self._norm() - (a - 1.0) * digamma(a) - (b - 1.0) * digamma(b) + (both - 2.0) * digamma(both)

    def _mean(self) -> Any:
        return self.concentration1 / self.total_concentration

    def _variance(self) -> Any:
        return self._mean() * (1.0 - self._mean()) / (1.0 + self.total_concentration)

    def _mode(self) -> Any:
        found = (self.concentration1 - 1.0) / (self.total_concentration - 2.0)
        both = _where_above_1(self, self.concentration0 + zeros_like(found), found)
        return _where_above_1(self, self.concentration1 + zeros_like(found), both)


class Dirichlet(OfVectors):
    """Vectors of positive numbers whose sum is 1, of density in proportion to prod(x ** (concentration - 1))."""

    def __init__(
        self, concentration: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Dirichlet"
    ) -> None:
        parameters = dict(locals())
        self._validate_args = validate_args
        (given,) = parameter("Dirichlet", concentration=concentration)
        self.concentration: Any = self._checked(given, assert_positive)
        super().__init__(
            self.concentration.dtype, self.concentration, FULLY_REPARAMETERIZED, validate_args=validate_args,
            allow_nan_stats=allow_nan_stats, parameters=parameters, name=name,
        )  # fmt: skip

    @property
    def total_concentration(self) -> Any:
        """The sum of the parameters, [*batch]."""
        return reduce_sum(self.concentration, -1)

    def _sample_n(self, n: Any, seed: int | None) -> Any:
        drawn: Any = random_gamma([n], self.concentration, dtype=self.dtype, seed=seed)
        return drawn / reduce_sum(drawn, -1, keepdims=True)

    def _log_prob(self, x: Any) -> Any:
        likelihood: Any = reduce_sum(xlogy(self.concentration - 1.0, x), -1)
        return likelihood - lbeta(self.concentration)

    def _entropy(self) -> Any:
        count = cast(self._classes, self.dtype)
        total = self.total_concentration
        return (
            lbeta(self.concentration) + (total - count) * digamma(total)
            - reduce_sum((self.concentration - 1.0) * digamma(self.concentration), -1)
        )  # fmt: skip

    def _mean(self) -> Any:
        return self.concentration / expand_dims(self.total_concentration, -1)

    def _scale(self) -> Any:
        total: Any = expand_dims(self.total_concentration, -1)
        return 1.0 / (1.0 + total)

    def _variance(self) -> Any:
        mean = self._mean()
        return mean * (1.0 - mean) * self._scale()

    def _covariance(self) -> Any:
        mean = self._mean()
        squares: Any = matrix_diag(mean)
        return (squares - matmul(expand_dims(mean, -1), expand_dims(mean, -2))) * expand_dims(self._scale(), -1)

    def _mode(self) -> Any:
        count = cast(self._classes, self.dtype)
        found = (self.concentration - 1.0) / (expand_dims(self.total_concentration, -1) - count)
        return _where_above_1(self, reduce_min(self.concentration, -1, keepdims=True), found)


def _where_above_1(of: Distribution, parameter: Any, value: Any) -> Any:
    """Returns a mode where a parameter is above 1, NaN elsewhere; without allow_nan_stats an error there."""
    if of.allow_nan_stats:
        return where_v2(greater(parameter, 1.0), value, np.nan)
    with control_dependencies([assert_less(ones_like(parameter), parameter, message=_NOT_ALL_ABOVE_1)]):
        return value + zeros_like(value)
