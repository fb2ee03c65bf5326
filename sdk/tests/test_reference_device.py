"""Ops computed by their references: a builder for any op, kernels for any device, and a complete device of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

import timberframe as tf
import timberframe_sdk as sdk
from timberframe_core.graph.apply import apply_op
from timberframe_core.ops.definition.registry import all_ops
from timberframe_core.plugin import loader
from timberframe_core.plugin.kernels import KernelRegistry
from timberframe_sdk.numpy_device import NumpyDevice
from timberframe_sdk.reference import reference_launcher
from timberframe_sdk.testing import reference_device

DEVICE = "/device:REFERENCE:0"
ALONE = tf.SessionConfig(plugins=["reference"])


class AcmeDevice(NumpyDevice):
    type, by_reference = "ACME", True


@pytest.fixture(autouse=True, scope="module")
def added() -> None:
    if "reference" not in loader.registry.plugins:
        loader.registry.add("reference", reference_device)


@pytest.fixture
def session() -> Iterator[tf.Session]:
    """A session that has the reference device alone."""
    with tf.Graph().as_default() as graph, tf.Session(graph=graph, config=ALONE) as session:
        yield session


def node(op: str, attrs: dict[str, object], inputs: list[np.ndarray], outputs: list[np.ndarray]) -> sdk.KernelNode:
    values = [sdk.Value(i, x.dtype, x.shape) for i, x in enumerate((*inputs, *outputs))]
    return sdk.KernelNode(op, "it", attrs, values[: len(inputs)], values[len(inputs) :], AcmeDevice())


def test_what_the_executor_runs_has_no_kernel() -> None:
    assert [op for op in ("AddV2", "ResourceApplyAdam", "While", "StringJoin") if sdk.has_reference(op)] == [
        "AddV2",
        "ResourceApplyAdam",
    ]


def test_floats_are_rounded_once() -> None:
    x = np.array([1, 2**-11, 2**-11, 2**-11], np.float16)  # each term alone would be lost to rounding
    found = sdk.compute(node("AddN", {"N": 4, "T": tf.float16}, [*x.reshape(4, 1)], [x[:1]]), [*x.reshape(4, 1)])
    assert found[0].dtype == np.float16
    assert found[0] == np.float16(1 + 3 * 2**-11)


def test_references_of_all_ops_can_be_registered() -> None:
    ops = [op.name for op in all_ops() if sdk.has_reference(op.name)]
    registry = KernelRegistry()
    registry.register(sdk.reference_kernels("ACME", ops))
    assert len(registry.kernels("Cast")) == 2


@pytest.mark.parametrize(
    ("op", "attrs"),
    [
        ("TensorScatterSub", {"T": tf.bool, "Tindices": tf.int32}),
        ("Cast", {"SrcT": tf.string, "DstT": tf.int32}),
        ("MaxPool3DGrad", {"T": tf.float32, "TInput": tf.float16}),
    ],
)
def test_dtypes_that_an_op_is_not_defined_for_have_no_kernel(op: str, attrs: dict[str, tf.DType]) -> None:
    device = reference_device.ReferenceDevice()
    device.kernels = KernelRegistry()
    assert device.supports(sdk.KernelNode(op, "it", attrs, [], [], device)) is not None
    same = dict.fromkeys(attrs, tf.float32)
    assert device.supports(sdk.KernelNode(op, "it", same, [], [], device)) is None


def test_tensors_of_strings_are_moved(session: tf.Session) -> None:
    x = tf.placeholder(tf.string, [None])
    found = session.run(tf.concat([tf.reverse(x, [0]), tf.tile(x[1:], [2])], 0), {x: [b"a", b"bc"]})
    assert found.tolist() == [b"bc", b"a", b"bc", b"bc"]


def test_size_that_the_op_decides_is_the_true_one(session: tf.Session) -> None:
    x = tf.placeholder(tf.int32, [None])
    values, index = apply_op("Unique", [x], {"out_idx": tf.int64})
    found = session.run([values, index], {x: [4, 4, 7, 4]})
    assert [f.tolist() for f in found] == [[4, 7], [0, 0, 1, 0]]


def test_a_result_whose_size_the_op_decides_stays_when_later_runs_have_others(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [4])
    y = tf.where(x)
    kept = [session.run(y, {x: fed}) for fed in ([1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 1])]
    assert [k.ravel().tolist() for k in kept] == [[0, 2], [1, 3], [2, 3]]


def test_random_numbers_are_those_of_every_device(session: tf.Session) -> None:
    drawn = []
    for device in (DEVICE, "/device:NUMPY:0"):
        with tf.Graph().as_default() as graph, tf.device(device), tf.Session(graph=graph) as other:
            x = apply_op("RandomUniform", [[5]], {"dtype": tf.float32, "seed": 3, "seed2": 4})
            drawn.append([other.run(x).tolist() for _ in range(2)])
    assert drawn[0] == drawn[1]
    assert drawn[0][0] != drawn[0][1]


def test_variables_train(session: tf.Session) -> None:
    v = tf.Variable(np.ones(2, np.float32))
    step = tf.train.AdamOptimizer(0.5).minimize(tf.reduce_sum(v * v))
    session.run(tf.global_variables_initializer())
    for _ in range(50):
        session.run(step)
    assert np.abs(session.run(v)).max() < 0.2


def test_error_of_a_reference_names_node_and_device(session: tf.Session) -> None:
    x = tf.placeholder(tf.int32, [2])
    y = tf.gather(tf.constant([1.0, 2.0]), x, name="picked")
    words = rf"GatherV2 'picked': .*7.*\[{re.escape(DEVICE)}"
    with pytest.raises(tf.errors.InvalidArgumentError, match=words) as e:
        session.run(y, {x: [0, 7]})
    assert e.value.node == "picked"


def test_values_that_numpy_refuses_are_an_invalid_argument() -> None:
    x = np.ones(3, np.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"AddV2 'it': operands .*shapes"):
        sdk.compute(node("AddV2", {"T": tf.float32}, [x, x], [x]), [x, x[:2]])


def test_other_exceptions_of_a_reference_are_unknown_errors() -> None:
    x = np.array([b"a"], object)
    with pytest.raises(tf.errors.UnknownError, match=r"Tanh 'it': its reference raised TypeError: "):
        sdk.compute(node("Tanh", {"T": tf.float32}, [x], [x]), [x])


def test_op_without_a_reference_is_reported() -> None:
    with pytest.raises(tf.errors.UnimplementedError, match=r"VarHandleOp 'it': the op has no reference; .*kernel"):
        sdk.compute(node("VarHandleOp", {}, [], []), [])


def test_kernel_of_a_vendor_takes_the_place_of_the_reference() -> None:
    device = AcmeDevice()
    device.kernels = KernelRegistry()
    device.kernels.register([sdk.KernelDef("AddV2", "ACME", lambda node: np.add, types={"T": ("float32",)})])
    x = np.ones(3)
    builders = [
        getattr(device.kernel(node("AddV2", {"T": dtype}, [x, x], [x])), "build", None)
        for dtype in (tf.float32, tf.float64)
    ]
    assert (builders[0] is reference_launcher, builders[1] is reference_launcher) == (False, True)


def test_label_that_no_kernel_has_is_refused_by_reference_too() -> None:
    device = AcmeDevice()
    device.kernels = KernelRegistry()
    x = np.ones(3)
    assert device.supports(node("AddV2", {"T": tf.float64, "_kernel": "fast"}, [x, x], [x])) is not None


def test_memory_limit_of_the_session_holds() -> None:
    config = tf.SessionConfig(plugins=["reference"], memory_limit={"REFERENCE": 1000})
    with tf.Graph().as_default() as graph, tf.Session(graph=graph, config=config) as session:
        x = tf.placeholder(tf.float32, [1000])
        with pytest.raises(tf.errors.ResourceExhaustedError, match="limit is 1000 bytes"):
            session.run(tf.reduce_sum(tf.sin(tf.cos(x))), {x: np.zeros(1000)})


def test_arenas_that_no_run_uses_make_room_for_others() -> None:
    config = tf.SessionConfig(plugins=["reference"], memory_limit={"REFERENCE": 30_000})
    with tf.Graph().as_default() as graph, tf.Session(graph=graph, config=config) as session:
        x, y = tf.placeholder(tf.float32, [2000]), tf.placeholder(tf.float32, [3000])
        first, second = (tf.reduce_sum(tf.sin(tf.cos(v)) * v) for v in (x, y))
        one = np.sin(np.cos(1.0))
        for _ in range(2):
            assert session.run(first, {x: np.ones(2000)}) == pytest.approx(2000 * one)
            assert session.run(second, {y: np.ones(3000)}) == pytest.approx(3000 * one)
