"""Units in the last place, which are the core's, and rounding to a dtype."""

from __future__ import annotations

import numpy as np

from timberframe_core.ops.definition.formats import FORMATS as FORMATS
from timberframe_core.ops.definition.formats import Format as Format
from timberframe_core.ops.definition.formats import computing_format as computing_format
from timberframe_core.ops.definition.formats import ulp as ulp


def round_to(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """x rounded once to a dtype, to nearest and ties to even; integers and others are taken as they are."""
    if x.dtype == dtype or dtype.hasobject:
        return x
    with np.errstate(all="ignore"):
        return x.astype(dtype)
