"""Which dtypes an op is tried in: those that the device has a kernel for, and those that a level asks for."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from timberframe_conformance.case import Types
from timberframe_core.dtypes import BY_NAME, QUANTIZED, DType, as_dtype
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.ops.definition.signature import AttrDef, as_float

TESTABLE = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128", "string",
)  # fmt: skip


@functools.cache
def _table() -> Mapping[str, Any]:
    text = (files("timberframe_conformance") / "data" / "tensorflow_kernels.json").read_text()
    table: Mapping[str, Any] = json.loads(text)
    return table


def required_ops() -> Sequence[str]:
    """Ops that the registry must declare, whichever device is judged."""
    ops: Sequence[str] = _table()["required"]
    return ops


def is_expected(op: str, types: Mapping[str, str]) -> bool | None:
    """Returns whether TensorFlow registers a CPU kernel for these dtypes; None for an op that
    TensorFlow does not have.
    """
    sets: Sequence[Mapping[str, Sequence[str]]] | None = _table()["ops"].get(op)
    if sets is None:
        return None
    return any(all(dtype in allowed[name] for name, dtype in types.items() if name in allowed) for allowed in sets)


def type_attrs(op: OpDef) -> list[AttrDef]:
    """Returns the attrs that hold one dtype, those of inputs and outputs first, in their order."""
    order = [a.type_attr for a in (*op.inputs, *op.outputs) if a.type_attr] + list(op.attrs)
    names = [n for n in dict.fromkeys(order) if op.attrs[n].kind == "type"]
    return [op.attrs[n] for n in names]


def allowed_types(attr: AttrDef) -> list[str]:
    """Returns the dtypes that an attr may hold and that cases can be made of; quantized ones
    where it may hold no others.
    """
    found = [t for t in TESTABLE if attr.allowed is None or BY_NAME[t] in attr.allowed]
    return found or [t.name for t in QUANTIZED if attr.allowed is not None and t in attr.allowed]


def combinations(op: OpDef) -> dict[str, list[Types]]:
    """Returns all dtype combinations that the op's declaration allows, by the first type
    attr ("" where it has none).
    """
    attrs = type_attrs(op)
    groups: dict[str, list[Types]] = {}
    for chosen in itertools.product(*(allowed_types(a) for a in attrs)):
        types = tuple((a.name, t) for a, t in zip(attrs, chosen, strict=True))
        groups.setdefault(chosen[0] if chosen else "", []).append(types)
    return groups


def attr_value(kind: str, value: Any) -> Any:
    """Returns a sample's attr in the form that attrs have: dtypes may be given by name, lists
    are tuples, floats float32.
    """
    if kind == "float":
        return as_float(value)
    if kind == "type":
        return as_dtype(value)
    if kind == "list(type)":
        return tuple(as_dtype(v) for v in value)
    return tuple(value) if isinstance(value, list) else value


def as_attrs(types: Types) -> dict[str, DType]:
    return {name: BY_NAME[dtype] for name, dtype in types}
