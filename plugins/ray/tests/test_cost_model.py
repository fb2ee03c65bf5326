"""The cost model of docs/scaling.md says what benchmarks/results has measured, within a fifth."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
CORES = 2
"""Of the machine that results are of."""
BYTES = 2_700_000
"""Of the gradients in the steps of scaling.py."""
MEDIAN = 1


@pytest.fixture(scope="module")
def model() -> ModuleType:
    spec = importlib.util.spec_from_file_location("cost_model", BENCHMARKS / "cost_model.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made  # where dataclasses look for it
    spec.loader.exec_module(made)
    return made


def results(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((BENCHMARKS / "results" / f"{name}.json").read_text())
    return found


def fifth(measured: float) -> Any:
    return pytest.approx(measured, rel=0.2)


def test_all_reduce_in_shared_memory(model: ModuleType) -> None:
    for line in results("all-reduce"):
        said = model.all_reduce_in_memory(line["workers"], line["bytes"], CORES)
        assert 1e3 * said == fifth(line["memory"]["median"])


@pytest.mark.parametrize(("name", "compute"), [("20ms", 0.02), ("100ms", 0.1)])
def test_data_parallel_steps_of_processes_that_share_cores(model: ModuleType, name: str, compute: float) -> None:
    alone, *more = results(name)
    training = model.Training(compute, BYTES, host=alone["processor"])
    for line in (alone, *more):
        said = model.data_parallel_on_one_machine(training, line["workers"], CORES)
        assert said == fifth(line["steps"][MEDIAN])


def test_a_parameter_server_on_one_machine(model: ModuleType) -> None:
    lines = results("parameter-server")
    host = sum(lines[0]["processor"])
    for line in lines:
        said = model.parameter_server_on_one_machine(
            model.Training(line["forward"], line["bytes"], host=host), line["workers"], CORES
        )
        assert said == fifth(line["steps"][MEDIAN])


def test_pipelines(model: ModuleType) -> None:
    for line in results("pipelines"):
        said = model.pipeline(line["whole"], line["stages"], line["microbatches"])
        assert said == fifth(line["seconds"])
