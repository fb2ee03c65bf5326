"""The Kullback-Leibler divergences of the kinds here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timberframe.api.arithmetic import squared_difference
from timberframe.api.arrays import expand_dims
from timberframe.api.framework import name_scope
from timberframe.api.reduction import reduce_sum
from timberframe.api.softmax import log_softmax
from timberframe.api.special import lbeta
from timberframe.api.unary import digamma, lgamma, log, softplus, square
from timberframe_contrib.distributions.discrete import Bernoulli, Categorical
from timberframe_contrib.distributions.divergence import RegisterKL
from timberframe_contrib.distributions.location_scale import Normal
from timberframe_contrib.distributions.positive import Beta, Dirichlet, Gamma

_Divergence = Callable[..., Any]


def _registered(kind: type) -> Callable[[_Divergence], _Divergence]:
    """Keeps a divergence of two distributions of one kind."""

    def register(function: _Divergence) -> _Divergence:
        def named(a: Any, b: Any, name: str | None = None) -> Any:
            with name_scope(name or f"kl_{kind.__name__.lower()}"):
                return function(a, b)

        return RegisterKL(kind, kind)(named)

    return register


@_registered(Normal)
def _normal(a: Any, b: Any) -> Any:
    ratio = square(a.scale) / square(b.scale)
    return squared_difference(a.loc, b.loc) / (2.0 * square(b.scale)) + 0.5 * (ratio - 1.0 - log(ratio))


@_registered(Gamma)
def _gamma(a: Any, b: Any) -> Any:
    p, q = a.concentration, b.concentration
    return (p - q) * digamma(p) + lgamma(q) - lgamma(p) + q * (log(a.rate) - log(b.rate)) + p * (b.rate / a.rate - 1.0)


@_registered(Beta)
def _beta(a: Any, b: Any) -> Any:
    more = (a.concentration1 - b.concentration1, a.concentration0 - b.concentration0)
    return (
        b._norm() - a._norm() + more[0] * digamma(a.concentration1) + more[1] * digamma(a.concentration0)
        - (more[0] + more[1]) * digamma(a.total_concentration)
    )  # fmt: skip


@_registered(Dirichlet)
def _dirichlet(a: Any, b: Any) -> Any:
    expected = digamma(a.concentration) - digamma(expand_dims(a.total_concentration, -1))
    weighed = (a.concentration - b.concentration) * expected
    norms: Any = lbeta(b.concentration)
    return norms - lbeta(a.concentration) + reduce_sum(weighed, -1)


@_registered(Bernoulli)
def _bernoulli(a: Any, b: Any) -> Any:
    ones = a.probs * (softplus(-b.logits) - softplus(-a.logits))
    return ones + (1.0 - a.probs) * (softplus(b.logits) - softplus(a.logits))


@_registered(Categorical)
def _categorical(a: Any, b: Any) -> Any:
    logarithms: Any = log_softmax(a.logits)
    return reduce_sum(a.probs * (logarithms - log_softmax(b.logits)), -1)
