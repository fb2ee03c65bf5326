"""The contents of large constants, left where a serialised GraphDef has them: in a mapped file, they are no memory."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Any, NamedTuple

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graphdef import messages

LARGE = 1 << 14
"""Bytes of a NodeDef from which on its content is left out of the message."""

_NODE, _NAME, _OP, _ATTR, _KEY, _VALUE, _TENSOR, _DTYPE, _CONTENT = 1, 1, 2, 5, 1, 2, 8, 1, 4
"""Numbers of fields: GraphDef.node; NodeDef.name, op, attr; key and value of its entries; AttrValue.tensor;
TensorProto.dtype, tensor_content."""
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_STRING = 7  # DT_STRING


class _Field(NamedTuple):
    """A field of a message. begin: where its tag is; its value is from `start` to `end`; a varint has its `number`."""

    tag: int
    begin: int
    start: int
    end: int
    number: int

    @property
    def id(self) -> int:
        return self.tag >> 3


class _DamagedError(ValueError):
    """No message; protobuf says why."""


def read_graph_def(graph_def: Any) -> tuple[Any, dict[str, memoryview]]:
    """Returns a GraphDef as a message, and by node the contents of constants that the message leaves out.

    graph_def: our message, TensorFlow's, or serialised bytes. A read-only buffer, as of a mapped file, must stay as it
    is while the arrays are used. Raises InvalidArgumentError for bytes that do not parse.
    """
    if isinstance(graph_def, bytes | memoryview | mmap.mmap):
        view = memoryview(graph_def)
        if view.readonly and view.contiguous:
            try:
                short, contents = _shortened(view.cast("B"))
                return messages.as_message(short, messages.GraphDef, "graph_def"), contents
            except (ValueError, InvalidArgumentError):
                pass  # reported for the whole
        graph_def = bytes(view)
    return messages.as_message(graph_def, messages.GraphDef, "graph_def"), {}


def _shortened(data: memoryview) -> tuple[bytes, dict[str, memoryview]]:
    parts: list[bytes | memoryview] = []
    contents: dict[str, memoryview] = {}
    copied = 0
    for field in _fields(data, 0, len(data)):
        if field.id != _NODE or field.end - field.start < LARGE or field.tag & 7 != _BYTES:
            continue
        found = _without_content(data, field)
        if found is not None:
            name, node, content = found
            parts += [data[copied : field.begin], _tagged(_NODE, node)]
            copied = field.end
            contents[name] = content
    return b"".join([*parts, data[copied:]]), contents


def _without_content(data: memoryview, node: _Field) -> tuple[str, bytes, memoryview] | None:
    """Returns the name, message and content of a Const; None for other nodes, and for constants
    that list their elements.
    """
    fields = [*_fields(data, node.start, node.end)]
    if [bytes(data[f.start : f.end]) for f in fields if f.id == _OP] != [b"Const"]:
        return None
    names = [bytes(data[f.start : f.end]) for f in fields if f.id == _NAME]
    for field in fields:
        if field.id != _ATTR:
            continue
        entry = {f.id: f for f in _fields(data, field.start, field.end)}
        if entry.keys() != {_KEY, _VALUE} or bytes(data[entry[_KEY].start : entry[_KEY].end]) != b"value":
            continue
        value = [*_fields(data, entry[_VALUE].start, entry[_VALUE].end)]
        if len(value) != 1 or value[0].id != _TENSOR or len(names) != 1:
            return None
        tensor = [*_fields(data, value[0].start, value[0].end)]
        content = [f for f in tensor if f.id == _CONTENT]
        if len(content) != 1 or any(f.id == _DTYPE and f.number == _STRING for f in tensor):
            return None
        rest = b"".join(data[f.begin : f.end] for f in tensor if f is not content[0])
        attr = _tagged(_ATTR, _tagged(_KEY, b"value") + _tagged(_VALUE, _tagged(_TENSOR, rest)))
        kept = b"".join(data[f.begin : f.end] for f in fields if f is not field)
        return names[0].decode(), kept + attr, data[content[0].start : content[0].end]
    return None


def _fields(data: memoryview, at: int, end: int) -> Iterator[_Field]:
    """Yields the fields of the message from `at` to `end`."""
    while at < end:
        begin = at
        tag, at = _varint(data, at, end)
        kind, number, start = tag & 7, 0, at
        if kind == _VARINT:
            number, at = _varint(data, at, end)
        elif kind == _BYTES:
            size, start = _varint(data, at, end)
            at = start + size
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
        else:
            raise _DamagedError
        if at > end:
            raise _DamagedError
        yield _Field(tag, begin, start, at, number)


def _varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    """Returns a number, and where it ends."""
    number = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
    raise _DamagedError


def _tagged(id: int, value: bytes) -> bytes:
    """Returns a field of bytes."""
    size, head = len(value), bytearray([id << 3 | _BYTES])
    while size > 127:
        head.append(size & 127 | 128)
        size >>= 7
    head.append(size)
    return bytes(head) + value
