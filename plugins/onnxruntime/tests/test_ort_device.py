"""ONNX Runtime's CPU provider as a device: what users of it see."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import timberframe as tf
from timberframe_conformance.options import Options
from timberframe_conformance.reports.environment import environment
from timberframe_conformance.target import open_target
from timberframe_core.errors import InvalidArgumentError, NoKernelError
from timberframe_onnxruntime import device
from timberframe_onnxruntime.settings import settings_of
from timberframe_sdk.settings import CACHE_VARIABLE

X = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]], np.float32)


def config(**options: Any) -> tf.SessionConfig:
    return tf.SessionConfig(device_options={"ORT": {"hardware": "CPUExecutionProvider", **options}})


@pytest.fixture
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph, tf.device("/ort:0"):
        yield graph


def network() -> tuple[Any, Any]:
    x = tf.placeholder(tf.float32, [2, 3])
    w = tf.constant(np.linspace(-1, 1, 3 * 500, dtype=np.float32).reshape(3, 500))
    return x, tf.reduce_sum(tf.tanh(tf.matmul(x, w)), axis=1)


WANTED = np.tanh(X.astype(np.float64) @ np.linspace(-1, 1, 1500).reshape(3, 500)).sum(axis=1)


@pytest.mark.parametrize("weights", ["inputs", "initializers"])
@pytest.mark.parametrize("optimization", ["all", "none"])
def test_a_cluster_is_one_session(graph: tf.Graph, weights: str, optimization: str) -> None:
    x, y = network()
    with tf.Session(config=config(weights=weights, optimization=optimization)) as session:
        np.testing.assert_allclose(session.run(y, {x: X}), WANTED, rtol=1e-4, atol=1e-4)
        assert [s.device for s in session.explain(y, {x: X}).stages] == ["/device:ORT:0"]


def test_weights_that_are_initializers_follow_a_variable(graph: tf.Graph) -> None:
    x, w = tf.placeholder(tf.float32, [2, 3]), tf.Variable(np.ones((3, 1), np.float32))
    y, doubled = tf.matmul(x, w), w.assign(w * 2.0)
    with tf.Session(config=config(weights="initializers")) as session:
        session.run(w.initializer)
        first = session.run(y, {x: X})
        session.run(doubled)
        np.testing.assert_array_equal(session.run(y, {x: X}), 2 * first)


def test_attributes_name_the_provider_and_the_runtime(graph: tf.Graph) -> None:
    with tf.Session(config=config()) as session:
        device = next(d for d in session.list_devices() if "ORT" in d.name)
    assert device.name.endswith("/device:ORT:0")


def test_what_the_provider_refuses_is_named_as_onnx_names_it(graph: tf.Graph) -> None:
    x = tf.placeholder(tf.int16, [2, 3])
    with (
        tf.Session(config=config()) as session,
        pytest.raises(NoKernelError, match=re.escape("Could not find an implementation for Relu(14)")),
    ):
        session.run(tf.nn.relu(x), {x: X.astype(np.int16)})


def test_what_onnx_lacks_is_refused_when_nodes_are_placed(graph: tf.Graph) -> None:
    x = tf.placeholder(tf.float32, [2, 3])
    with (
        tf.Session(config=config()) as session,
        pytest.raises(NoKernelError, match="L2Loss has no form in ONNX that timberframe-onnx writes"),
    ):
        session.run(tf.nn.l2_loss(x), {x: X})


def test_loops_are_driven_from_outside_with_bodies_on_the_provider(graph: tf.Graph) -> None:
    x = tf.placeholder(tf.float32, [2, 3])
    _, y = tf.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, v * 2.0), [tf.constant(0), x])
    with tf.Session(config=config()) as session:
        np.testing.assert_array_equal(session.run(y, {x: X}), 8 * X)


def test_a_session_without_options_has_no_such_device() -> None:
    with tf.Session() as session:
        assert not [d for d in session.list_devices() if "ORT" in d.name]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"opset": "5"}, "device option opset is '5'; a whole number from 18 to"),
        ({"weights": "files"}, "device option weights is 'files'; one of 'inputs', 'initializers' is required"),
        ({"device_index": -1}, "device option device_index is -1; a whole number from 0"),
    ],
)
def test_a_wrong_option_is_refused(options: Mapping[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        settings_of({"options": {"ORT": options}})


def test_options_of_others_are_the_providers() -> None:
    found = settings_of({"options": {"ORT": {"hardware": "acme", "device": "npu", "opset": "18"}}})
    assert (found.opset, dict(found.provider_options)) == (18, {"device": "npu"})


def test_reports_have_the_versions_and_switches_of_onnxruntime() -> None:
    attributes = open_target(Options("ort:cpu")).device.attributes
    packages = environment(attributes.modules)["packages"]
    assert (packages["onnxruntime"], packages["onnx"]) == (onnxruntime.__version__, onnx.__version__)
    assert attributes.details["session.set_denormal_as_zero"] == "0"


def test_a_provider_that_compiles_nothing_keeps_nothing(graph: tf.Graph) -> None:
    x, y = network()
    for compile in ("cached", "cached_only"):
        with tf.Session(graph=graph, config=dataclasses.replace(config(), compile=compile)) as session:
            if compile == "cached":
                np.testing.assert_allclose(session.run(y, {x: X}), WANTED, rtol=1e-5)
            else:
                with pytest.raises(tf.errors.FailedPreconditionError, match="keeps it where its toolchain can"):
                    session.run(y, {x: X})


def test_what_a_provider_compiled_is_kept(graph: tf.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(device, "compiled_model", lambda text, *_: compiled.append(text) or text)
    x, y = network()  # an opset that no other test has: devices are made once for equal options
    for compile in ("cached", "cached_only"):
        with tf.Session(graph=graph, config=dataclasses.replace(config(opset=19), compile=compile)) as session:
            np.testing.assert_allclose(session.run(y, {x: X}), WANTED, rtol=1e-5)
    assert len(compiled) == 1


def test_what_was_compiled_of_another_model_is_not_used(
    graph: tf.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(device, "compiled_model", lambda text, *_: text)
    x, y = network()
    with tf.Session(graph=graph, config=dataclasses.replace(config(opset=20), compile="cached")) as session:
        session.run(y, {x: X})
    monkeypatch.setattr(device, "_digest", lambda model: b"another version of the exporter")
    with (
        tf.Session(graph=graph, config=dataclasses.replace(config(opset=20), compile="cached_only")) as session,
        pytest.raises(tf.errors.FailedPreconditionError, match="no compiled program"),
    ):
        session.run(y, {x: X})
