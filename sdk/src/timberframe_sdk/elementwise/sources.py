"""The table of elementwise sources: what an op computes for one element, in what C, OpenCL C and CUDA have in common.

One row serves all: accelerators make the op's kernels of it, devices that generate code put it into chains, and the CPU
makes a kernel of it where it has none by hand. `define_source` adds a row, for our ops and for a vendor's alike.

An OpDef says what an op means, without a device or a language; the table says how it is computed, by the functions of
``timberframe/math``. This module imports the standard library alone, so that builds can read it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any, Final

TYPES: Final[Mapping[str, str]] = {
    "float32": "float", "float64": "double", "bool": "uint8_t", "int8": "int8_t", "int16": "int16_t",
    "int32": "int32_t", "int64": "int64_t", "uint8": "uint8_t", "uint16": "uint16_t", "uint32": "uint32_t",
    "uint64": "uint64_t",
}  # fmt: skip
"""The C types in which elements are computed."""

SHORT_FLOATS = ("float16", "bfloat16")
ALL_TYPES: Final[Mapping[str, str]] = {**dict.fromkeys(SHORT_FLOATS, "float"), **TYPES}
"""The same with the 16-bit floats: converted to float32 where they are read, and back where they are written."""

_INFINITY = {"f32": "TF_INFINITY32", "f64": "TF_INFINITY64"}


@dataclass(frozen=True)
class CheckedSource:
    """Of integers, some of whose second operands the op refuses: their element gives 0, and an error.

    function: of the operands that have a result; unsigned: its name for unsigned dtypes. bad, a template, says which
    have none: those that the OpDef's `refused` tests for, which has the error's message, too.
    """

    function: str
    unsigned: str
    bad: str = "{1} == 0"

    def template(self, dtype: str) -> str:
        """Returns the op's expression for a dtype."""
        name = self.unsigned if dtype.startswith("u") else self.function
        return f"{self.bad} ? 0 : tf_{name}_{dtype}({{0}}, {{1}})"


@dataclass(frozen=True)
class Source:
    """An op's element as expressions in C, by the kind of its last operand's dtype; "" where it has none.

    In the expressions {0}, {1} and {2} are the operands, {T} their C type, {U} its unsigned one, {f} f32 or f64, {w} 32
    or 64, {dtype} the dtype, and other names in braces attrs of the op (numbers and truth values). float16 and bfloat16
    are computed in float32 and rounded once. Integers wrap around: sums and products are those of unsigned numbers.

    result: the result's dtype where it is not that of the operands. dtypes: those that the expressions hold for, all by
    default. header: the one of ``timberframe/math`` that the functions need beyond ``timberframe/elementwise.h``.
    functions: C code of functions that the expressions call and no header has, marked ``static inline``.
    branches: the expressions branch or call a library, so that compilers do not vectorise loops over them; the CPU then
    leaves them out of chains. needs_float64: they compute in float64 whatever the dtype is. checked: integers that may
    fail; devices that report errors make a kernel of them, which no chain takes in. integer_attrs: of the attrs that
    the expressions name, those that are integers or truth values; the others are floats.
    """

    floats: str = ""
    integers: str = ""
    bools: str = ""
    result: str = ""
    dtypes: tuple[str, ...] = ()
    header: str = ""
    functions: str = ""
    branches: bool = False
    needs_float64: bool = False
    checked: CheckedSource | None = None
    integer_attrs: tuple[str, ...] = ()

    def template(self, dtype: str) -> str:
        """Returns the expression for a dtype; "" without one."""
        if dtype not in (self.dtypes or ALL_TYPES):
            return ""
        return self.bools if dtype == "bool" else self.integers if "int" in dtype else self.floats

    def operands(self, dtype: str) -> int:
        """Returns how many operands the expression for a dtype names."""
        return 1 + max(int(name) for name in _fields(self.template(dtype)) if name.isdigit())

    def attr_types(self) -> dict[str, str]:
        """Returns the attrs that the expressions name, in the order in which a kernel takes them, and their C types."""
        names = {name for text in (self.floats, self.integers, self.bools) for name in _fields(text)}
        attrs = sorted({name for name in names if not name.isdigit()} - {"T", "U", "f", "w", "dtype"})
        return {name: "int64_t" if name in self.integer_attrs else "double" for name in attrs}

    def term(self, dtype: str, operands: Sequence[str], attrs: Mapping[str, str]) -> str:
        """Returns the expression for a dtype, of these operands and attrs, which are C code; "" without one."""
        kind = ALL_TYPES[dtype]
        suffix = {"float": "f32", "double": "f64"}.get(kind, "")
        unsigned = f"u{kind}" if kind.startswith("int") else kind
        names = {**attrs, "T": kind, "U": unsigned, "f": suffix, "w": suffix[1:], "dtype": dtype}
        return self.template(dtype).format(*operands, **names).replace("INFINITY", _INFINITY.get(suffix, ""))


