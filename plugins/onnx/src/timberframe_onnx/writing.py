"""Writes graphs and SavedModels to files of ONNX."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from timberframe_core.graph.operation import Tensor
from timberframe_onnx.exporting.export import DEFAULT_OPSET, export_model


def export(
    fetches: Any,
    path: str | os.PathLike[str],
    opset: int = DEFAULT_OPSET,
    inputs: Mapping[str, Tensor] | None = None,
    session: Any = None,
) -> None:
    """Writes what `fetches` need to a file, as `export_model` makes it.

    fetches: also the folder of a SavedModel, whose signature "serving_default" is written; that needs the front end.
    """
    if isinstance(fetches, str | os.PathLike):
        export_saved_model: Any = import_module("timberframe_onnx.saved_models").export_saved_model
        model = export_saved_model(fetches, opset)
    else:
        model = export_model(fetches, opset, inputs, session)
    with open(path, "wb") as file:
        file.write(model.SerializeToString())
