"""`tf.nn.*` functions of moments in two steps, and the loss of counts."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from timberframe.api.framework import get_static_value, name_scope
from timberframe.api.reduction import reduce_prod, reduce_sum, renamed
from timberframe.api.selection import cast, where
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor

NAMESPACES = {"nn": ("log_poisson_loss", "normalize_moments", "sufficient_statistics")}


class SufficientStatistics(NamedTuple):
    """How many elements were added up, the sums of them and of their squares, both after the shift, and the shift."""

    count: Tensor  # type: ignore[assignment]  # TensorFlow's name, which hides tuple.count
    m_ss: Tensor
    v_ss: Tensor
    shift: Tensor | None


def sufficient_statistics(
    x: Any, axes: Any, shift: Any = None, keep_dims: bool | None = None, name: str | None = None,
    keepdims: bool | None = None,
) -> SufficientStatistics:  # fmt: skip
    """Returns what `normalize_moments` makes mean and variance along `axes` of.

    shift: a value near the mean, which is taken off first; None for none. keep_dims is the older name of keepdims.
    """
    keep = bool(renamed("keepdims", keepdims, "keep_dims", keep_dims))
    with name_scope(name, "sufficient_statistics", [x, shift]):
        given: Any = convert_to_tensor(x)
        along = [int(a) for a in get_static_value(convert_to_tensor(axes)).reshape(-1)]
        sizes = apply_op("GatherV2", [apply_op("Shape", [given]), along, 0])
        count = cast(reduce_prod(sizes), given.dtype)
        if shift is None:
            return SufficientStatistics(
                count, reduce_sum(given, along, keep), reduce_sum(given * given, along, keep), None
            )
        offset = convert_to_tensor(shift, given.dtype)
        change = given - offset
        squares = apply_op("SquaredDifference", [given, offset])
        return SufficientStatistics(count, reduce_sum(change, along, keep), reduce_sum(squares, along, keep), offset)


def normalize_moments(
    counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and variance of what `sufficient_statistics` gives."""
    with name_scope(name, "normalize", [counts, mean_ss, variance_ss, shift]):
        divisor: Any = apply_op("Reciprocal", [counts])
        middle = convert_to_tensor(mean_ss) * divisor
        variance = convert_to_tensor(variance_ss) * divisor - apply_op("Square", [middle])
        return (middle if shift is None else middle + convert_to_tensor(shift)), variance


def log_poisson_loss(targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None) -> Tensor:
    """exp(log_input) - log_input * targets: the negative log likelihood of counts under Poisson's distribution.

    compute_full_loss: with log(targets!) by Stirling's formula, for targets above 1.
    """
    with name_scope(name, "log_poisson_loss", [log_input, targets]):
        logs: Any = convert_to_tensor(log_input, name="log_input")
        wanted: Any = convert_to_tensor(targets, name="targets")
        loss: Any = apply_op("Exp", [logs]) - logs * wanted
        if compute_full_loss:
            stirling = wanted * apply_op("Log", [wanted]) - wanted + 0.5 * apply_op("Log", [2 * math.pi * wanted])
            small = apply_op("LogicalAnd", [apply_op("GreaterEqual", [wanted, 0.0]),
                                            apply_op("LessEqual", [wanted, 1.0])])  # fmt: skip
            loss = loss + where(small, apply_op("ZerosLike", [wanted]), stirling)
        made: Tensor = loss
        return made
