"""How far a kernel's result may be from the true one, as each op declares it; `limits` works out the numbers.

A unit in the last place (ULP) is Muller's: the distance of the two floating-point numbers nearest to the infinitely
precise result. Limits are derived or taken from a published table, never guessed; the place that states one names the
source.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


class Accuracy:
    """Base of the kinds of limit."""


@dataclass(frozen=True)
class Exact(Accuracy):
    """Every bit is determined: data movement, comparisons, integers, and correctly rounded single operations.

    In a floating dtype the result is the true one rounded once (0.5 ULP), of float16 and bfloat16 too: that holds for
    one operation on operands of the op's own dtype, where the rounding to float32 before changes nothing. An operation
    with a float32 beside them, such as an attr, rounds twice: it is ``Pointwise(float32=0.5, float64=0.5)``. Any NaN
    matches any NaN. signed_zero says whether the sign of a zero is determined too; of equal zeros, a maximum may return
    either. ordered_zeros: its reference takes -0 for the smaller of them, as IEEE 754-2019's maximum does, which a
    device must do where its profile says that it does.
    """

    signed_zero: bool = True
    ordered_zeros: bool = field(default=False, repr=False)


EXACT = Exact()
ANY_ZERO = Exact(signed_zero=False)


@dataclass(frozen=True)
class Pointwise(Accuracy):
    """A limit in ULP for each element, by dtype.

    float16 and bfloat16 results are computed in float32 and rounded once, so their limit is 0.5 plus the float32 limit
    scaled down: conformance takes 1 ULP unless `float16` says more. A complex result is held against the modulus;
    `complex` is its limit where it differs from the real one.

    A limit of more than 0.5 ULP in float64 means that the reference may err there, too: conformance judges such an op
    by a function in arbitrary precision.
    """

    float32: float
    float64: float
    float16: float = 1.0
    complex: float | None = None

    @property
    def correctly_rounded(self) -> bool:
        """Whether the result is the true one, rounded once where the dtype is float64: the reference's is, too."""
        return self.float64 <= 0.5


@dataclass(frozen=True)
class Accumulation(Accuracy):
    """Forward error of a sum of products in any order: gamma_n = n u / (1 - n u), times the same sum over magnitudes.

    `terms(attrs, *inputs)` is n, the most terms that one output element adds up (Higham, Accuracy and Stability of
    Numerical Algorithms, 2nd ed., section 3.1). The sum over magnitudes is the op's reference applied to absolute
    values; where that does not hold, `magnitude(attrs, *inputs)` gives it.
    """

    terms: Callable[..., int]
    magnitude: Callable[..., Any] | None = None


@dataclass(frozen=True)
class Bound(Accuracy):
    """An absolute error bound of the op's own: ``f(attrs, inputs, expected, u) -> array like expected``.

    inputs and expected are float64 (or complex128), u is the unit roundoff of the computing dtype (float32's for
    float16 and bfloat16; conformance adds the rounding to the output dtype itself).
    """

    error: Callable[..., Any]
    source: str


@dataclass(frozen=True)
class Residual(Accuracy):
    """Outputs that are not unique (signs, a basis) or ill-conditioned: judged by what must hold of them.

    ``laws(attrs, inputs, outputs, u) -> ((what, error, allowed), ...)``: inputs and outputs are float64 (or
    complex128), u is the unit roundoff of the outputs' dtype; error and allowed are numbers or arrays.
    """

    laws: Callable[..., Any]
    source: str