def _fields(template: str) -> list[str]:
    """Returns the names in braces."""
    return [name for _, name, _, _ in Formatter().parse(template) if name]


def _function(name: str, **rest: Any) -> Source:
    """Returns a function of one operand in ``timberframe/math``."""
    return Source(f"tf_{name}_{{f}}({{0}})", **rest)


def _gradient(name: str, **rest: Any) -> Source:
    """Returns a function of math/gradients.h, which computes in tf_wide."""
    return Source(f"({{T}})tf_{name}_grad({{0}}, {{1}})", **rest)


def _wide(function: str, header: str, operands: int = 1) -> Source:
    """Returns a function of float64 for all floats."""
    arguments = ", ".join(f"(double){{{k}}}" for k in range(operands))
    return Source(f"({{T}}){function}({arguments})", header=header, branches=True, needs_float64=True)


def _special(expression: str, header: str, **rest: Any) -> Source:
    """Of floats, in a form that branches."""
    return Source(expression, header=header, branches=True, **rest)


def _same(expression: str, bools: str = "", result: str = "") -> Source:
    """Returns the same expression of floats and integers."""
    return Source(expression, expression, bools, result)


def _wrapping(sign: str) -> Source:
    return Source(f"{{0}} {sign} {{1}}", f"({{T}})(1u * ({{U}}){{0}} {sign} ({{U}}){{1}})")


_QUOTIENT = CheckedSource("quotient", "quotient")
_REMAINDER = CheckedSource("remainder", "remainder")
_TRUNCATE_MOD = _special("tf_truncate_mod_{f}({0}, {1})", "remainder", checked=_REMAINDER)

