"""Elementwise ops that accelerators alone have as source: their loops branch, where a CPU's own kernels vectorise.

The templates are written as those of `timberframe_sdk.elementwise`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

ZERO_DIVISOR = "integer division by zero: element {0} of y is 0; divisors of integers must not be 0"
NEGATIVE_EXPONENT = "element {0} of y is {1}; the exponent of an integer power must be at least 0"

FLOATS: Mapping[str, str] = {
    "Sin": "tf_sin_{f}({0})", "Cos": "tf_cos_{f}({0})", "Tan": "tf_tan_{f}({0})",
    "Pow": "power_float{w}_of({0}, {1})", "Atan2": "angle_float{w}({0}, {1})",
    "TruncateDiv": "tf_truncate_div_{f}({0}, {1})", "FloorMod": "tf_floor_mod_{f}({0}, {1})",
    "TruncateMod": "tf_truncate_mod_{f}({0}, {1})", "Mod": "tf_truncate_mod_{f}({0}, {1})",
    "NextAfter": "tf_next_after_{f}({0}, {1})",
    "ApproximateEqual": "(tf_wide)tf_abs_{f}({0} - {1}) < (tf_wide){tolerance}",
    "Erf": "tf_erf_{f}({0})", "Erfc": "({T})erfc((double){0})", "Erfinv": "({T})tf_erfinv((double){0})",
    "Ndtri": "({T})tf_ndtri((double){0})", "Lgamma": "({T})tf_exact_log_gamma((double){0})",
    "Digamma": "({T})tf_digamma((double){0})", "Zeta": "({T})tf_zeta((double){0}, (double){1})",
    "Polygamma": "({T})tf_polygamma((double){0}, (double){1})",
    "Betainc": "({T})tf_beta((double){0}, (double){1}, (double){2})",
    "RandomGammaGrad": "({T})tf_gamma_slope((double){0}, (double){1})",
    "Xlogy": "{0} == 0 ? {0} : {0} * tf_exact_log_{f}({1})",
    "Xlog1py": "{0} == 0 ? {0} : {0} * tf_exact_log1p_{f}({1})",
}  # fmt: skip
"""Of floats."""

INTEGERS: Mapping[str, str] = {
    "LeftShift": "tf_left_shift_{dtype}({0}, {1})", "RightShift": "tf_right_shift_{dtype}({0}, {1})",
    "ReluGrad": "{1} > 0 ? {0} : 0", "Relu6Grad": "{1} > 0 && {1} < 6 ? {0} : 0", "Round": "{0}",
    "SquaredDifference": "({T})((1u * ({U}){0} - ({U}){1}) * (1u * ({U}){0} - ({U}){1}))",
}  # fmt: skip
"""Of integers."""

NEED_FLOAT64 = frozenset({
    "Erfc", "Erfinv", "Ndtri", "Lgamma", "Digamma", "Zeta", "Polygamma", "Betainc", "RandomGammaGrad",
})  # fmt: skip
"""Ops that compute in float64 whatever their dtype is."""

HEADERS: Mapping[str, str] = {
    "Pow": "power", "Atan2": "power", "Xlogy": "exact_log", "Xlog1py": "exact_log", "TruncateDiv": "remainder",
    "FloorMod": "remainder", "TruncateMod": "remainder", "Mod": "remainder", "NextAfter": "neighbour",
    "Erf": "library", "Erfc": "library", "Erfinv": "inverse_erf", "Ndtri": "inverse_erf", "Lgamma": "log_gamma",
    "Digamma": "digamma", "Zeta": "zeta", "Polygamma": "zeta", "Betainc": "beta", "RandomGammaGrad": "gamma_slope",
    "LeftShift": "integers", "RightShift": "integers", "Cast": "convert",
}  # fmt: skip
"""The headers of ``timberframe/math`` that ops need beyond those of ``timberframe/elementwise.h``."""


@dataclass(frozen=True)
class CheckedOp:
    """An op of integers some of whose second operands have no result: their element gives 0, and an error.

    function: of the operands that have one; unsigned: its name for unsigned dtypes. bad, a template, says which have
    none; words: the error's.
    """

    function: str
    unsigned: str
    bad: str = "{1} == 0"
    words: str = ZERO_DIVISOR

    def term(self, dtype: str) -> str:
        """The op's template for a dtype."""
        name = self.unsigned if dtype.startswith("u") else self.function
        return f"{self.bad} ? 0 : tf_{name}_{dtype}({{0}}, {{1}})"


CHECKED: Mapping[str, CheckedOp] = {
    "Div": CheckedOp("quotient", "quotient"),
    "TruncateDiv": CheckedOp("quotient", "quotient"),
    "FloorDiv": CheckedOp("floor_quotient", "quotient"),
    "Mod": CheckedOp("remainder", "remainder"),
    "TruncateMod": CheckedOp("remainder", "remainder"),
    "FloorMod": CheckedOp("floor_remainder", "remainder"),
    "Pow": CheckedOp("power", "power", "{1} < 0", NEGATIVE_EXPONENT),
}
"""Ops of integers that may fail: kernels of their own, which no chain takes in."""

_CUT = {("float32", "float16"): 13, ("float32", "bfloat16"): 16, ("float64", "float32"): 29, ("float64", "float16"): 42,
        ("float64", "bfloat16"): 45}  # fmt: skip


def conversion(source: str, target: str, operand: str, truncate: bool) -> str:
    """Cast of one element, whose C type is that of `source` on accelerators, to that of `target`."""
    if target == "bool":
        return f"{operand} != 0"
    if "float" not in target:
        if "float" not in source:
            return f"({target}_t){operand}"
        whole = {"uint64": "UINT64", "int64": "INT64", "uint32": "INT64"}.get(target, "INT32")
        return f"({target}_t)TF_{whole}_OF({operand})"
    if truncate and (source, target) in _CUT:
        operand = f"tf_cut_f{np.dtype(source).itemsize * 8}({operand}, {_CUT[source, target]})"
    if target == "float64":
        return f"(double){operand}"
    if target == "float32":
        return f"(float){operand}"
    narrow = f"tf_odd_float({operand})" if source == "float64" else f"(float){operand}"
    return f"tf_float32_from_{target}(tf_{target}_from_float32({narrow}))"
