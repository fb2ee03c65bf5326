"""Attr values: from what users write to the form that operations hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from timberframe_core.arguments import shown
from timberframe_core.dtypes import as_dtype
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.tensor_shape import as_shape
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.ops.definition.signature import AttrDef, as_float
from timberframe_core.wording import with_article

MOST_TENSORS = 1 << 16
"""In a list of inputs or outputs; a number that a damaged file gives must not fill the memory."""


def complete_attrs(op: OpDef, name: str, given: Mapping[str, Any], container: str = "") -> dict[str, Any]:
    """Returns every attr of the op in the form that operations hold, defaults filled in.

    container: of what a stateful op makes, where `given` names none. Raises InvalidArgumentError for an attr that is
    missing, unknown (unless its name begins with ``_``), of the wrong kind, or not allowed.
    """
    attrs: dict[str, Any] = {}
    for attr in op.attrs.values():
        if attr.name in given:
            value = normalise(op, name, attr, given[attr.name])
            wrong = attr.check(value)
            if wrong:
                error = InvalidTypeError if attr.kind.endswith(("type", "type)")) else InvalidArgumentError
                raise error(f"{op.name} '{name}': {wrong}", name)
        elif attr.required:
            raise InvalidArgumentError(
                f"{op.name} '{name}': attr {attr.name} is missing; it is a required {attr.kind}", name
            )
        else:
            value = attr.default
        attrs[attr.name] = value
    if container and op.stateful and attrs.get("container") == "":
        attrs["container"] = container
    for number in op.number_attrs:
        if attrs[number] > MOST_TENSORS:
            raise InvalidArgumentError(
                f"{op.name} '{name}': attr {number} is {attrs[number]}; "
                f"a list of inputs or outputs has at most {MOST_TENSORS} tensors",
                name,
            )
    if len(given) > len(attrs) or given.keys() - attrs.keys():
        extra = given.keys() - attrs.keys()
        unknown = sorted(k for k in extra if not k.startswith("_"))
        if unknown:
            raise InvalidArgumentError(
                f"{op.name} '{name}': attr {', '.join(unknown)} is unknown; the op has {', '.join(op.attrs) or 'none'}",
                name,
            )
        attrs.update({k: given[k] for k in extra})
    return attrs


def normalise(op: OpDef, name: str, attr: AttrDef, value: Any) -> Any:
    """Returns one attr's value in the form that operations hold; raises InvalidArgumentError for the wrong kind."""
    kind = attr.kind
    try:
        if kind.startswith("list("):
            convert = _CONVERT[kind[5:-1]]
            if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
                raise TypeError
            return tuple(convert(v) for v in value)
        return _CONVERT[kind](value)
    except (TypeError, ValueError):
        raise InvalidTypeError(
            f"{op.name} '{name}': attr {attr.name} is {shown(value)}; it must be {with_article(kind)}", name
        ) from None


def _integer(value: Any) -> int:
    if isinstance(value, float) and not value.is_integer():
        raise TypeError
    return int(value)


def _text(value: Any) -> str | bytes:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value
    if not isinstance(value, str):
        raise TypeError
    return value


_CONVERT: Mapping[str, Callable[[Any], Any]] = {
    "int": _integer,
    "float": as_float,
    "bool": bool,
    "string": _text,
    "type": as_dtype,
    "shape": as_shape,
    "tensor": np.asarray,
    "func": lambda f: f if isinstance(f, str) else f.name,
}
