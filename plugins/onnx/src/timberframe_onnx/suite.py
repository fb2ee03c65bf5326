"""ONNX's own tests of backends, run on a device of Timberframe by ONNX's own runner.

`FAILING` has the tests that fail on the CPU, each with the reason; all others pass.
"""

from __future__ import annotations

import json
import unittest
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import onnx
from onnx.backend.test.loader import load_model_tests

from timberframe_onnx.backend import TimberframeRep
from timberframe_onnx.elements import name_of
from timberframe_onnx.model import Model, load
from timberframe_onnx.ports import port_of

FAILING: dict[str, str] = json.loads(files("timberframe_onnx").joinpath("data/failing.json").read_text())
"""By the name of a test, as "test_bernoulli", why it fails on the CPU."""

FAMILIES = {
    "node": "Node",
    "real": "Real",
    "simple": "Simple",
    "pytorch-converted": "PyTorchConverted",
    "pytorch-operator": "PyTorchOperator",
}
"""ONNX's kinds of tests, and what its runner names them."""


@dataclass(frozen=True)
class Case:
    """One test. family: "Node", "Real", "Simple", "PyTorchConverted" or "PyTorchOperator", as ONNX has them.

    op: of a test of "Node" the op that it is about; else the family. dtypes: of the inputs, each once, in ONNX's names.
    """

    name: str
    family: str
    op: str
    dtypes: tuple[str, ...]
    tests: type[unittest.TestCase]
    method: str

    def run(self) -> None:
        """Runs the test; raises whatever it raises: AssertionError for wrong results, SkipTest where it is left out."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            getattr(self.tests(self.method), self.method)()

    def error(self) -> str | None:
        """Runs the test; returns None where it passes, else what it raised."""
        try:
            self.run()
        except Exception as e:
            return f"{type(e).__name__}: {e}"
        return None


class _Backend:
    """A backend as ONNX's runner asks for one: its tests for "CPU" run on whatever `prepare` chooses."""

    def __init__(self, load_model: Callable[[onnx.ModelProto], Model]) -> None:
        self._load = load_model

    def supports_device(self, device: str) -> bool:
        """Returns whether its tests are made: those of one device, of the two that ONNX has, are enough."""
        return device == "CPU"

    def prepare(self, model: onnx.ModelProto, device: str) -> TimberframeRep:
        """Returns a model that is ready to run."""
        return TimberframeRep(self._load(model))


def cases(load_model: Callable[[onnx.ModelProto], Model] = load) -> list[Case]:
    """Returns all tests in the order of their names. Making them takes ten seconds: ONNX computes what they expect.

    load_model: makes a model that runs; it decides where.
    """
    from onnx.backend.test.runner import Runner

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made: dict[str, Any] = Runner(_Backend(load_model), __name__).test_cases
    found = [case for kind, family in FAMILIES.items() for case in _of_family(kind, family, made)]
    return sorted(found, key=lambda case: case.name)


def _of_family(kind: str, family: str, made: dict[str, Any]) -> Iterator[Case]:
    tests = {test.name: test for test in load_model_tests(kind=kind)}
    for name, test in tests.items():
        model = test.model or _stored(test)
        op = _op_of(name, tests) if kind == "node" else family
        yield Case(name, family, op, _dtypes(model), made[f"OnnxBackend{family}ModelTest"], f"{name}_cpu")


def _stored(test: Any) -> onnx.ModelProto | None:
    """Returns the model of a test that lies in a folder of its own."""
    return onnx.load(f"{test.model_dir}/model.onnx") if test.model_dir else None


def _op_of(name: str, tests: dict[str, Any]) -> str:
    """Returns the op that a test of one node is about; that of a function's body is about the function."""
    original, _, _ = name.partition("_expanded")
    node = tests[original if original in tests else name].model.graph.node[0]
    return str(node.op_type)


def _dtypes(model: onnx.ModelProto | None) -> tuple[str, ...]:
    """Returns the element types of a model's inputs, each once; of a model that lies nowhere yet none."""
    inputs = [] if model is None else [port_of(info, "input") for info in model.graph.input]
    return tuple(dict.fromkeys(name_of(port.element).lower() for port in inputs))
