"""The tool: what it prints, and what it returns to the shell."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from building import model
from onnx import helper

import timberframe as tf
import timberframe_onnx
from timberframe_onnx.tool import main

TWO = model(
    [helper.make_node("Neg", ["x"], ["a"], "first"), helper.make_node("Exp", ["a"], ["y"], "second")],
    ["x: float[n,2]"],
    ["y: float[n,2]"],
)


@pytest.fixture
def two(tmp_path: Path) -> str:
    """A file of a model with two nodes."""
    path = tmp_path / "two.onnx"
    onnx.save(TWO, path)
    return str(path)


def test_info_says_what_a_model_has(two: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", two]) == 0
    printed = capsys.readouterr().out
    assert "opsets: ai.onnx 21\nops: Exp 1, Neg 1\n" in printed
    assert "signature: (x: float[n,2]) -> (y: float[n,2])" in printed


def test_info_names_what_is_not_supported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = model([helper.make_node("Wish", ["x"], ["y"], domain="acme")], ["x: float[2]"], ["y: float[2]"])
    made.opset_import.append(helper.make_opsetid("acme", 1))
    onnx.save(made, tmp_path / "wish.onnx")
    assert main(["info", str(tmp_path / "wish.onnx")]) == 1
    assert "acme:Wish (opset 1) 'y': no translator has this op" in capsys.readouterr().out


def test_run_takes_values_of_files(two: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "x.npy", np.zeros((3, 2), np.float32))
    assert main(["run", two, "--input", f"x={tmp_path / 'x.npy'}"]) == 0
    assert "y: float32[3, 2] from 1 to 1, mean 1" in capsys.readouterr().out


@pytest.mark.parametrize(("wrong", "status"), [("", 0), ("a", 1)])
def test_compare_names_the_first_node_that_differs(
    two: str, wrong: str, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Session:
        def __init__(self, data: bytes, *_: Any, **__: Any) -> None:
            self.model = timberframe_onnx.load(data)

        def run(self, names: list[str], feeds: dict[str, Any]) -> list[Any]:
            return [value + (name == wrong) for name, value in self.model.run(feeds).items()]

    class Options(SimpleNamespace):
        def add_session_config_entry(self, name: str, value: str) -> None: ...

    levels = SimpleNamespace(ORT_DISABLE_ALL=0)
    fake = SimpleNamespace(InferenceSession=Session, SessionOptions=Options, GraphOptimizationLevel=levels)
    monkeypatch.setitem(sys.modules, "onnxruntime", fake)
    assert main(["compare", two]) == status
    assert ("first difference: Neg 'first', output 'a'" in capsys.readouterr().out) == bool(wrong)


def test_convert_writes_another_opset(two: str, tmp_path: Path) -> None:
    assert main(["convert", two, str(tmp_path / "new.onnx"), "--opset", "23"]) == 0
    assert onnx.load(tmp_path / "new.onnx").opset_import[0].version == 23


def test_export_writes_a_saved_model(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        v = tf.get_variable("v", initializer=[1.0, 2.0])
        session.run(v.initializer)
        tf.saved_model.simple_save(session, str(tmp_path / "saved"), {"a": x}, {"b": x * v})
    assert main(["export", str(tmp_path / "saved"), str(tmp_path / "made.onnx")]) == 0
    found = timberframe_onnx.load(tmp_path / "made.onnx").run({"a": np.ones((1, 2), np.float32)})["b"]
    np.testing.assert_array_equal(found, [[1, 2]])


def test_a_file_that_is_no_model_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "no.onnx").write_bytes(b"\xff\xfe")
    assert main(["run", str(tmp_path / "no.onnx")]) == 1
    assert "is no ONNX model" in capsys.readouterr().err
