"""The protobuf messages of GraphDef, on TensorFlow's wire and in its text format.

They live in a descriptor pool of their own: in the process-wide pool they would clash with TensorFlow's when both are
imported. A message of either side is carried over by its bytes.
"""

from __future__ import annotations

import re
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.message import DecodeError

from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
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


GraphDef: Any = message("GraphDef")
NodeDef: Any = message("NodeDef")
AttrValue: Any = message("AttrValue")
NameAttrList: Any = message("NameAttrList")
TensorProto: Any = message("TensorProto")
TensorShapeProto: Any = message("TensorShapeProto")
VersionDef: Any = message("VersionDef")
FunctionDefLibrary: Any = message("FunctionDefLibrary")
FunctionDef: Any = message("FunctionDef")
GradientDef: Any = message("GradientDef")
OpDefMessage: Any = message("OpDef")
OpList: Any = message("OpList")
ConfigProto: Any = message("ConfigProto")
GPUOptions: Any = message("GPUOptions")
GraphOptions: Any = message("GraphOptions")
OptimizerOptions: Any = message("OptimizerOptions")
RewriterConfig: Any = message("RewriterConfig")
MetaGraphDef: Any = message("MetaGraphDef")
CollectionDef: Any = message("CollectionDef")
SignatureDef: Any = message("SignatureDef")
TensorInfo: Any = message("TensorInfo")
SaverDef: Any = message("SaverDef")
SavedModel: Any = message("SavedModel")
BundleHeaderProto: Any = message("BundleHeaderProto")
BundleEntryProto: Any = message("BundleEntryProto")
VariableDef: Any = message("VariableDef")
CheckpointState: Any = message("CheckpointState")
RunOptionsMessage: Any = message("RunOptions")


def parse_text(data: bytes, kind: Any, what: str) -> Any:
    """The message of class `kind` that protobuf's text form says; InvalidArgumentError where it is no such text."""
    try:
        return text_format.Parse(data.decode(), kind())
    except (UnicodeDecodeError, text_format.ParseError, RecursionError) as error:
        raise InvalidArgumentError(
            f"{what}: is no {kind.DESCRIPTOR.name} in text form ({error}); it is damaged or another file"
        ) from None


def as_message(value: Any, kind: Any, what: str) -> Any:
    """`value` as a message of class `kind`.

    value: such a message, TensorFlow's own message of the same name, or serialised bytes. Raises InvalidArgumentError
    for anything else and for bytes that do not parse.
    """
    if isinstance(value, kind):
        return value
    descriptor = getattr(value, "DESCRIPTOR", None)
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
    elif descriptor is not None and descriptor.full_name == kind.DESCRIPTOR.full_name:
        data = value.SerializePartialToString()
    else:
        raise InvalidTypeError(f"{what}: got {type(value).__name__}; it must be a {kind.DESCRIPTOR.name} or its bytes")
    result = kind()
    try:
        result.ParseFromString(data)
    except DecodeError as error:
        raise InvalidArgumentError(
            f"{what}: {len(data)} bytes do not parse as {kind.DESCRIPTOR.name} ({error}); it is damaged or truncated"
        ) from error
    return result
