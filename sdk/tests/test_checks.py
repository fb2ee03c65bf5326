"""SessionConfig.memory_checks and shadow_device: they find what kernels do wrong, and accept those that are right."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.ops.definition import registry
from timberframe_core.runtime.agreement import first_divergence
from timberframe_sdk import Deferred, KernelDef, Memory, hookimpl
from timberframe_sdk.numpy_device import NumpyDevice
from timberframe_sdk.testing.loaded import loaded_plugin

FOLDER = Path(__file__).parent
X = np.arange(1, 7, dtype=np.float32)
CHECKED = "/device:CHECKED:0"


class CheckedDevice(NumpyDevice):
    type, priority = "CHECKED", 0


def outside(node: Any) -> Any:
    def launch(x: np.ndarray, out: np.ndarray) -> None:
        np.square(x, out=out)
        ctypes.memset(out.ctypes.data + out.nbytes, 0, 4)

    return launch


def wrong(node: Any) -> Any:
    def launch(x: np.ndarray, out: np.ndarray) -> None:
        np.exp(x, out=out)
        out[3] *= np.float32(1.001)

    return launch


KERNELS = [
    KernelDef("Square", "CHECKED", outside),
    KernelDef("Exp", "CHECKED", wrong),
    KernelDef("Neg", "CHECKED", lambda node: np.negative, inplace=((0, 0),)),
    KernelDef("AddV2", "CHECKED", lambda node: np.add, inplace=((0, 0), (0, 1))),
    KernelDef("Tanh", "CHECKED", lambda node: lambda x, out: np.copyto(out, np.tanh(x.astype(np.float64)))),
]


@pytest.fixture(scope="module", autouse=True)
def device() -> Iterator[None]:
    plugin = types.SimpleNamespace(
        timberframe_devices=hookimpl(lambda config: [CheckedDevice()]), timberframe_kernels=hookimpl(lambda: KERNELS)
    )
    with loaded_plugin("checked", plugin):
        yield


def run(build: Any, runs: int = 1, on: str = CHECKED, options: tf.RunOptions | None = None, **settings: Any) -> Any:
    with tf.Graph().as_default(), tf.device(on):
        x = tf.placeholder(tf.float32, [None], name="x")
        y = build(x)
        with tf.Session(config=tf.SessionConfig(**settings)) as session:
            return [session.run(y, {x: X}, options) for _ in range(runs)][-1]


@pytest.mark.parametrize("checks", ["zones", "start"])
def test_memory_checks_tell_writes_outside_a_tensor(checks: str) -> None:
    with pytest.raises(tf.errors.InternalError, match="4 bytes after it were written"):
        run(tf.square, memory_checks=checks)


@pytest.mark.parametrize("checks", ["zones", "start"])
def test_memory_checks_name_the_node_and_line_of_a_write_outside_an_intermediate_tensor(checks: str) -> None:
    words = r"Square 'inner': .*4 bytes after it were written.*  \[/device:CHECKED:0, .*test_checks\.py:\d+\]"
    with pytest.raises(tf.errors.InternalError, match=words):
        run(lambda x: -(tf.square(x, name="inner") + x), memory_checks=checks)


@pytest.mark.parametrize("checks", ["zones", "start", "end"])
@pytest.mark.parametrize("on", [CHECKED, "/device:CPU:0"])
def test_memory_checks_leave_results_as_they_are(checks: str, on: str) -> None:
    np.testing.assert_array_equal(run(lambda x: -(x + x), runs=2, on=on, memory_checks=checks), -2 * X)


class LateDevice(NumpyDevice):
    """Launches return at once; what fails, fails when the host next waits for a marker."""

    type, priority, asynchronous = "LATE", 0, True

    def __init__(self) -> None:
        super().__init__(0)
        self.failure: Exception | None = None

    def marker(self) -> Any:
        return self

    def start_copy_out(self, a: np.ndarray) -> Any:
        return types.SimpleNamespace(done=lambda: True, result=lambda: a.copy())

    def done(self) -> bool:
        return False

    def result(self) -> None:
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure


def bad(x: np.ndarray) -> None:
    raise TypeError("bad arguments")


@pytest.fixture
def late() -> Iterator[None]:
    """A LateDevice whose Square fails."""
    device = LateDevice()

    def fails(node: Any) -> Any:
        def launch(x: np.ndarray, out: np.ndarray) -> None:
            try:
                bad(x)
            except TypeError as e:
                device.failure = e

        return launch

    kernels = [KernelDef("Square", "LATE", fails), KernelDef("Neg", "LATE", lambda node: np.negative)]
    plugin = types.SimpleNamespace(
        timberframe_devices=hookimpl(lambda config: [device]), timberframe_kernels=hookimpl(lambda: kernels)
    )
    with loaded_plugin("late", plugin):
        yield


def negated_square(x: tf.Tensor) -> tf.Tensor:
    return -tf.square(x, name="inner")


RAISED = r"TypeError: bad arguments \(raised in bad, test_checks\.py:\d+\)"
NAMED = rf"Square 'inner': {RAISED}  \[/device:LATE:0, .*test_checks\.py:\d+\]$"


@pytest.mark.parametrize("settings", [{"memory_checks": "zones"}, {"shadow_device": "cpu"}])
def test_checked_runs_name_the_node_whose_work_fails_late(settings: dict[str, str], late: None) -> None:
    with pytest.raises(tf.errors.UnknownError, match=NAMED):
        run(negated_square, on="/device:LATE:0", **settings)


def test_traced_runs_name_the_node_whose_work_fails_late(late: None) -> None:
    with pytest.raises(tf.errors.UnknownError, match=NAMED):
        run(negated_square, on="/device:LATE:0", options=tf.RunOptions(trace=True))


def test_other_runs_say_how_to_learn_the_node_whose_work_fails_late(late: None) -> None:
    words = rf"device /device:LATE:0 failed: {RAISED}; run with tf\.RunOptions\(trace=True\) to learn which node$"
    with pytest.raises(tf.errors.UnknownError, match=words):
        run(negated_square, on="/device:LATE:0")


class TellsLater(NumpyDevice):
    """Runs at once, and reports an exception of its own when its work is asked about."""

    type, priority, asynchronous = "TELLSLATER", 0, True

    def marker(self) -> Deferred:
        return Deferred(lambda: None)

    def start_copy_out(self, a: np.ndarray) -> Deferred:
        return Deferred(lambda: a)

    def compile(self, cluster: Any) -> Any:
        def run(inputs: Any, context: Any) -> list[Any]:
            context.late.add(self, Deferred(lambda: bad(X)), lambda _: None)
            return [X for _ in cluster.outputs]

        return types.SimpleNamespace(run=run, memory=Memory())


def test_an_exception_that_a_device_reports_late_names_the_device() -> None:
    kernels = [KernelDef("Square", "TELLSLATER", lambda node: np.square)]
    plugin = types.SimpleNamespace(
        timberframe_devices=hookimpl(lambda config: [TellsLater()]), timberframe_kernels=hookimpl(lambda: kernels)
    )
    words = rf"device /device:TELLSLATER:0 failed: {RAISED}; run with tf\.RunOptions"
    with loaded_plugin("tellslater", plugin), pytest.raises(tf.errors.UnknownError, match=words):
        run(tf.square, on="/device:TELLSLATER:0")


def test_an_update_of_a_variable_says_how_to_learn_the_node_whose_work_fails_late(late: None) -> None:
    def build(x: tf.Tensor) -> tf.Tensor:
        v = tf.Variable(tf.zeros([6]))
        with tf.control_dependencies([v.initializer]):
            return tf.assign(v, negated_square(x))

    with pytest.raises(tf.errors.UnknownError, match=r"device /device:LATE:0 failed: .*; run with tf\.RunOptions"):
        run(build, on="/device:LATE:0")


def test_a_shadow_tells_the_first_node_that_differs() -> None:
    words = (
        r"Exp 'e': output 0 on /device:CHECKED:0 differs from that on /device:CPU:0 in 1 of 6 elements, "
        r"first at \[3\]: 0\.018\d+, not 0\.018\d+; they may differ by .* \[/device:CHECKED:0, .*test_checks\.py:\d+\]"
    )
    with pytest.raises(tf.errors.InternalError, match=words):
        run(lambda x: tf.exp(-x, name="e") + 1.0, shadow_device="cpu")


@pytest.mark.slow
def test_a_shadow_saves_a_script_that_shows_the_difference() -> None:
    with pytest.raises(tf.errors.InternalError) as caught:
        run(tf.exp, shadow_device="cpu")
    found = re.search(r"`python (.*)` shows it again", str(caught.value))
    assert found is not None
    script = found[1]
    prelude = "import sys, types; sys.path.insert(0, 'tests'); import test_checks as t; import timberframe_sdk as sdk; "
    prelude += (
        "sdk.register_plugin('checked', types.SimpleNamespace("
        "timberframe_devices=sdk.hookimpl(lambda config: [t.CheckedDevice()]), "
        "timberframe_kernels=sdk.hookimpl(lambda: t.KERNELS))); "
    )
    program = f"{prelude}import runpy; runpy.run_path({script!r})".replace("'tests'", repr(str(FOLDER)))
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert re.search(r"/device:CHECKED:0 .*54\.65.*\n/device:CPU:0 .*54\.59", shown.stdout, re.DOTALL)


def test_a_shadow_accepts_what_the_op_allows() -> None:
    np.testing.assert_allclose(run(tf.tanh, runs=2, shadow_device="cpu"), np.tanh(X))


def test_a_shadow_looks_at_inputs_before_they_are_overwritten() -> None:
    np.testing.assert_array_equal(run(lambda x: tf.negative(-(x + x)) + x, shadow_device="/device:CPU:0"), 3 * X)


def test_variables_are_updated_under_a_shadow() -> None:
    with tf.Graph().as_default(), tf.device(CHECKED):
        v = tf.Variable(X)
        add = v.assign_add(X)
        with tf.Session(config=tf.SessionConfig(shadow_device="cpu", memory_checks="zones")) as session:
            session.run(v.initializer)
            for _ in range(2):
                session.run(add)
            np.testing.assert_array_equal(session.run(v), 3 * X)


def test_a_shadow_that_does_not_exist_is_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"shadow_device 'acme' does not exist; devices: "):
        run(tf.exp, shadow_device="acme")


def test_an_unknown_memory_check_is_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"memory_checks is 'all'; zones, start, end or nothing"):
        tf.SessionConfig(memory_checks="all")


def divergence(op: str, inputs: list[np.ndarray], got: np.ndarray, wanted: np.ndarray, **attrs: Any) -> Any:
    return first_divergence(registry.get(op), {"T": tf.as_dtype(inputs[0].dtype), **attrs}, inputs, [got], [wanted])


def test_sums_may_differ_by_their_order() -> None:
    a = np.full((1, 1000), 0.1, np.float32)
    b = np.full((1000, 1), 0.1, np.float32)
    product, attrs = a @ b, {"transpose_a": False, "transpose_b": False}
    assert divergence("MatMul", [a, b], product * np.float32(1 + 1e-5), product, **attrs) is None
    assert divergence("MatMul", [a, b], product * np.float32(1 + 1e-3), product, **attrs) is not None


def test_sums_may_differ_by_the_products_that_are_too_small_for_the_dtype() -> None:
    a, b = np.full((1, 64), 1e-23, np.float32), np.full((64, 1), 1e-23, np.float32)
    exact = np.array([[64e-46]], np.float32)  # products that are rounded before they are added are all zero
    assert divergence("MatMul", [a, b], 0 * exact, exact, transpose_a=False, transpose_b=False) is None
    assert divergence("MatMul", [a, b], 99 * exact, exact, transpose_a=False, transpose_b=False) is not None


def test_sums_that_overflow_in_one_order_may_be_infinite() -> None:
    a, b = np.array([[3e38, 3e38, -3e38]], np.float32), np.ones((3, 1), np.float32)
    infinite, finite = np.array([[np.inf]], np.float32), np.array([[3e38]], np.float32)
    assert divergence("MatMul", [a, b], infinite, finite, transpose_a=False, transpose_b=False) is None
    assert divergence("MatMul", [a / 9, b], infinite, finite / 9, transpose_a=False, transpose_b=False) is not None


def test_exact_results_must_be_equal() -> None:
    found = divergence("AddV2", [X, X], np.nextafter(2 * X, np.float32(99)), 2 * X)
    assert found is not None
    assert (found.differing, found.place, found.allowed) == (6, (0,), 0.0)


def test_any_nan_equals_any_other() -> None:
    x = np.array([np.nan, 1], np.float32)
    assert divergence("AddV2", [x, x], -x * -2, 2 * x) is None
