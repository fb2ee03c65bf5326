"""The Kullback-Leibler divergences that are known between kinds of distributions, those of users among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timberframe.api.arrays import identity
from timberframe.api.assertions import assert_equal
from timberframe.api.framework import control_dependencies, name_scope
from timberframe.api.reduction import reduce_any
from timberframe.api.unary import is_nan
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
            raise InvalidArgumentError(f"RegisterKL: {names} have a divergence already; a pair may have one")
        _KNOWN[self._key] = kl_fn
        return kl_fn


def kl_divergence(
    distribution_a: Any, distribution_b: Any, allow_nan_stats: bool = True, name: str | None = None
) -> Any:
    """Returns the divergence of b from a, E_a[log a - log b], [*batch].

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
