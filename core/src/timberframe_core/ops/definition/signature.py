"""TensorFlow's notation for inputs, outputs and attrs, parsed."""

from __future__ import annotations

import ast
import ctypes
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from timberframe_core import dtypes
from timberframe_core.dtypes import DType, as_dtype
from timberframe_core.errors import InvalidArgumentError

_TYPE_CLASSES = {
    "numbertype": (*dtypes.NUMERIC, *dtypes.QUANTIZED),
    "realnumbertype": tuple(t for t in dtypes.NUMERIC if not t.is_complex),
    "quantizedtype": dtypes.QUANTIZED,
}
_KINDS = ("int", "float", "bool", "string", "type", "shape", "tensor", "func")


class NoDefault:
    """The default of an attr that must be given."""

    def __repr__(self) -> str:
        return "<required>"


REQUIRED = NoDefault()


@dataclass(frozen=True)
class ArgDef:
    """An input or output: one tensor, or `number_attr` of them, or one for each entry of `type_list_attr`."""

    name: str
    dtype: DType | None = None
    type_attr: str | None = None
    number_attr: str | None = None
    type_list_attr: str | None = None
    is_ref: bool = False

    @property
    def is_list(self) -> bool:
        return self.number_attr is not None or self.type_list_attr is not None


@dataclass(frozen=True)
class AttrDef:
    """An attr: `kind` is int, float, bool, string, type, shape, tensor or func, or ``list(kind)``.

    Values are held as int, float (a float32's value), bool, str (bytes where not UTF-8), DType, Shape, ndarray and
    function name; lists as tuples of these.
    """

    name: str
    kind: str
    default: Any = REQUIRED
    allowed: tuple[Any, ...] | None = None
    minimum: int | None = None

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    def __lt__(self, other: AttrDef) -> bool:
        return self.name < other.name

    def check(self, value: Any) -> str | None:
        """Returns None when the value is allowed, else what is wrong with it and what is required."""
        items = value if self.kind.startswith("list(") else (value,)
        if self.allowed is not None and any(x not in self.allowed for x in items):
            return f"attr {self.name} is {_show(value)}; it must be one of {', '.join(_show(a) for a in self.allowed)}"
        if self.minimum is not None:
            size = len(value) if self.kind.startswith("list(") else value
            if size < self.minimum:
                what = "length" if self.kind.startswith("list(") else "value"
                return f"attr {self.name} is {_show(value)}; its {what} must be at least {self.minimum}"
        return None


def _show(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_show, value)) + "]"
    return str(value) if isinstance(value, DType) else repr(value)


def parse_arg(text: str, attrs: Mapping[str, AttrDef]) -> ArgDef:
    """``name: T``, ``name: float``, ``name: N * T``, ``name: Tlist`` or ``name: Ref(T)``; attrs: to know lists."""
    name, kind, number, is_ref = _parse_argument(text)
    known = dtypes.BY_NAME.get(kind)
    if known is not None:
        return ArgDef(name, dtype=known, number_attr=number, is_ref=is_ref)
    if kind not in attrs:
        raise InvalidArgumentError(
            f"argument {text!r}: {kind} is neither a dtype nor an attr; declare it among the attrs"
        )
    if attrs[kind].kind == "list(type)":
        return ArgDef(name, type_list_attr=kind, is_ref=is_ref)
    return ArgDef(name, type_attr=kind, number_attr=number, is_ref=is_ref)


@cache  # many ops have the same arguments and attrs
def _parse_argument(text: str) -> tuple[str, str, str | None, bool]:
    """Returns the name, dtype or attr, the attr that counts them, and whether it is a reference."""
    name, _, kind = (part.strip() for part in text.partition(":"))
    is_ref = kind.startswith("Ref(")
    kind = kind.removeprefix("Ref(").removesuffix(")").strip()
    number = None
    if "*" in kind:
        number, kind = (part.strip() for part in kind.split("*"))
    return name, kind, number, is_ref


@cache
def parse_attr(text: str) -> AttrDef:
    """``name: kind``, with ``>= n``, ``{allowed, values}`` and ``= default`` as TensorFlow writes them."""
    name, _, rest = (part.strip() for part in text.partition(":"))
    default_text = None
    match = re.match(r"^(.*?)(?<![<>=!])=(?!=)\s*(.+)$", rest, re.S)
    if match:
        rest, default_text = match.group(1).strip(), match.group(2).strip()
    minimum = None
    match = re.match(r"^(.*?)>=\s*(-?\d+)$", rest)
    if match:
        rest, minimum = match.group(1).strip(), int(match.group(2))
    kind, allowed = _parse_kind(rest, text)
    default = REQUIRED if default_text is None else parse_value(kind, default_text)
    return AttrDef(name, kind, default, allowed, minimum)


def _parse_kind(rest: str, text: str) -> tuple[str, tuple[Any, ...] | None]:
    is_list = rest.startswith("list(")
    inner = rest[5:-1].strip() if is_list else rest
    allowed: tuple[Any, ...] | None = None
    if inner.startswith("{"):
        words = [w.strip() for w in inner.strip("{}").split(",") if w.strip()]
        if words[0][0] in "'\"":
            inner, allowed = "string", tuple(w.strip("'\"") for w in words)
        else:
            inner, allowed = "type", tuple(dict.fromkeys(t for w in words for t in _types(w)))
    elif inner in _TYPE_CLASSES:
        inner, allowed = "type", _TYPE_CLASSES[inner]
    if inner not in _KINDS:
        raise InvalidArgumentError(f"attr spec {text!r} has kind {inner!r}; it must be one of {', '.join(_KINDS)}")
    return (f"list({inner})" if is_list else inner), allowed


def _types(word: str) -> tuple[DType, ...]:
    return _TYPE_CLASSES.get(word) or (as_dtype(word),)


def as_float(value: Any) -> float:
    """Returns a float as attrs hold it: a float32, which is what a GraphDef has room for."""
    return ctypes.c_float(float(value)).value


def parse_value(kind: str, text: str) -> Any:
    """Returns a default value in TensorFlow's notation, as the Python value that an attr of this kind holds."""
    if kind.startswith("list("):
        inner, body = kind[5:-1], text.strip()[1:-1].strip()
        return tuple(parse_value(inner, part.strip()) for part in body.split(",")) if body else ()
    if kind == "bool":
        return text == "true"
    if kind == "type":
        return as_dtype(text.removeprefix("DT_").lower())
    if kind == "shape":
        return None if "unknown_rank" in text else tuple(int(d) for d in re.findall(r"-?\d+", text))
    if kind == "float":
        return as_float(float(text))
    if kind == "int":
        return int(text)
    return ast.literal_eval(text)
