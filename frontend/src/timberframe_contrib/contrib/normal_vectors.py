"""Normal distributions of vectors, by a linear operator that takes standard normal numbers to deviations."""

from __future__ import annotations

import math
from typing import Any

from timberframe.api.arrays import concat, expand_dims, reshape, shape
from timberframe.api.constants import ones_like, zeros
from timberframe.api.diagonal_operators import LinearOperatorDiag
from timberframe.api.framework import convert_to_tensor, name_scope
from timberframe.api.linalg import matmul
from timberframe.api.linear_operators import LinearOperator, LinearOperatorLowerTriangular
from timberframe.api.random import random_normal
from timberframe.api.reduction import reduce_sum
from timberframe.api.selection import cast
from timberframe.api.unary import abs as magnitude
from timberframe.api.unary import log, softplus, sqrt, square
from timberframe_contrib.distributions.distribution import FULLY_REPARAMETERIZED, OfVectors, parameter
from timberframe_contrib.distributions.divergence import RegisterKL
from timberframe_contrib.distributions.location_scale import Normal
from timberframe_core.errors import InvalidArgumentError

_LOG_2_PI = math.log(2 * math.pi)


class NormalWithSoftplusScale(Normal):
    """Normal numbers of mean loc and standard deviation softplus(scale)."""

    def __init__(
        self,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "NormalWithSoftplusScale",
    ) -> None:
        with name_scope(name):
            super().__init__(loc, softplus(scale), validate_args, allow_nan_stats, name)


class _NormalVectors(OfVectors):
    """Base of the distributions of loc + scale z, where scale is a linear operator and z standard normal numbers."""

    loc: Any
    scale: LinearOperator

    def _begin(self, loc: Any, scale: LinearOperator, parameters: dict[str, Any], **settings: Any) -> None:
        """Begins the object with its operator; the batch is what loc and the operator broadcast to."""
        self.scale = scale
        whole: Any = zeros(scale.shape_tensor()[:-1], scale.dtype)
        whole.set_shape(scale.shape[:-1])
        self.loc = whole if loc is None else whole + convert_to_tensor(loc, scale.dtype)
        super().__init__(scale.dtype, self.loc, FULLY_REPARAMETERIZED, parameters=parameters, **settings)

    def _sample_n(self, n: Any, seed: int | None) -> Any:
        drawn: Any = random_normal(concat([reshape(n, [1]), shape(self.loc)], 0), dtype=self.dtype, seed=seed)
        return self.loc + self._deviations(drawn)

    def _deviations(self, drawn: Any) -> Any:
        """Returns the operator's products with vectors [n, *batch, size]."""
        return self.scale.matvec(drawn)

    def _standard(self, x: Any) -> Any:
        """Returns the standard normal numbers that a sample is made of."""
        return self.scale.solvevec(x - self.loc)

    def _log_prob(self, x: Any) -> Any:
        size: Any = cast(self._classes, self.dtype)
        return -0.5 * (reduce_sum(square(self._standard(x)), -1) + size * _LOG_2_PI) - self._log_determinant()

    def _log_determinant(self) -> Any:
        return self.scale.log_abs_determinant()

    def _entropy(self) -> Any:
        size: Any = cast(self._classes, self.dtype)
        half = 0.5 * size * (1.0 + _LOG_2_PI)
        return half + self._log_determinant() + reduce_sum(self.loc * 0.0, -1)

    def _mean(self) -> Any:
        return self.loc

    _mode = _mean

    def _covariance(self) -> Any:
        dense = self.scale.to_dense()
        product: Any = matmul(dense, dense, adjoint_b=True)
        whole: Any = expand_dims(self.loc, -1)
        return product + 0.0 * whole

    def _variance(self) -> Any:
        return reduce_sum(square(self.scale.to_dense()), -1) + 0.0 * self.loc


