"""What an OpDef says, as Markdown: signature, attrs, gradient, tolerance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markdown import table
from timberframe_core.dtypes import DType
from timberframe_core.ops.definition.accuracy import Accumulation, Accuracy, Bound, Exact, Pointwise, Residual
from timberframe_core.ops.definition.formats import FORMATS, HALVES, computing_format
from timberframe_core.ops.definition.limits import ulp_limit
from timberframe_core.ops.definition.opdef import NotDifferentiable, OpDef
from timberframe_core.ops.definition.signature import ArgDef, AttrDef
from timberframe_core.shapes import format_shape

_TRAITS = (
    ("elementwise", "element by element"),
    ("commutative", "inputs may be swapped"),
    ("stateful", "stateful"),
    ("on_host", "carried out by the host"),
)


def signature(op: OpDef) -> str:
    """``Split(split_dim: int32, value: T) -> output: num_split * T``, in TensorFlow's notation."""
    inputs, outputs = (", ".join(f"{a.name}: {_type(a)}" for a in args) for args in (op.inputs, op.outputs))
    returned = outputs if len(op.outputs) == 1 else f"({outputs})"
    return f"{op.name}({inputs})" + (f" -> {returned}" if op.outputs else "")


def _type(arg: ArgDef) -> str:
    text = arg.type_list_attr or arg.type_attr or (arg.dtype.name if arg.dtype else "")
    text = f"{arg.number_attr} * {text}" if arg.number_attr else text
    return f"Ref({text})" if arg.is_ref else text


def attrs(op: OpDef) -> str:
    """Returns a table of the attrs: kind, default, and what they may be."""
    rows = [(f"`{a.name}`", a.kind, _default(a), _allowed(a)) for a in op.attrs.values()]
    return table(("attr", "kind", "default", "may be"), rows)


def _default(attr: AttrDef) -> str:
    return "required" if attr.required else f"`{_value(attr.kind, attr.default)}`"


def _allowed(attr: AttrDef) -> str:
    parts = [", ".join(map(str, attr.allowed))] if attr.allowed else []
    if attr.minimum is not None:
        what = "length at least " if attr.kind.startswith("list(") else "at least "
        parts.append(f"{what}{attr.minimum}")
    return "; ".join(parts)


def _value(kind: str, value: Any) -> str:
    if isinstance(value, tuple) and kind.startswith("list("):
        return "[" + ", ".join(_value(kind[5:-1], v) for v in value) + "]"
    if kind == "shape":
        return format_shape(value)
    return str(value) if isinstance(value, DType) else f"{value:.7g}" if isinstance(value, float) else repr(value)


def traits(op: OpDef) -> str:
    """Returns what sets the op apart, in a line; "" for nothing."""
    found = [text for name, text in _TRAITS if getattr(op, name)]
    found += [f"reduction ({op.reduction})"] * (op.reduction is not None)
    found += [f"updates {', '.join(op.updates)}"] * bool(op.updates)
    return ", ".join(found)


def gradient(op: OpDef) -> str:
    """Returns whether the op has a gradient, and the reason where it has none."""
    if isinstance(op.gradient, NotDifferentiable):
        return f"{'0' if op.gradient.constant else 'none'}: {op.gradient.reason}"
    return "none" if op.gradient is None else "yes"


def output_dtypes(op: OpDef) -> list[DType]:
    """Returns the floating dtypes that outputs may have."""
    found: dict[DType, None] = {}
    for arg in op.outputs:
        attr = op.attrs.get(arg.type_attr or arg.type_list_attr or "")
        allowed = (arg.dtype,) if arg.dtype else (attr.allowed if attr else None)
        found.update(dict.fromkeys(d for d in allowed or () if d is not None and d.name in FORMATS))
    return list(found)


def kind_of_tolerance(op: OpDef, dtype: str) -> str:
    """Returns the tolerance in a dtype in a word or two: a limit in ULP, or what limits it."""
    names = {Accumulation: "sum of n terms", Bound: "a bound of its own", Residual: "laws of the outputs"}
    dtypes = [d for d in output_dtypes(op) if d.name == dtype]
    return names.get(type(op.accuracy)) or _limit(op.accuracy, dtypes).removeprefix(f"{dtype} ")


def tolerance(op: OpDef) -> str:
    """Returns how far a device's result may be from the true one."""
    return _limit(op.accuracy, output_dtypes(op)) if op.outputs else ""


def _limit(accuracy: Accuracy, dtypes: Sequence[DType]) -> str:
    match accuracy:
        case Pointwise() if dtypes:
            limits = ((d, ulp_limit(accuracy, d.numpy)) for d in dtypes)
            return ", ".join(f"{d.name} {limit:g} ULP" for d, limit in limits)
        case Accumulation() if dtypes:
            roundoffs = (f"{d.name} {_power(computing_format(d.numpy).unit_roundoff)}" for d in dtypes)
            half = "; then rounded once to float16 or bfloat16" if any(d.name in HALVES for d in dtypes) else ""
            return (
                "γₙ = n·u / (1 - n·u) times the sum of the magnitudes, n being the number of terms that an element "
                f"adds up, u the unit roundoff: {', '.join(roundoffs)}{half}"
            )
        case Bound() | Residual() if dtypes:
            kind = "a bound of its own" if isinstance(accuracy, Bound) else "judged by what must hold of the outputs"
            return f"{kind}; source: {accuracy.source}"
        case Exact(signed_zero=False):
            return "exact, but for the sign of a zero"
        case _:
            return "exact"


def _power(u: float) -> str:
    """Returns a power of two: 2^-24."""
    exponent = 0
    while u < 1:
        u, exponent = u * 2, exponent - 1
    return f"2^{exponent}"
