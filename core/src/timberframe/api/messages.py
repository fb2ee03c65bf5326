"""Messages and settings under their public names."""

from __future__ import annotations

from timberframe.config import RunMetadata, RunOptions, SessionConfig
from timberframe.graphdef.messages import (
    AttrValue,
    ConfigProto,
    GPUOptions,
    GraphDef,
    GraphOptions,
    NameAttrList,
    NodeDef,
    OpList,
    OptimizerOptions,
    TensorProto,
    TensorShapeProto,
)

__all__ = [
    "AttrValue", "ConfigProto", "GPUOptions", "GraphDef", "GraphOptions", "NameAttrList", "NodeDef", "OpList",
    "OptimizerOptions", "RunMetadata", "RunOptions", "SessionConfig", "TensorProto", "TensorShapeProto",
]  # fmt: skip