class MultivariateNormalDiag(_NormalVectors):
    """Vectors of independent normal numbers of means loc [*batch, size].

    Standard deviations are scale_diag [*batch, size] times, where it is given, scale_identity_multiplier [*batch], or
    that alone for all; 1 where neither is given.
    """

    _parameter_names = ("loc", "scale_diag")
    scale: LinearOperatorDiag

    def __init__(
        self,
        loc: Any = None,
        scale_diag: Any = None,
        scale_identity_multiplier: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiag",
    ) -> None:
        parameters = dict(locals())
        self._validate_args = validate_args
        if loc is None and scale_diag is None:
            raise InvalidArgumentError(f"{name}: neither loc nor scale_diag is given; one of them says the size")
        given = {"loc": loc, "scale_diag": scale_diag, "scale_identity_multiplier": scale_identity_multiplier}
        present = {k: v for k, v in given.items() if v is not None}
        found = dict(zip(present, parameter("MultivariateNormalDiag", **present), strict=True))
        diagonal: Any = found.get("scale_diag")
        diagonal = ones_like(found["loc"]) if diagonal is None else diagonal
        multiplier = found.get("scale_identity_multiplier")
        if multiplier is not None and scale_diag is not None:
            diagonal = diagonal + expand_dims(multiplier, -1)
        elif multiplier is not None:
            diagonal = diagonal * expand_dims(multiplier, -1)
        self._begin(
            found.get("loc"), LinearOperatorDiag(diagonal), parameters, validate_args=validate_args,
            allow_nan_stats=allow_nan_stats, name=name,
        )  # fmt: skip

    def _deviations(self, drawn: Any) -> Any:
        return self.scale.diag * drawn

    def _standard(self, x: Any) -> Any:
        return (x - self.loc) / self.scale.diag

    def _stddev(self) -> Any:
        return magnitude(self.scale.diag) + 0.0 * self.loc

    def _variance(self) -> Any:
        return square(self._stddev())


class MultivariateNormalDiagWithSoftplusScale(MultivariateNormalDiag):
    """`MultivariateNormalDiag` of the standard deviations softplus(scale_diag)."""

    def __init__(
        self,
        loc: Any,
        scale_diag: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiagWithSoftplusScale",
    ) -> None:
        with name_scope(name):
            super().__init__(loc, softplus(scale_diag), None, validate_args, allow_nan_stats, name)


class MultivariateNormalTriL(_NormalVectors):
    """Vectors of mean loc [*batch, size] and covariance scale_tril times its adjoint; the identity where it is None.

    scale_tril: lower triangular matrices [*batch, size, size]; what they have above the diagonal is not read.
    """

    _parameter_names = ("loc",)

    def __init__(
        self,
        loc: Any = None,
        scale_tril: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalTriL",
    ) -> None:
        parameters = dict(locals())
        self._validate_args = validate_args
        if loc is None and scale_tril is None:
            raise InvalidArgumentError(f"{name}: neither loc nor scale_tril is given; one of them says the size")
        present = {k: v for k, v in (("loc", loc), ("scale_tril", scale_tril)) if v is not None}
        found = dict(zip(present, parameter("MultivariateNormalTriL", **present), strict=True))
        scale: LinearOperator
        if scale_tril is None:
            scale = LinearOperatorDiag(ones_like(found["loc"]))
        else:
            scale = LinearOperatorLowerTriangular(found["scale_tril"])
        self._begin(
            found.get("loc"), scale, parameters, validate_args=validate_args, allow_nan_stats=allow_nan_stats, name=name
        )

    def _stddev(self) -> Any:
        return sqrt(self._variance())


@RegisterKL(_NormalVectors, _NormalVectors)
def _normal_vectors(a: Any, b: Any, name: str | None = None) -> Any:
    with name_scope(name or "kl_mvn"):
        between = reduce_sum(square(b.scale.solvevec(b.loc - a.loc)), -1)
        ratio: Any = reduce_sum(square(b.scale.solve(a.scale.to_dense())), [-2, -1])
        size: Any = cast(a._classes, a.dtype)
        return b.scale.log_abs_determinant() - a.scale.log_abs_determinant() + 0.5 * (ratio + between - size)


@RegisterKL(MultivariateNormalDiag, MultivariateNormalDiag)
def _diagonals(a: Any, b: Any, name: str | None = None) -> Any:
    with name_scope(name or "kl_mvn_diag"):
        ratio = square(a.scale.diag / b.scale.diag)
        total: Any = reduce_sum(square((b.loc - a.loc) / b.scale.diag) + ratio - 1.0 - log(ratio), -1)
        return 0.5 * total
