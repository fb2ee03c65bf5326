"""Reads models from files, bytes and messages, and checks what the rest relies on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeAlias

import onnx
from google.protobuf.message import DecodeError

from timberframe_onnx.errors import InvalidModelError

Source: TypeAlias = "str | os.PathLike[str] | bytes | onnx.ModelProto"
NEWEST_OPSETS = {"": onnx.defs.onnx_opset_version(), "ai.onnx.ml": onnx.defs.onnx_ml_opset_version()}


def read(source: Source) -> tuple[onnx.ModelProto, Path | None]:
    """Returns a model's message, and the folder where its external data may lie, None where that is not known."""
    folder = None
    if isinstance(source, onnx.ModelProto):
        model = source
    else:
        if isinstance(source, bytes):
            data = source
        else:
            path = Path(source)
            folder = path.parent
            data = path.read_bytes()
        model = onnx.ModelProto()
        try:
            model.ParseFromString(data)
        except DecodeError as e:
            raise InvalidModelError(f"a file of {len(data)} bytes is no ONNX model: {e}") from e
    _check(model)
    return model, folder


def _check(model: onnx.ModelProto) -> None:
    """Raises InvalidModelError for a message that is no model, or of opsets that the installed onnx does not know."""
    if not model.HasField("graph") or not model.ir_version:
        raise InvalidModelError("the message has no graph or no ir_version; an ONNX model has both")
    if model.graph.name == "" and not model.graph.node and not model.graph.output:
        raise InvalidModelError("the model's graph is empty; it must have outputs")
    for entry in model.opset_import:
        domain = "" if entry.domain == "ai.onnx" else entry.domain
        newest = NEWEST_OPSETS.get(domain)
        if newest is not None and not 1 <= entry.version <= newest:
            raise InvalidModelError(
                f"the model is of opset {entry.version} of domain '{domain or 'ai.onnx'}'; 1 to {newest} are known"
            )


def opsets_of(model: onnx.ModelProto) -> dict[str, int]:
    """Returns the opset of each domain that a model imports; opset 1 of the default domain where it names none."""
    found = {("" if o.domain == "ai.onnx" else o.domain): int(o.version) for o in model.opset_import}
    return found or {"": 1}
