"""A SavedModel, or an ONNX file, in Triton's Python backend.

Put this file into `MODEL/1/model.py` of Triton's repository and the model beside it, into `MODEL/1/model/`; install
timberframe-serving and timberframe-cpu in Triton's Python. The parameter `signature` of config.pbtxt chooses another
signature than `serving_default`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as triton

from timberframe_core.dtypes import string
from timberframe_core.errors import OpError
from timberframe_serving.models import LoadSettings, load_model
from timberframe_serving.servable import Servable


class TritonPythonModel:
    """The model that Triton's Python backend loads and asks."""

    def initialize(self, args: Mapping[str, str]) -> None:
        """Loads the model beside this file."""
        parameters = json.loads(args["model_config"]).get("parameters", {})
        chosen = parameters.get("signature", {}).get("string_value", "")
        folder = Path(args["model_repository"]) / args["model_version"] / "model"
        loaded = load_model(folder, LoadSettings())
        self._close = loaded.close
        self._name = args["model_name"]
        self._signature = Servable(self._name, int(args["model_version"]), folder, loaded).signature(chosen)

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        """Answers each request with the outputs, or with the model's error."""
        return [self._answer(request) for request in requests]

    def _answer(self, request: Any) -> Any:
        try:
            given = {t.name(): t.as_numpy() for t in request.inputs()}
            arrays = self._signature.arranged(given, self._name)
            outputs = self._signature.call(*arrays)
        except (OpError, ValueError) as error:
            return triton.InferenceResponse([], triton.TritonError(str(error)))
        made = []
        for port, output in zip(self._signature.outputs, outputs, strict=True):
            array = np.asarray(output)
            made.append(triton.Tensor(port.name, array if port.dtype != string else array.astype(object)))
        return triton.InferenceResponse(made)

    def finalize(self) -> None:
        """Frees the model."""
        self._close()
