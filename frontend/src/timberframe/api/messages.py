"""Messages and settings under their public names."""

from __future__ import annotations

from timberframe_core.config import RunMetadata, RunOptions, SessionConfig
from timberframe_core.graphdef.messages import (
    AttrValue,
    CheckpointState,
    ConfigProto,
    GPUOptions,
    GraphDef,
    GraphOptions,
    MetaGraphDef,
    NameAttrList,
    NodeDef,
    OpList,
    OptimizerOptions,
    SavedModel,
    SignatureDef,
    TensorInfo,
    TensorProto,
    TensorShapeProto,
    VariableDef,
)

__all__ = [
    "AttrValue",
    "CheckpointState",
    "ConfigProto",
    "GPUOptions",
    "GraphDef",
    "GraphOptions",
    "MetaGraphDef",
    "NameAttrList",
    "NodeDef",
    "OpList",
    "OptimizerOptions",
    "RunMetadata",
    "RunOptions",
    "SavedModel",
    "SessionConfig",
    "SignatureDef",
    "TensorInfo",
    "TensorProto",
    "TensorShapeProto",
    "VariableDef",
]  # fmt: skip
