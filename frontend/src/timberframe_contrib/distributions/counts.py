"""Distributions of counts of classes: Multinomial and DirichletMultinomial."""

from __future__ import annotations

from typing import Any

from timberframe.api.arrays import concat, expand_dims, reshape, shape, transpose
from timberframe.api.assertions import assert_non_negative, assert_positive
from timberframe.api.constants import ones
from timberframe.api.diagonal import matrix_diag
from timberframe.api.functional import map_fn
from timberframe.api.indexing import one_hot
from timberframe.api.linalg import matmul
from timberframe.api.random import multinomial, random_gamma
from timberframe.api.reduction import reduce_sum
from timberframe.api.selection import cast
from timberframe.api.softmax import log_softmax
from timberframe.api.special import lbeta
from timberframe.api.unary import lgamma, log
from timberframe_contrib.distributions.discrete import logits_and_probs
from timberframe_contrib.distributions.distribution import NOT_REPARAMETERIZED, OfVectors, new_seed, parameter
from timberframe_core.dtypes import int32


class _Counts(OfVectors):
    """Counts of classes whose sum is total_count, which may differ along the batch."""

    total_count: Any

    def _log_combinations(self, counts: Any) -> Any:
        """log of the number of orders in which classes can come that have these counts."""
        return lgamma(self.total_count + 1.0) - reduce_sum(lgamma(counts + 1.0), -1)

    def _shares(self) -> Any:
        """Returns the mean share of each class."""
        raise NotImplementedError

    def _spread(self) -> Any:
        """Returns the variance as a multiple of a multinomial's, [*batch, 1]."""
        return 1.0

    def _mean(self) -> Any:
        return expand_dims(self.total_count, -1) * self._shares()

    def _variance(self) -> Any:
        return self._mean() * (1.0 - self._shares()) * self._spread()

    def _covariance(self) -> Any:
        shares = self._shares()
        outer = matmul(expand_dims(self._mean() * self._spread(), -1), expand_dims(shares, -2))
        squares: Any = matrix_diag(self._mean() * self._spread())
        return squares - outer

    def _unit(self) -> Any:
        """Ones for the batch."""
        return ones(self._batch_shape_tensor(), self.dtype)


class Multinomial(_Counts):
    """Counts of classes in total_count draws, each of probability probs, or softmax(logits)."""

    def __init__(
        self,
        total_count: Any,
        logits: Any = None,
        probs: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Multinomial",
    ) -> None:
        parameters = dict(locals())
        self._validate_args = validate_args
        self.logits, self.probs = logits_and_probs("Multinomial", logits, probs, of_classes=True)
        (count,) = parameter("Multinomial", total_count=total_count)
        self.total_count: Any = self._checked(count, assert_non_negative)
        super().__init__(
            self.probs.dtype, self.probs, NOT_REPARAMETERIZED, [self.total_count], validate_args=validate_args,
            allow_nan_stats=allow_nan_stats, parameters=parameters, name=name,
        )  # fmt: skip

    def _sample_n(self, n: Any, seed: int | None) -> Any:
        draws = cast(reshape(self.total_count * self._unit(), [-1]), int32)

        def of_row(row: Any) -> Any:
            logits, count = row
            classes = multinomial(expand_dims(logits, 0), count * n, seed)
            return reduce_sum(one_hot(reshape(classes, [n, -1]), self._classes, dtype=self.dtype), -2)

        rows = map_fn(of_row, [reshape(self.logits, [-1, self._classes]), draws], dtype=self.dtype)
        return reshape(transpose(rows, [1, 0, 2]), concat([reshape(n, [1]), shape(self.probs)], 0))

    def _log_prob(self, counts: Any) -> Any:
        return reduce_sum(counts * log_softmax(self.logits), -1) + self._log_combinations(counts)

    def _shares(self) -> Any:
        return self.probs


class DirichletMultinomial(_Counts):
    """Counts of classes in total_count draws, whose probabilities are a sample of Dirichlet(concentration)."""

    def __init__(
        self,
        total_count: Any,
        concentration: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "DirichletMultinomial",
    ) -> None:
        parameters = dict(locals())
        self._validate_args = validate_args
        count, given = parameter("DirichletMultinomial", total_count=total_count, concentration=concentration)
        self.total_count = self._checked(count, assert_non_negative)
        self.concentration: Any = self._checked(given, assert_positive)
        super().__init__(
            self.concentration.dtype, self.concentration, NOT_REPARAMETERIZED, [self.total_count],
            validate_args=validate_args, allow_nan_stats=allow_nan_stats, parameters=parameters, name=name,
        )  # fmt: skip

    @property
    def total_concentration(self) -> Any:
        """The sum of the concentrations, [*batch]."""
        return reduce_sum(self.concentration, -1)

    def _sample_n(self, n: Any, seed: int | None) -> Any:
        shares: Any = random_gamma([n], self.concentration, dtype=self.dtype, seed=seed)
        logits = reshape(log(shares), [-1, self._classes])
        classes = multinomial(logits, cast(self.total_count, int32), new_seed(seed, "dirichlet_multinomial"))
        counts = reduce_sum(one_hot(classes, self._classes, dtype=self.dtype), -2)
        return reshape(counts, concat([reshape(n, [1]), shape(self.concentration)], 0))

    def _log_prob(self, counts: Any) -> Any:
        norm: Any = lbeta(self.concentration + counts)
        return norm - lbeta(self.concentration) + self._log_combinations(counts)

    def _shares(self) -> Any:
        return self.concentration / expand_dims(self.total_concentration, -1)

    def _spread(self) -> Any:
        count: Any = expand_dims(self.total_count, -1)
        total: Any = expand_dims(self.total_concentration, -1)
        return (count + total) / (1.0 + total)
