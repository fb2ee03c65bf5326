"""Kullback-Leibler divergences between kinds of distributions, those of users among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timberframe.api.arithmetic import squared_difference
from timberframe.api.arrays import expand_dims, identity
from timberframe.api.assertions import assert_equal
from timberframe.api.framework import control_dependencies, name_scope
from timberframe.api.reduction import reduce_any, reduce_sum
from timberframe.api.softmax import log_softmax
from timberframe.api.special import lbeta
from timberframe.api.unary import digamma, is_nan, lgamma, log, softplus, square
from timberframe.distributions.discrete import Bernoulli, Categorical
from timberframe.distributions.distribution import Distribution
from timberframe.distributions.location_scale import Normal
from timberframe.distributions.positive import Beta, Dirichlet, Gamma
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError

_Divergence = Callable[..., Any]
_KNOWN: dict[tuple[type, type], _Divergence] = {}


class RegisterKL:
    """``@RegisterKL(KindA, KindB)`` of a function (a, b, name=None) that gives the divergence of two such kinds."""

    def __init__(self, dist_cls_a: type, dist_cls_b: type) -> None:
        self._key = (dist_cls_a, dist_cls_b)

    def __call__(self, kl_fn: _Divergence) -> _Divergence:
        """Keeps the function; ValueError where these kinds have one."""
        if not callable(kl_fn):
            raise InvalidTypeError(f"RegisterKL: kl_fn is {kl_fn!r}; a function is required")
        if self._key in _KNOWN:
            names = " and ".join(kind.__name__ for kind in self._key)
            raise InvalidArgumentError(f"RegisterKL: {names} have a divergence already")
        _KNOWN[self._key] = kl_fn
        return kl_fn


def kl_divergence(
    distribution_a: Distribution, distribution_b: Distribution, allow_nan_stats: bool = True, name: str | None = None
) -> Any:
    """The divergence of b from a, E_a[log a - log b], [*batch].

    Kinds count as those that they derive from. allow_nan_stats: NaN in the result is no error. Raises
    NotImplementedError for kinds that have no divergence.
    """
    kinds = [type(d).__mro__ for d in (distribution_a, distribution_b)]
    near = [(i + j, a, b) for i, a in enumerate(kinds[0]) for j, b in enumerate(kinds[1]) if (a, b) in _KNOWN]
    if not near:
        names = " and ".join(type(d).__name__ for d in (distribution_a, distribution_b))
        raise NotImplementedError(f"No KL(distribution_a || distribution_b) registered for {names}")
    _, a, b = min(near, key=lambda found: found[0])
    with name_scope("KullbackLeibler"):
        result = _KNOWN[a, b](distribution_a, distribution_b, name=name)
        if allow_nan_stats:
            return result
        message = f"KL calculation between {distribution_a.name} and {distribution_b.name} returned NaN values"
        with control_dependencies([assert_equal(reduce_any(is_nan(result)), False, message=message)]):
            return identity(result)


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
