"""Sessions that leave a plugin out have nothing of it, whatever other sessions of the process have loaded."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.plugin import loader
from timberframe_sdk import KernelDef, KernelNode, hookimpl
from timberframe_sdk.testing.installed import installed_plugin
from timberframe_sdk.testing.loaded import loaded_plugin

WITHOUT = tf.SessionConfig(plugins=["-extra"])
HALF = np.eye(3) / 2
CPU = "/device:CPU:0"


def wrong(node: KernelNode) -> Callable[..., None]:
    """Returns a kernel that is easily distinguished from a right one."""
    return lambda *arrays: arrays[-1].fill(7)


KERNELS = [
    KernelDef("MatMul", "CPU", wrong, priority=9),
    KernelDef("Softsign", "CPU", wrong),  # the CPU's is generated, where nobody gives one
    KernelDef("Cos", "EXTRA", wrong),
]
FUNCTIONS = {"MatMul": lambda x: tf.matmul(x, x), "Softsign": tf.nn.softsign}


@pytest.fixture(autouse=True, scope="module")
def extra() -> Iterator[None]:
    """A plugin that another session uses already."""
    module = types.SimpleNamespace(timberframe_kernels=hookimpl(lambda: KERNELS))
    with loaded_plugin("extra", module), tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        x = tf.placeholder(tf.float32, [3, 3])
        for function in FUNCTIONS.values():
            with tf.device(CPU):
                y = function(x)
            assert session.run(y, {x: HALF})[0, 0] == 7
        yield


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default() as graph, tf.device(CPU), tf.Session(graph=graph, config=WITHOUT) as session:
        yield session


@pytest.mark.parametrize(("op", "expected"), [("MatMul", 0.25), ("Softsign", 1 / 3)])
def test_its_kernels_are_not_used(op: str, expected: float, session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [3, 3])
    np.testing.assert_allclose(session.run(FUNCTIONS[op](x), {x: HALF})[0, 0], expected, rtol=1e-6)


def test_explain_does_not_name_it(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [3, 3])
    assert "extra" not in str(session.explain(tf.matmul(x, x), {x: HALF}))


def test_errors_do_not_name_its_kernels(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [3, 3])
    y = session.graph.apply("MatMul", [x, x], {"T": tf.float32, "_kernel": "missing"}).outputs[0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="no kernel has the label 'missing'") as error:
        session.run(y, {x: HALF})
    assert "wrong" not in str(error.value)


def test_options_of_its_device_types_are_refused() -> None:
    config = tf.SessionConfig(plugins=["-extra"], memory_limit={"EXTRA": 1000})
    with pytest.raises(tf.errors.InvalidArgumentError, match="memory_limit names EXTRA; the device types are"):
        tf.Session(config=config)


def test_why_it_has_no_device_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader.registry.plugins["extra"], "device_failures", [ValueError("no such board")])
    with tf.Graph().as_default() as graph, tf.device("/device:EXTRA:0"):
        y = tf.placeholder(tf.float32, [3]) + 1
    config = tf.SessionConfig(plugins=["-extra"], allow_soft_placement=False)
    with tf.Session(graph=graph, config=config) as strict, pytest.raises(tf.errors.InvalidArgumentError) as error:
        strict.explain(y)
    assert "no such board" not in str(error.value)


def why_not_extra(plugins: list[str] | None) -> str:
    with tf.Graph().as_default() as graph, tf.device("/device:EXTRA:0"):
        y = tf.placeholder(tf.float32, [3]) + 1
    with tf.Session(graph=graph, config=tf.SessionConfig(plugins=plugins)) as session:
        with pytest.raises(tf.errors.InvalidArgumentError) as error:
            session.explain(y)
        return str(error.value)


def test_an_error_for_its_device_says_that_the_settings_leave_it_out() -> None:
    assert "; plugin extra is left out by SessionConfig.plugins; " in why_not_extra(["-extra"])


def test_an_error_for_its_device_says_that_the_environment_leaves_it_out(monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.environ.get(loader.SELECTION_VARIABLE, "")
    value = ",".join(filter(None, [before, "-extra"]))
    monkeypatch.setenv(loader.SELECTION_VARIABLE, value)
    assert f"; plugin extra is left out by {loader.SELECTION_VARIABLE}={value}; " in why_not_extra(None)


def test_an_error_for_a_device_of_a_plugin_that_is_used_says_nothing_of_the_kind() -> None:
    assert "left out" not in why_not_extra(None)


def test_a_session_made_before_a_plugin_is_loaded_stays_without_it() -> None:
    kernels = [KernelDef("MatMul", "CPU", wrong, priority=99)]
    config = tf.SessionConfig(plugins=["-extra", "-late"])
    with tf.Graph().as_default() as graph, tf.device(CPU), tf.Session(graph=graph, config=config) as session:
        x = tf.placeholder(tf.float32, [3, 3])
        with loaded_plugin("late", types.SimpleNamespace(timberframe_kernels=hookimpl(lambda: kernels))):
            assert session.run(tf.matmul(x, x), {x: np.eye(3)})[0, 0] == 1


HOST_OP = """
import numpy as np
from timberframe_sdk import define_op, host_op
define_op("Extra>Answer", outputs=["y: float"], doc="42.", shape=lambda c: [()], on_host=True)

@host_op("Extra>Answer")
def answer(call):
    return [np.float32(42)]
"""
PROGRAM = """
import timberframe as tf
from timberframe_core.graph.apply import apply_op
with tf.Session() as session:  # loads the plugin
    y = apply_op("Extra>Answer", [])
    print(session.run(y))
with tf.Session(config=tf.SessionConfig(plugins=["-answers"])) as session:
    session.run(y)
"""


@pytest.mark.slow
def test_its_host_ops_are_not_used(tmp_path: Path) -> None:
    (tmp_path / "extra_answers.py").write_text(HOST_OP)
    with installed_plugin(tmp_path, "answers", "extra_answers"):
        found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=100)
    assert found.stdout.strip() == "42.0"
    assert "its host op is of plugin 'answers', which this session leaves out" in found.stderr
