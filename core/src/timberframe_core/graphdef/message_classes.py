"""The classes of the messages that `schema.py` lists, made by protobuf when this module is first imported.

Packages with messages of their own, which may have those of `schema.py` in their fields, add theirs by `add_messages`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from timberframe_core.graphdef.schema import ENUMS, MESSAGES

PACKAGE = "tensorflow"
_FIELD = re.compile(r"(\w+) (\d+) (\[[\w.]+\]|\{\w+: [\w.]+\}|[\w.]+)(?: \| (\w+))?(?:, |$)")
_Field = descriptor_pb2.FieldDescriptorProto
_pool = descriptor_pool.DescriptorPool()
_added: dict[str, tuple[Collection[str], Collection[str]]] = {}
"""The names of the messages and of the enums of each package."""


def _set_type(field: Any, name: str, package: str) -> None:
    for owner in (package, PACKAGE):
        messages, enums = _added[owner]
        if name in messages or name in enums:
            field.type = _Field.TYPE_MESSAGE if name in messages else _Field.TYPE_ENUM
            field.type_name = f".{owner}.{name}"
            return
    field.type = getattr(_Field, f"TYPE_{name.upper()}")


def _add_map(message: Any, field: Any, owner: str, spec: str, package: str) -> None:
    entry = message.nested_type.add(name="".join(p.capitalize() for p in field.name.split("_")) + "Entry")
    entry.options.map_entry = True
    for number, (name, kind) in enumerate(zip(("key", "value"), spec[1:-1].split(": "), strict=True), 1):
        _set_type(entry.field.add(name=name, number=number, label=_Field.LABEL_OPTIONAL), kind, package)
    field.type, field.type_name = _Field.TYPE_MESSAGE, f".{package}.{owner}.{entry.name}"


def _add_fields(message: Any, owner: str, text: str, package: str) -> None:
    groups: list[str] = []
    for name, number, spec, group in _FIELD.findall(text):
        field = message.field.add(name=name, number=int(number))
        field.label = _Field.LABEL_REPEATED if spec[0] in "[{" else _Field.LABEL_OPTIONAL
        if spec[0] == "{":
            _add_map(message, field, owner, spec, package)
        else:
            _set_type(field, spec.strip("[]"), package)
        if group:
            if group not in groups:
                groups.append(group)
                message.oneof_decl.add(name=group)
            field.oneof_index = groups.index(group)


def add_messages(package: str, messages: Mapping[str, str], enums: Mapping[str, Mapping[str, int]]) -> None:
    """Adds a package's messages and enums, once, as one file; both are written as those of `schema.py`.

    A nested name such as `OpDef.ArgDef` follows its owner in the tables. A name in a field is the package's own, or
    else one of `schema.py`.
    """
    name = f"timberframe/{package}.proto"
    file = descriptor_pb2.FileDescriptorProto(name=name, package=package, syntax="proto3")
    if package != PACKAGE:
        file.dependency.append(f"timberframe/{PACKAGE}.proto")
    _added[package] = messages, enums
    built: dict[str, Any] = {}
    for name, text in messages.items():
        owner, _, short = name.rpartition(".")
        built[name] = built[owner].nested_type.add(name=short) if owner else file.message_type.add(name=name)
        _add_fields(built[name], name, text, package)
    for name, values in enums.items():
        owner, _, short = name.rpartition(".")
        enum = built[owner].enum_type.add(name=short) if owner else file.enum_type.add(name=name)
        for label, number in values.items():
            enum.value.add(name=label, number=number)
    _pool.Add(file)


add_messages(PACKAGE, MESSAGES, ENUMS)


def message(name: str, package: str = PACKAGE) -> Any:
    """Returns the class of a message, such as `GraphDef` or `OpDef.ArgDef`."""
    return _class(_pool.FindMessageTypeByName(f"{package}.{name}"))


def _class(descriptor: Any) -> Any:
    """Returns the class of a message, with its nested ones as attributes, which protobuf in pure Python leaves out."""
    made = message_factory.GetMessageClass(descriptor)
    for nested in descriptor.nested_types:
        if not hasattr(made, nested.name):
            setattr(made, nested.name, _class(nested))
    return made
