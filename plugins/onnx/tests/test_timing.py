"""`conformance bench --models FILE.onnx`: the inputs that a model gets, and what is said of files that cannot run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx.parser
import pytest

import timberframe as tf
from timberframe_core.errors import InvalidArgumentError
from timberframe_onnx.timing import read

MODEL = """
<ir_version: 10, opset_import: ["" : 21]>
twice (float[n, length] x, int64[n] steps) => (float[n, length] y, float[m, length] z)
{
  y = Add(x, x)
  shape = Shape(x)
  z = Expand(y, shape)
}"""
LIST = """
<ir_version: 10, opset_import: ["" : 21]>
first (seq(float[n]) x) => (float[n] y)
{
  zero = Constant <value = int64 {0}> ()
  y = SequenceAt(x, zero)
}"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "twice.onnx"
    onnx.save(onnx.parser.parse_model(MODEL), path)
    return path


def bench(*arguments: str, quick: bool = True) -> subprocess.CompletedProcess[str]:
    """Returns the command in a process of its own: it starts itself again."""
    command = [
        sys.executable,
        "-m",
        "timberframe_conformance.cli",
        "bench",
        *(["--quick"] if quick else []),
        *arguments,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_batch_is_the_first_open_dimension(file: Path) -> None:
    made = read(file, "/device:CPU:0", 3, {"length": 5}).model
    assert sorted(value.shape for value in made.feeds.values()) == [(3,), (3, 5)]
    with tf.Session(graph=made.graph) as session:
        assert [x.shape for x in session.run(made.fetches, dict(made.feeds))] == [(3, 5), (3, 5)]


def test_equal_calls_give_equal_inputs(file: Path) -> None:
    first, second = (read(file, "/device:CPU:0", 2, {"length": 4}).model.feeds.values() for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_an_open_dimension_needs_a_size(file: Path) -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"input x: float\[n,length\]: dimension 1 is open; --sizes length=N"
    ):
        read(file, "/device:CPU:0", 1, {})


def test_a_model_of_lists_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "first.onnx"
    onnx.save(onnx.parser.parse_model(LIST), path)
    with pytest.raises(InvalidArgumentError, match="inputs and outputs are tensors alone"):
        read(path, "/device:CPU:0", 1, {})


@pytest.mark.slow
def test_bench_measures_a_file(file: Path, tmp_path: Path) -> None:
    report = tmp_path / "bench.json"
    done = bench("--models", str(file), "--sizes=length=8", "--batch=1,2", f"--json={report}")
    assert done.returncode == 0, done.stderr
    rows = json.loads(report.read_text())["rows"]
    assert [(row["name"], row["batch"], "device" in row["times"]) for row in rows] == [
        ("twice", 1, True),
        ("twice", 2, True),
    ]


@pytest.mark.slow
def test_bench_profiles_a_file(file: Path) -> None:
    done = bench("--models", str(file), "--sizes=length=8", "--profile", quick=False)
    assert "Add" in done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "said"),
    [("twice.onnx", "--sizes length=N is required"), ("model.acme", "nobody reads .acme; known are .onnx")],
)
def test_bench_says_what_is_wrong_with_a_file(file: Path, name: str, said: str) -> None:
    done = bench("--models", str(file.with_name(name)))
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_sizes_without_files_are_refused() -> None:
    done = bench("--models", "--sizes=length=8")
    assert done.returncode == 2
    assert "--sizes without --models FILE: no effect" in done.stderr
