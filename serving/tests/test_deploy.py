"""The files for containers, KServe and Triton, as far as they can be tried without those."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from timberframe_serving import flags

DEPLOY = Path(__file__).parents[1] / "deploy"


def test_the_container_gives_flags_that_there_are() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    given = [json.loads(found) for found in re.findall(r"^(?:ENTRYPOINT|CMD) (\[.*\])$", text, re.MULTILINE)]
    entry, command = given
    assert entry[:3] == ["python", "-m", "timberframe_serving"]
    assert flags.parse([*entry[3:], *command]).rest_api_port == 8501


def test_the_runtime_of_kserve_gives_flags_that_there_are() -> None:
    yaml = pytest.importorskip("yaml")
    (container,) = yaml.safe_load((DEPLOY / "kserve-runtime.yaml").read_text())["spec"]["containers"]
    found = flags.parse(container["args"])
    assert (found.rest_api_port, found.port) == (8080, 9000)
    assert found.rest_api_port == container["ports"][0]["containerPort"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"


class Tensor:
    """Triton's tensor, as far as a model uses it."""

    def __init__(self, name: str, array: Any) -> None:
        self._name, self._array = name, array

    def name(self) -> str:
        return self._name

    def as_numpy(self) -> Any:
        return self._array


def test_a_model_in_tritons_python_backend(helpers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    helpers.save(tmp_path / "1" / "model", 2.0)
    triton: Any = types.ModuleType("triton_python_backend_utils")
    triton.Tensor, triton.TritonError = Tensor, str
    triton.InferenceResponse = lambda tensors, error=None: types.SimpleNamespace(tensors=tensors, error=error)
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", triton)
    spec = importlib.util.spec_from_file_location("triton_model", DEPLOY / "triton" / "model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = module.TritonPythonModel()
    model.initialize(
        {"model_config": "{}", "model_repository": str(tmp_path), "model_version": "1", "model_name": "double"}
    )
    asked = [types.SimpleNamespace(inputs=lambda a=a: [Tensor("x", np.float32(a))]) for a in ([[1, 2]], [1])]
    good, bad = model.execute(asked)
    assert good.tensors[0].name() == "y"
    assert good.tensors[0].as_numpy().tolist() == [[2.0, 4.0]]
    assert "input 'x' has shape (1,); (?, 2) is required" in bad.error
    model.finalize()
