"""The normal distribution's function and its logarithm, exact far from the middle, too."""

from __future__ import annotations

import math
from typing import Any

from timberframe.api.arithmetic import maximum, minimum
from timberframe.api.comparison import greater
from timberframe.api.selection import where_v2
from timberframe.api.unary import erfc, log, log1p, square

_SERIES = {"float64": -20.0}
"""Below this, log_ndtr is the series."""


def ndtr(x: Any) -> Any:
    """Returns the probability of a standard normal number below x."""
    return 0.5 * erfc(-x * math.sqrt(0.5))


def log_ndtr(x: Any) -> Any:
    """log(ndtr(x)): where ndtr would be 0 by its asymptotic series (Abramowitz and Stegun 26.2.12)."""
    lower = _SERIES.get(x.dtype.name, -10.0)
    above: Any = maximum(x, 0.0)
    near = log(ndtr(minimum(maximum(x, lower), 0.0)))
    far: Any = minimum(x, lower)
    inverse = 1.0 / square(far)
    series = 1.0 - inverse * (1.0 - 3.0 * inverse * (1.0 - 5.0 * inverse))
    below = -0.5 * square(far) - log(-far) - 0.5 * math.log(2 * math.pi) + log(series)
    return where_v2(greater(x, 0.0), log1p(-ndtr(-above)), where_v2(greater(x, lower), near, below))
