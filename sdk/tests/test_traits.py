"""Ops of another package: what their definitions say decides how they are rewritten, folded, placed and run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_sdk import Device, KernelDef, KernelNode, apply_op, define_op, hookimpl
from timberframe_sdk.testing import asynchronous_device
from timberframe_sdk.testing.loaded import loaded_plugin, temporary_ops

CPU, ACME = "/device:CPU:0", "/device:ACME:0"


def _same_shape(c: Any) -> Any:
    return [c.shapes[0]]


def _doubled(c: Any) -> Any:
    value = c.value(0)
    return [None if value is None else 2 * value]


OPS: dict[str, dict[str, Any]] = {
    "Acme>Watch": {
        "inputs": ["x: T"],
        "outputs": ["y: T"],
        "attrs": ["T: type"],
        "doc": "x itself.",
        "shape": _same_shape,
        "reference": lambda attrs, x: x,
        "passes_through": True,
        "gradient": lambda op, grad: [grad],
    },
    "Acme>Rows": {
        "inputs": ["x: T"],
        "outputs": ["rows: int32"],
        "attrs": ["T: type"],
        "doc": "The first size of x.",
        "shape": lambda c: [()],
        "reference": lambda attrs, x: np.array(x.shape[0], np.int32),
        "value": lambda c: [None if not c.shapes[0] or c.shapes[0][0] is None else np.array(c.shapes[0][0], np.int32)],
        "shape_only": True,
    },
    "Acme>Double": {
        "inputs": ["x: T"],
        "outputs": ["y: T"],
        "attrs": ["T: {int32, float}"],
        "doc": "2 x.",
        "shape": _same_shape,
        "reference": lambda attrs, x: x + x,
        "value": _doubled,
        "total_value": True,
    },
    "Acme>AssignProduct": {
        "inputs": ["resource: resource", "value: dtype"],
        "attrs": ["dtype: type"],
        "doc": "Multiplies the variable by value.",
        "shape": lambda c: [],
        "role": "assign_variable",
        "update_op": "Mul",
        "stateful": True,
    },
    "Acme>Multiply": {
        "inputs": ["ref: Ref(dtype)", "value: dtype"],
        "outputs": ["output_ref: Ref(dtype)"],
        "attrs": ["dtype: type"],
        "doc": "Multiplies the variable by value.",
        "shape": _same_shape,
        "role": "reference",
        "resource_op": "Acme>AssignProduct",
    },
    "Acme>Alarm": {
        "inputs": ["x: float"],
        "doc": "Tells the host about x.",
        "shape": lambda c: [],
        "reference": lambda attrs, x: (),
        "reports_to_host": True,
        "stateful": True,
    },
    "Acme>Repeat": {
        "inputs": ["input: T"],
        "outputs": ["output: T"],
        "attrs": ["T: list(type)", "cond: func", "body: func", "output_shapes: list(shape) = []"],
        "doc": "What While does.",
        "shape": lambda c: list(c.shapes),
        "role": "loop",
        "stateful": True,
    },
}
"""What is declared of each op."""


class AcmeDevice(asynchronous_device.AsynchronousDevice):
    """An accelerator that comes before the CPU, and has a kernel for all ops but one."""

    type, priority = "ACME", 200

    def __init__(self, index: int) -> None:
        super().__init__(index, None)
        self.spec = f"/device:ACME:{index}"

    def supports(self, node: KernelNode) -> str | None:
        return "no kernel is registered" if node.op == "Acme>Alarm" else super().supports(node)


class AcmePlugin:
    @hookimpl
    def timberframe_devices(self, config: Mapping[str, Any]) -> list[Device]:
        return [AcmeDevice(i) for i in range(config["count"].get("ACME", 0))]

    @hookimpl
    def timberframe_kernels(self) -> list[KernelDef]:
        return [KernelDef("Acme>Alarm", "CPU", lambda node: lambda x: None)]


@pytest.fixture(autouse=True, scope="module")
def plugin() -> Iterator[None]:
    with temporary_ops(), loaded_plugin("acme", AcmePlugin()):
        for name, definition in OPS.items():
            define_op(name, **definition)
        yield


pytestmark = pytest.mark.usefixtures("fresh_graph")


def _session(**settings: Any) -> tf.Session:
    """Returns a session of the default graph with an accelerator."""
    return tf.Session(config=tf.SessionConfig(device_count={"ACME": 1}, plugins=["acme", "cpu"], **settings))


def _devices(session: tf.Session, fetches: Any) -> dict[str, str]:
    return {p.op: p.device for p in session.explain(fetches).placements}


def test_an_op_that_passes_its_input_through_is_left_out() -> None:
    x = tf.placeholder(tf.float32, [100])
    y = tf.exp(apply_op("Acme>Watch", [x]))
    with _session() as session:
        assert _devices(session, y) == {"Exp": ACME}
        np.testing.assert_array_equal(session.run(y, {x: np.zeros(100)}), np.ones(100))


def test_an_op_that_passes_its_input_through_stays_where_the_rewrite_is_off() -> None:
    y = apply_op("Acme>Watch", [tf.placeholder(tf.float32, [100])])
    with _session(optimizations={"simplify": False}) as session:
        assert _devices(session, y) == {"Acme>Watch": ACME}


def test_an_op_that_passes_its_input_through_takes_lists() -> None:
    with tf.control_dependencies([tf.no_op()]):  # so that it is not left out
        items = apply_op("Acme>Watch", [apply_op("TensorListFromTensor", [tf.constant([1.0, 2.0]), np.int32([])])])
    total = apply_op("TensorListLength", [items])
    with _session() as session:
        assert session.run(total) == 2


def test_shapes_are_no_work_for_a_device() -> None:
    x = tf.placeholder(tf.float32, [None, 100])
    y = tf.reduce_sum(x) * tf.cast(apply_op("Acme>Rows", [x]), tf.float32)
    with _session() as session:
        assert "Acme>Rows" not in _devices(session, y)
        assert session.run(y, {x: np.ones((3, 100))}) == 900


def test_integers_that_follow_from_shapes_are_no_work_for_a_device() -> None:
    x = tf.placeholder(tf.float32, [None, 100])
    y = tf.reduce_sum(x) * tf.cast(apply_op("Acme>Double", [tf.shape(x)[0]]), tf.float32)
    with _session() as session:
        assert "Acme>Double" not in _devices(session, y)
        assert session.run(y, {x: np.ones((3, 100))}) == 1800


def test_small_integers_of_the_host_stay_there() -> None:
    x = tf.placeholder(tf.float32, [100])
    y = tf.reshape(x, apply_op("Acme>Double", [tf.placeholder_with_default(np.int32([25, 1]), [2])]))
    with _session() as session:
        assert "Acme>Double" not in _devices(session, y)
        assert session.run(y, {x: np.ones(100)}).shape == (50, 2)


def test_what_is_constant_is_computed_once() -> None:
    twice = apply_op("Acme>Double", [tf.constant(np.ones(100, np.float32))], name="twice")
    y = twice + tf.placeholder(tf.float32, [100])
    with _session() as session:
        assert session.explain(y).rewritten("fold") == ("twice",)


def test_an_update_runs_where_the_op_that_makes_the_new_value_has_a_kernel() -> None:
    v = tf.Variable(np.float32([1, 2]))
    update = apply_op("Acme>AssignProduct", [v.handle, np.float32([3, 4])])
    with _session() as session:
        session.run(tf.global_variables_initializer())
        session.run(update)
        assert session.run(v).tolist() == [3, 8]


def test_an_op_on_references_becomes_the_one_on_handles() -> None:
    v = apply_op("VariableV2", [], {"shape": (2,), "dtype": tf.float32})
    first = apply_op("Assign", [v, np.float32([1, 2])])
    update = apply_op("Acme>Multiply", [v, np.float32([3, 4])])
    with _session() as session:
        session.run(first)
        assert session.run(update).tolist() == [3, 8]


def test_what_reports_to_the_host_goes_there_though_another_device_is_requested() -> None:
    with tf.device(ACME):
        alarm = apply_op("Acme>Alarm", [tf.placeholder_with_default(np.float32(1), [])])
    with _session(allow_soft_placement=False) as session:
        assert _devices(session, alarm)["Acme>Alarm"] == CPU
        session.run(alarm)


@pytest.mark.parametrize("device", [CPU, ACME])
def test_a_loop_of_another_package_runs_as_ours_do(device: str) -> None:
    with tf.device(device):
        i = tf.while_loop(lambda i: i < 5, lambda i: i + 2, [tf.placeholder_with_default(0, [])])
        ours = i.op if i.op.type.endswith("While") else i.op.inputs[0].op
        attrs = {k: ours.attrs[k] for k in ("cond", "body", "output_shapes")}
        (theirs,) = apply_op("Acme>Repeat", [[ours.inputs[0]]], attrs)
    with _session() as session:
        assert session.run(theirs) == 6
