"""ONNX's own tests of backends, run on a device of Timberframe by ONNX's own runner.

`FAILING` has the tests that fail on the CPU, each with the reason; all others pass.
"""

from __future__ import annotations

import json
import unittest
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from timberframe_onnx import backend

FAILING: dict[str, str] = json.loads(files("timberframe_onnx").joinpath("data/failing.json").read_text())
"""By the name of a test, as "test_bernoulli", why it fails on the CPU."""


@dataclass(frozen=True)
class Case:
    """One test. family: "Node", "Real", "Simple", "PyTorchConverted" or "PyTorchOperator", as ONNX has them."""

    name: str
    family: str
    method: str
    tests: type[unittest.TestCase]

    def error(self) -> str | None:
        """Runs the test; returns None where it passes, else the last line of its error."""
        result = unittest.TestResult()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.tests(self.method).run(result)
        if result.skipped:
            return f"skipped: {result.skipped[0][1]}"
        found = [text for _, text in result.errors + result.failures]
        return found[0].strip().splitlines()[-1] if found else None


def cases(device: str = "CPU") -> list[Case]:
    """Returns all tests for a device, as "CPU" or "CUDA", in the order of their names.

    Making them takes ten seconds: ONNX computes many when they are asked for. device: of ONNX's kinds, CPU and CUDA.
    """
    from onnx.backend.test.runner import Runner

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made: dict[str, Any] = Runner(backend, __name__).test_cases
    found = [case for name, tests in made.items() for case in _of_class(name, tests, f"_{device.lower()}")]
    return sorted(found, key=lambda case: case.name)


def _of_class(name: str, tests: type[unittest.TestCase], ending: str) -> Iterator[Case]:
    family = name.removeprefix("OnnxBackend").removesuffix("Test").removesuffix("Model")
    for method in dir(tests):
        if method.startswith("test_") and method.endswith(ending):
            yield Case(method.removesuffix(ending), family, method, tests)
