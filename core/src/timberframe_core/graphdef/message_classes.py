"""The classes of the messages that `schema.py` lists, made by protobuf when this module is first imported."""

from __future__ import annotations

import re
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from timberframe_core.graphdef.schema import ENUMS, MESSAGES

PACKAGE = "tensorflow"
_FIELD = re.compile(r"(\w+) (\d+) (\[[\w.]+\]|\{\w+: [\w.]+\}|[\w.]+)(?: \| (\w+))?(?:, |$)")
_Field = descriptor_pb2.FieldDescriptorProto


def _set_type(field: Any, name: str) -> None:
    if name in MESSAGES:
        field.type, field.type_name = _Field.TYPE_MESSAGE, f".{PACKAGE}.{name}"
    elif name in ENUMS:
        field.type, field.type_name = _Field.TYPE_ENUM, f".{PACKAGE}.{name}"
    else:
        field.type = getattr(_Field, f"TYPE_{name.upper()}")


def _add_map(message: Any, field: Any, owner: str, spec: str) -> None:
    entry = message.nested_type.add(name="".join(p.capitalize() for p in field.name.split("_")) + "Entry")
    entry.options.map_entry = True
    for number, (name, kind) in enumerate(zip(("key", "value"), spec[1:-1].split(": "), strict=True), 1):
        _set_type(entry.field.add(name=name, number=number, label=_Field.LABEL_OPTIONAL), kind)
    field.type, field.type_name = _Field.TYPE_MESSAGE, f".{PACKAGE}.{owner}.{entry.name}"


def _add_fields(message: Any, owner: str, text: str) -> None:
    groups: list[str] = []
    for name, number, spec, group in _FIELD.findall(text):
        field = message.field.add(name=name, number=int(number))
        field.label = _Field.LABEL_REPEATED if spec[0] in "[{" else _Field.LABEL_OPTIONAL
        if spec[0] == "{":
            _add_map(message, field, owner, spec)
        else:
            _set_type(field, spec.strip("[]"))
        if group:
            if group not in groups:
                groups.append(group)
                message.oneof_decl.add(name=group)
            field.oneof_index = groups.index(group)


def _build_pool() -> descriptor_pool.DescriptorPool:
    """All messages and enums as one file; a nested name such as `OpDef.ArgDef` follows its owner in the tables."""
    file = descriptor_pb2.FileDescriptorProto(name="timberframe/graphdef.proto", package=PACKAGE, syntax="proto3")
    built: dict[str, Any] = {}
    for name, text in MESSAGES.items():
        owner, _, short = name.rpartition(".")
        built[name] = built[owner].nested_type.add(name=short) if owner else file.message_type.add(name=name)
        _add_fields(built[name], name, text)
    for name, values in ENUMS.items():
        owner, _, short = name.rpartition(".")
        enum = built[owner].enum_type.add(name=short) if owner else file.enum_type.add(name=name)
        for label, number in values.items():
            enum.value.add(name=label, number=number)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


_pool = _build_pool()


def message(name: str) -> Any:
    """The class of a message, such as `GraphDef` or `OpDef.ArgDef`."""
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))
