"""Protobuf's messages under their public names, each made when `timberframe/__init__.py` first looks it up here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from timberframe_core.graphdef import messages as _messages

if TYPE_CHECKING:
    from timberframe_core.graphdef.messages import (
        AttrValue,
        CheckpointState,
        ConfigProto,
        Event,
        GPUOptions,
        GraphDef,
        GraphOptions,
        HistogramProto,
        MetaGraphDef,
        NameAttrList,
        NodeDef,
        OpList,
        OptimizerOptions,
        SavedModel,
        SessionLog,
        SignatureDef,
        Summary,
        SummaryMetadata,
        TensorInfo,
        TensorProto,
        TensorShapeProto,
        VariableDef,
    )

__all__ = [
    "AttrValue", "CheckpointState", "ConfigProto", "Event", "GPUOptions", "GraphDef", "GraphOptions", "HistogramProto",
    "MetaGraphDef", "NameAttrList", "NodeDef", "OpList", "OptimizerOptions", "SavedModel", "SessionLog", "SignatureDef",
    "Summary", "SummaryMetadata", "TensorInfo", "TensorProto", "TensorShapeProto", "VariableDef",
]  # fmt: skip

if not TYPE_CHECKING:  # else every name would be an attribute

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(_messages, name)
