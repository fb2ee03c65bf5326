"""Ops whose kernel gives several variables new values, on devices that share nothing but the contract."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op
from timberframe_core.ops.definition.opdef import InferenceContext, define_op
from timberframe_core.shapes import Shape
from timberframe_sdk import KernelDef, hookimpl
from timberframe_sdk.testing.loaded import loaded_plugin, temporary_ops

DEVICES = ("CPU", "NUMPY")


def _shape(c: InferenceContext) -> list[Shape]:
    return []


_in_place: list[bool] = []


def _push(var: np.ndarray, speed: np.ndarray, force: np.ndarray, new_var: np.ndarray, new_speed: np.ndarray) -> None:
    if force[0] < 0:
        raise tf.errors.InvalidArgumentError("force is negative; it must not be")
    _in_place.append(np.shares_memory(var, new_var))
    np.add(speed, force, new_speed)
    np.add(var, new_speed, new_var)


class _Kernels:
    @hookimpl
    def timberframe_kernels(self) -> list[KernelDef]:
        pairs = ((0, 0), (1, 1))
        return [
            KernelDef(op, device, lambda node, run=run: run, inplace=pairs if op == "Test>Push" else ())
            for device in DEVICES
            for op, run in (("Test>Push", _push), ("Test>Twice", lambda x, y: np.multiply(x, 2, y)))
        ]


@pytest.fixture(autouse=True, scope="module")
def plugin() -> Iterator[None]:
    with temporary_ops(), loaded_plugin("test-updates", _Kernels()):
        define_op(
            "Test>Push",
            inputs=["var: resource", "speed: resource", "force: T"],
            attrs=["T: {float, double}"],
            doc="speed += force; var += speed.",
            shape=_shape,
            reference=lambda attrs, var, speed, force: (var + speed + force, speed + force),
            updates=("var", "speed"),
            stateful=True,
        )
        define_op(
            "Test>Twice",
            inputs=["resource: resource"],
            outputs=["y: dtype"],
            attrs=["dtype: type"],
            doc="Twice the variable.",
            shape=lambda c: [c.handles[0][1]],
            reference=lambda attrs, resource: resource * 2,
            reads=("resource",),
            stateful=True,
        )
        yield


@pytest.fixture(params=DEVICES)
def session(request: pytest.FixtureRequest) -> Iterator[tf.Session]:
    """A session whose graph is on one device."""
    with tf.Graph().as_default() as graph, tf.device(f"/device:{request.param}:0"), tf.Session(graph=graph) as session:
        yield session


def _variables(session: tf.Session) -> tuple[tf.Variable, tf.Variable]:
    var, speed = tf.Variable([1.0, 2.0], name="var"), tf.Variable([10.0, 20.0], name="speed")
    session.run(tf.global_variables_initializer())
    return var, speed


def test_one_op_updates_both_variables(session: tf.Session) -> None:
    var, speed = _variables(session)
    push = apply_op("Test>Push", [var.handle, speed.handle, [1.0, 1.0]])
    for _ in range(2):
        session.run(push)
    np.testing.assert_array_equal(session.run([var, speed]), [[24.0, 45.0], [12.0, 22.0]])


def test_a_read_before_the_update_sees_the_old_value_and_one_after_it_the_new(session: tf.Session) -> None:
    var, speed = _variables(session)
    before = var.read_value() * 1.0
    push = apply_op("Test>Push", [var.handle, speed.handle, [1.0, 1.0]])
    with tf.control_dependencies([push]):
        after = apply_op("Test>Twice", [var.handle], {"dtype": tf.float32})
    old, new, _ = session.run([before, after, push])
    np.testing.assert_array_equal(old, [1.0, 2.0])
    np.testing.assert_array_equal(new, [24.0, 46.0])


def test_two_updates_in_one_run_follow_each_other(session: tf.Session) -> None:
    var, speed = _variables(session)
    first = apply_op("Test>Push", [var.handle, speed.handle, [1.0, 1.0]])
    with tf.control_dependencies([first]):
        second = apply_op("Test>Push", [speed.handle, var.handle, [1.0, 1.0]])
    session.run(second)
    np.testing.assert_array_equal(session.run([var, speed]), [[13.0, 24.0], [24.0, 45.0]])


def test_a_failed_update_leaves_all_variables_as_they_were(session: tf.Session) -> None:
    var, speed = _variables(session)
    force = tf.placeholder(tf.float32, [2])
    push = apply_op("Test>Push", [var.handle, speed.handle, force])
    with pytest.raises(tf.errors.InvalidArgumentError, match="force is negative"):
        session.run(push, {force: [-1.0, 0.0]})
    np.testing.assert_array_equal(session.run([var, speed]), [[1.0, 2.0], [10.0, 20.0]])


def test_updates_write_over_the_old_values_only_when_nobody_sees_them(session: tf.Session) -> None:
    var, speed = _variables(session)
    before = var.read_value()
    push = apply_op("Test>Push", [var.handle, speed.handle, [1.0, 1.0]])
    _in_place.clear()
    session.run(push)
    session.run([push, before])
    assert _in_place == [True, False]


def test_an_uninitialised_variable_is_named(session: tf.Session) -> None:
    var, speed = tf.Variable([1.0], name="var"), tf.Variable([1.0], name="speed")
    push = apply_op("Test>Push", [var.handle, speed.handle, [1.0]])
    session.run(var.initializer)
    with pytest.raises(tf.errors.FailedPreconditionError, match=r"'speed'.*no value"):
        session.run(push)
    np.testing.assert_array_equal(session.run(var), [1.0])