SOURCES: dict[str, Source] = {
    "Neg": Source("-{0}", "({T})(0u - ({U}){0})"),
    "Abs": _function("abs", integers="{0} < 0 ? ({T})(0u - ({U}){0}) : {0}"),
    "Sign": Source("{0} > 0 ? ({T})1 : {0} < 0 ? ({T})-1 : {0} + 0", "({0} > 0) - ({0} < 0)"),
    "Square": Source("{0} * {0}", "({T})((uint64_t){0} * (uint64_t){0})"),
    "Reciprocal": _function("reciprocal"),
    "Inv": _function("reciprocal"),
    "Floor": _function("floor"),
    "Ceil": _function("ceil"),
    "Rint": _function("rint"),
    "Round": _function("rint", integers="{0}"),
    "Sqrt": _function("sqrt"),
    "Rsqrt": _function("rsqrt"),
    "Exp": _function("exp"),
    "Expm1": _function("expm1"),
    "Log": _function("log"),
    "Log1p": _function("log1p"),
    "Sin": _function("sin", branches=True),
    "Cos": _function("cos", branches=True),
    "Tan": _function("tan", branches=True),
    "Asin": _function("asin"),
    "Acos": _function("acos"),
    "Atan": _function("atan"),
    "Sinh": _function("sinh"),
    "Cosh": _function("cosh"),
    "Tanh": _function("tanh"),
    "Asinh": _function("asinh"),
    "Acosh": _function("acosh"),
    "Atanh": _function("atanh"),
    "Erf": _function("erf", header="library", branches=True),
    "Erfc": _wide("erfc", "library"),
    "Erfinv": _wide("tf_erfinv", "inverse_erf"),
    "Ndtri": _wide("tf_ndtri", "inverse_erf"),
    "Lgamma": _wide("tf_exact_log_gamma", "log_gamma"),
    "Digamma": _wide("tf_digamma", "digamma"),
    "BesselI0": _wide("tf_bessel_i0", "bessel"),
    "BesselI0e": _wide("tf_bessel_i0e", "bessel"),
    "BesselI1": _wide("tf_bessel_i1", "bessel"),
    "BesselI1e": _wide("tf_bessel_i1e", "bessel"),
    "IsNan": Source("{0} != {0}", result="bool"),
    "IsInf": Source("tf_abs_{f}({0}) == INFINITY", result="bool"),
    "IsFinite": Source("tf_abs_{f}({0}) < INFINITY", result="bool"),
    "Invert": Source(integers="~{0}"),
    "PopulationCount": Source(integers="tf_bit_count(({U}){0})", result="uint8", header="integers"),
    "LogicalNot": Source(bools="{0} ^ 1"),
    # Activations, and what gradients are made of
    "Sigmoid": _function("sigmoid"),
    "Softplus": _function("softplus"),
    "Softsign": Source("{0} / (1 + tf_abs_{f}({0}))"),
    "Elu": _function("elu"),
    "Selu": _function("selu"),
    "Relu": Source("{0} <= 0 ? 0 : {0}", "{0} > 0 ? {0} : 0"),
    "Relu6": Source("{0} <= 0 ? 0 : {0} > 6 ? 6 : {0}", "{0} > 6 ? 6 : {0} > 0 ? {0} : 0"),
    "LeakyRelu": Source("{0} < 0 ? ({T}){alpha} * {0} : {0}"),
    "LeakyReluGrad": Source("({T})((tf_wide){1} > 0 ? (tf_wide){0} : {alpha} * (tf_wide){0})"),
    "ReluGrad": _gradient("relu", integers="{1} > 0 ? {0} : 0"),
    "Relu6Grad": _gradient("relu6", integers="{1} > 0 && {1} < 6 ? {0} : 0"),
    "EluGrad": _gradient("elu"),
    "SeluGrad": _gradient("selu"),
    "SoftplusGrad": _gradient("softplus"),
    "SoftsignGrad": Source("({T})((tf_wide){0} / (1 + TF_WIDE(abs)({1})) / (1 + TF_WIDE(abs)({1})))"),
    "TanhGrad": _gradient("tanh"),
    "SigmoidGrad": _gradient("sigmoid"),
    "SqrtGrad": _gradient("sqrt"),
    "RsqrtGrad": _gradient("rsqrt"),
    "ReciprocalGrad": _gradient("reciprocal"),
    "InvGrad": _gradient("reciprocal"),
    # Arithmetic of two operands
    "Add": _wrapping("+"),
    "AddV2": _wrapping("+"),
    "Sub": _wrapping("-"),
    "Mul": _wrapping("*"),
    "MulNoNan": Source("{1} == 0 ? 0 : {0} * {1}"),
    "SquaredDifference": Source(
        "({0} - {1}) * ({0} - {1})", "({T})((1u * ({U}){0} - ({U}){1}) * (1u * ({U}){0} - ({U}){1}))"
    ),
    "Div": Source("{0} / {1}", checked=_QUOTIENT),
    "RealDiv": Source("{0} / {1}"),
    "DivNoNan": Source("{1} == 0 ? 0 : {0} / {1}"),
    "FloorDiv": Source("tf_floor_{f}({0} / {1})", checked=CheckedSource("floor_quotient", "quotient")),
    "TruncateDiv": _special("tf_truncate_div_{f}({0}, {1})", "remainder", checked=_QUOTIENT),
    "FloorMod": _special(
        "tf_floor_mod_{f}({0}, {1})", "remainder", checked=CheckedSource("floor_remainder", "remainder")
    ),
    "TruncateMod": _TRUNCATE_MOD,
    "Mod": _TRUNCATE_MOD,
    "Pow": _special("power_float{w}_of({0}, {1})", "power", checked=CheckedSource("power", "power", "{1} < 0")),
    "Atan2": _special("angle_float{w}({0}, {1})", "power"),
    "NextAfter": _special("tf_next_after_{f}({0}, {1})", "neighbour"),
    "Xdivy": Source("{0} == 0 ? {0} : {0} / {1}"),
    "Xlogy": _special("{0} == 0 ? {0} : {0} * tf_exact_log_{f}({1})", "exact_log"),
    "Xlog1py": _special("{0} == 0 ? {0} : {0} * tf_exact_log1p_{f}({1})", "exact_log"),
    "Zeta": _wide("tf_zeta", "zeta", 2),
    "Polygamma": _wide("tf_polygamma", "zeta", 2),
    "Betainc": _wide("tf_beta", "beta", 3),
    "Igamma": _wide("tf_igamma", "incomplete_gamma", 2),
    "Igammac": _wide("tf_igammac", "incomplete_gamma", 2),
    "IgammaGradA": _wide("tf_igamma_slope", "incomplete_gamma", 2),
    "RandomGammaGrad": _wide("tf_gamma_slope", "gamma_slope", 2),
    "Maximum": _same("{0} < {1} || {1} != {1} ? {1} : {0}"),
    "Minimum": _same("{1} < {0} || {1} != {1} ? {1} : {0}"),
    "ClipByValue": _same("({0} > {2} ? {2} : {0}) < {1} ? {1} : {0} > {2} ? {2} : {0}"),
    "BitwiseAnd": Source(integers="{0} & {1}"),
    "BitwiseOr": Source(integers="{0} | {1}"),
    "BitwiseXor": Source(integers="{0} ^ {1}"),
    "LeftShift": Source(integers="tf_left_shift_{dtype}({0}, {1})", header="integers", branches=True),
    "RightShift": Source(integers="tf_right_shift_{dtype}({0}, {1})", header="integers", branches=True),
    # Comparison and selection
    "Less": _same("{0} < {1}", result="bool"),
    "LessEqual": _same("{0} <= {1}", result="bool"),
    "Greater": _same("{0} > {1}", result="bool"),
    "GreaterEqual": _same("{0} >= {1}", result="bool"),
    "Equal": _same("{0} == {1}", "{0} == {1}", "bool"),
    "NotEqual": _same("{0} != {1}", "{0} != {1}", "bool"),
    "ApproximateEqual": Source(
        "(tf_wide)tf_abs_{f}({0} - {1}) < (tf_wide){tolerance}",
        result="bool",
        dtypes=("float32", "float64"),  # 16-bit floats would round their difference
        branches=True,
    ),
    "Select": _same("{0} ? {1} : {2}", "{0} ? {1} : {2}"),
    "SelectV2": _same("{0} ? {1} : {2}", "{0} ? {1} : {2}"),
    "LogicalAnd": Source(bools="{0} & {1}"),
    "LogicalOr": Source(bools="{0} | {1}"),
}
"""The sources by op."""


def define_source(
    op: str,
    floats: str = "",
    integers: str = "",
    bools: str = "",
    *,
    result: str = "",
    dtypes: Sequence[str] = (),
    functions: str = "",
    branches: bool = False,
    needs_float64: bool = False,
) -> Source:
    """Gives an elementwise op its source (see `Source`): kernels on all devices that compile, and fusion in chains.

    To be called where the op is defined, before a graph with it runs. ValueError where the op already has another one.
    """
    made = Source(floats, integers, bools, result, tuple(dtypes), "", functions, branches, needs_float64)
    if SOURCES.setdefault(op, made) != made:
        raise ValueError(f"source of {op}: {SOURCES[op]} is defined; a second one must be the same")
    return made
