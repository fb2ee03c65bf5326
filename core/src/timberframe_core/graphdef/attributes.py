"""Attrs in a GraphDef: AttrValue to the values that operations hold, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from timberframe_core.dtypes import DType, as_dtype
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graphdef import messages
from timberframe_core.graphdef.tensors import decode_shape, encode_array, encode_shape, make_ndarray
from timberframe_core.wording import with_article

_FIELDS = {
    "int": "i", "float": "f", "bool": "b", "string": "s", "type": "type", "shape": "shape", "tensor": "tensor",
    "func": "func",
}  # fmt: skip


def _decode_text(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _decode_type(number: int) -> DType:
    found = as_dtype(number)
    if found.is_ref:
        raise InvalidArgumentError(f"it is {found.name}; attrs hold no types of references, only outputs have them")
    return found


_DECODE: Mapping[str, Callable[[Any], Any]] = {
    "int": int,
    "float": float,
    "bool": bool,
    "string": _decode_text,
    "type": _decode_type,
    "shape": decode_shape,
    "tensor": make_ndarray,
    "func": lambda f: f.name,
}


def decode_attr(proto: Any, kind: str, what: str, content: memoryview | None = None) -> Any:
    """Returns the value of an AttrValue that should hold `kind`; raises InvalidArgumentError,
    naming `what`, if it does not.

    content: of a tensor whose message lacks it.
    """
    held = proto.WhichOneof("value")
    is_list = kind.startswith("list(")
    inner = kind[5:-1] if is_list else kind
    wanted = "list" if is_list else _FIELDS[inner]
    if held != wanted:
        raise InvalidArgumentError(f"{what} holds {held or 'nothing'}; it must hold {with_article(kind)}")
    convert = _DECODE[inner] if content is None else partial(make_ndarray, content=content)
    try:
        if is_list:
            return tuple(map(convert, getattr(proto.list, _FIELDS[inner])))
        return convert(getattr(proto, wanted))
    except InvalidArgumentError as error:
        raise type(error)(f"{what}: {error}") from None


def is_empty(proto: Any) -> bool:
    """Returns whether an AttrValue holds what the defaults of optional attrs usually are:
    false, no text, no elements.
    """
    held = proto.WhichOneof("value")
    if held == "list":
        return not proto.list.ByteSize()
    return held in ("b", "s") and not getattr(proto, held)


def encode_attr(value: Any, kind: str, tensor_type: DType | None = None) -> Any:
    """Returns an AttrValue of this kind; `tensor_type` is the dtype of a tensor where it does
    not follow from the array.
    """
    proto = messages.AttrValue()
    if kind.startswith("list("):
        proto.list.SetInParent()
        for item in value:
            _append(proto.list, kind[5:-1], item)
    else:
        _set(proto, kind, value, tensor_type)
    return proto


def _set(proto: Any, kind: str, value: Any, tensor_type: DType | None) -> None:
    if kind == "shape":
        proto.shape.CopyFrom(encode_shape(value))
    elif kind == "tensor":
        proto.tensor.CopyFrom(encode_array(value, tensor_type))
    elif kind == "func":
        proto.func.name = value
    else:
        setattr(proto, _FIELDS[kind], _encode_scalar(kind, value))


def _append(proto: Any, kind: str, item: Any) -> None:
    field = getattr(proto, _FIELDS[kind])
    if kind == "shape":
        field.append(encode_shape(item))
    elif kind == "tensor":
        field.append(encode_array(item))
    elif kind == "func":
        field.add().name = item
    else:
        field.append(_encode_scalar(kind, item))


def _encode_scalar(kind: str, value: Any) -> Any:
    if kind == "type":
        return value.number
    return value.encode() if kind == "string" and isinstance(value, str) else value


def kind_of(value: Any) -> str:
    """Returns the kind of an attr that no OpDef declares (its name begins with ``_``), from its Python value."""
    for kind, types in (("bool", bool), ("int", int), ("float", float), ("string", str | bytes), ("type", DType)):
        if isinstance(value, types):
            return kind
    if isinstance(value, np.ndarray):
        return "tensor"
    if isinstance(value, tuple | list):
        return f"list({kind_of(value[0])})" if value else "list(string)"
    raise InvalidArgumentError(f"attr value {value!r} of type {type(value).__name__} cannot be written to a GraphDef")
