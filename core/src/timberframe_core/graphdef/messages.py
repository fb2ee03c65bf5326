"""The protobuf messages of GraphDef, on TensorFlow's wire and in its text format.

They live in a descriptor pool of their own: in the process-wide pool they would clash with TensorFlow's when both are
imported. A message of either side is carried over by its bytes.

Protobuf is imported, and the classes are made, when the first of them is looked up here. So a module that
`import timberframe` loads writes ``messages.GraphDef``; what it imported by name would be made at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from timberframe_core.errors import InvalidArgumentError, InvalidTypeError

GraphDef: Any
NodeDef: Any
AttrValue: Any
NameAttrList: Any
TensorProto: Any
TensorShapeProto: Any
VersionDef: Any
FunctionDefLibrary: Any
FunctionDef: Any
GradientDef: Any
OpDefMessage: Any
OpList: Any
ConfigProto: Any
ClusterDef: Any
ServerDef: Any
GPUOptions: Any
GraphOptions: Any
OptimizerOptions: Any
RewriterConfig: Any
MetaGraphDef: Any
CollectionDef: Any
SignatureDef: Any
TensorInfo: Any
SaverDef: Any
SavedModel: Any
BundleHeaderProto: Any
BundleEntryProto: Any
TensorSliceProto: Any
VariableDef: Any
CheckpointState: Any
TrackableObjectGraph: Any
QueueRunnerDef: Any
RunOptionsMessage: Any
RunMetadataMessage: Any
OpLogProto: Any
OpLogEntry: Any
Summary: Any
SummaryMetadata: Any
SummaryDescription: Any
HistogramProto: Any
SpriteMetadata: Any
ProjectorConfig: Any
EmbeddingInfo: Any
Event: Any
SessionLog: Any
TaggedRunMetadata: Any
Example: Any
SequenceExample: Any
Feature: Any
Features: Any
FeatureList: Any
FeatureLists: Any
BytesList: Any
FloatList: Any
Int64List: Any

_RENAMED = {  # classes of ours have the short names
    "OpDefMessage": "OpDef", "RunOptionsMessage": "RunOptions", "RunMetadataMessage": "RunMetadata",
}  # fmt: skip

if not TYPE_CHECKING:  # else every name would be an attribute

    def __getattr__(name: str) -> Any:
        if name not in __annotations__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from timberframe_core.graphdef.message_classes import message

        globals()[name] = made = message(_RENAMED.get(name, name))
        return made


def format_text(message: Any) -> str:
    """Returns a message in protobuf's text form."""
    from google.protobuf import text_format

    return text_format.MessageToString(message)


def parse_text(data: bytes, kind: Any, what: str) -> Any:
    """Returns the message of class `kind` that protobuf's text form says; InvalidArgumentError
    where it is no such text.
    """
    from google.protobuf import text_format

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
    from google.protobuf.message import DecodeError

    result = kind()
    try:
        result.ParseFromString(data)
    except DecodeError as error:
        raise InvalidArgumentError(
            f"{what}: {len(data)} bytes do not parse as {kind.DESCRIPTOR.name} ({error}); it is damaged or truncated"
        ) from error
    return result
