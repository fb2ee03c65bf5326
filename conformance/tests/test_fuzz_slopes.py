"""conformance fuzz: gradients beside differences, and results that are not compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe
from timberframe_conformance.fuzz.expected import expect
from timberframe_conformance.fuzz.judge import judge
from timberframe_conformance.fuzz.program import Program, Step
from timberframe_conformance.target import Target
from timberframe_core.graph.apply import apply_op

tf: Any = timberframe
Redefine = Callable[..., None]


def feed(value: Any) -> Step:
    array = np.asarray(value, np.float32)
    return Step("feed", value=array, known=array.shape)


def test_slopes_notice_a_wrong_gradient(target: Target, redefine: Redefine) -> None:
    redefine("Tanh", gradient=lambda op, grad: [grad])
    failure = judge(_slope("Tanh", [0.5, -1.5]), target, oracles=["slopes"]).failure
    assert failure is not None
    assert "differences give" in failure[1]


def _logits_of_zero(name: str) -> Program:
    attrs = {"inputs": ("labels", "logits", "pos_weight")[: 3 if "weighted" in name else 2]}
    steps = (feed([0.0, 1.0]), feed([0.0, 0.0]), feed(2.0))
    loss = Step("call", name, ((0, 0), (1, 0), (2, 0))[: len(attrs["inputs"])], attrs)
    return Program((*steps, loss, Step("grad", inputs=(((3, 0),), ((1, 0),)))), ((4, 0),))


def _slope(op: str, *values: Any) -> Program:
    inputs = tuple((i, 0) for i in range(len(values)))
    steps = (*(feed(v) for v in values), Step("op", op, inputs))
    last = len(values)
    return Program((*steps, Step("grad", inputs=(((last, 0),), ((0, 0),)))), ((last, 0), (last + 1, 0)))


def _cumulated(*factors: float) -> Program:
    steps = (feed(factors), Step("const", value=np.int32(0)), Step("op", "Cumprod", ((0, 0), (1, 0))))
    return Program((*steps, Step("grad", inputs=(((2, 0),), ((0, 0),)))), ((3, 0),))


def _stitched(*indices: list[int]) -> Program:
    steps = (*(Step("const", value=np.int32(i)) for i in indices), *(feed([float(i[0])]) for i in indices))
    n = len(indices)
    refs = tuple((i, 0) for i in range(2 * n))
    stitch = Step("op", "DynamicStitch", (refs[:n], refs[n:]))
    return Program((*steps, stitch, Step("grad", inputs=(((2 * n, 0),), ((n, 0),)))), ((2 * n + 1, 0),))


LARGEST = float(np.finfo(np.float32).max)

INTENDED: dict[str, Program] = {
    "subgradients of a weighted loss": _logits_of_zero("nn.weighted_cross_entropy_with_logits"),
    "0 log y": _slope("Xlogy", [0.0, 1.0], [3.0, 3.0]),
    "labels that do not sum to 1": _slope("SoftmaxCrossEntropyWithLogits", [[1.0, 2.0]], [[0.0, 0.0]]),
    "a row that a later one overwrites": _stitched([0], [0]),
    "a factor of 0 in a cumulative product": _cumulated(1.0, 0.0, 2.0),
}
"""Programs whose gradients are correct, though differences give other slopes."""


@pytest.mark.parametrize("case", INTENDED)
def test_gradient_that_by_intention_is_no_slope_passes(target: Target, case: str) -> None:
    assert judge(INTENDED[case], target, oracles=["slopes"]).failure is None


def test_slope_smaller_than_what_differences_round_passes(target: Target) -> None:
    assert judge(_slope("ReciprocalGrad", [2.0**-149], [1.0]), target, oracles=["slopes"]).failure is None


def test_slope_that_differences_cannot_show_for_underflow_passes(target: Target) -> None:
    steps = (Step("feed", value=np.zeros(1), known=(1,)), Step("const", value=np.array([5e-324])))
    slope = (Step("op", "Mul", ((0, 0), (1, 0))), Step("grad", inputs=(((2, 0),), ((0, 0),))))
    assert judge(Program((*steps, *slope), ((3, 0),)), target, oracles=["slopes"]).failure is None


@pytest.mark.parametrize("distance", [2.0**-126, 2.0**-60, 2.0**-30, 2.0**-13])
def test_slope_so_near_a_pole_that_differences_step_over_it_passes(target: Target, distance: float) -> None:
    assert judge(_slope("Reciprocal", [distance]), target, oracles=["slopes"]).failure is None


def test_slopes_notice_a_gradient_that_is_far_too_large(target: Target, redefine: Redefine) -> None:
    redefine("Tanh", gradient=lambda op, grad: [grad * 1e30])
    assert judge(_slope("Tanh", [0.5, -1.5]), target, oracles=["slopes"]).failure is not None


def test_slopes_notice_a_wrong_gradient_of_a_cumulative_product(target: Target, redefine: Redefine) -> None:
    redefine("Cumprod", gradient=lambda op, grad: [grad, None])
    assert judge(_cumulated(1.0, 3.0, 2.0), target, oracles=["slopes"]).failure is not None


@pytest.mark.parametrize(
    ("op", "values"),
    [
        ("Mean", ([LARGEST, LARGEST, 0.0, 0.0], 0)),
        ("MatMul", ([[LARGEST, np.inf]], [[-2.0], [1.0]])),
        ("Prod", ([LARGEST, 2.0, 0.0], 0)),
        ("Prod", ([1e-30, 1e-30, 1e30, 1e30], 0)),
        ("Cumprod", ([LARGEST, 2.0, 0.0], 0)),
        ("UnsortedSegmentProd", ([LARGEST, 2.0, 0.0], [0, 0, 0], 1)),
    ],
)
def test_result_whose_parts_may_leave_the_range_is_not_compared(op: str, values: Any) -> None:
    with tf.Graph().as_default():
        wanted = expect([apply_op(op, [tf.constant(v) for v in values])], {})[0]
    assert wanted is not None
    assert not wanted.determined.any()


def test_a_residue_of_rounding_may_have_either_sign() -> None:
    """Gradients of sums of probabilities are zero but for rounding, which Relu6 passes on where it is positive."""
    with tf.Graph().as_default():
        x = tf.constant(np.random.default_rng(0).normal(0, 2, (2, 100)).astype(np.float32))
        y = tf.nn.softmax(x, axis=0)
        (slope,) = tf.gradients(y, x)
        found, mirrored, probabilities = expect([tf.nn.relu6(slope), tf.nn.relu6(-slope), y], {})
    assert found is not None
    assert mirrored is not None
    assert probabilities is not None
    residue = (2.0**-24 * probabilities.value).astype(np.float32)
    assert not found.mismatch(residue)
    assert not mirrored.mismatch(residue)


def test_product_of_usual_numbers_is_compared() -> None:
    with tf.Graph().as_default():
        wanted = expect([apply_op("Prod", [tf.constant([3.0, 0.0, 1e30]), 0])], {})[0]
    assert wanted is not None
    assert wanted.determined.all()


@pytest.mark.parametrize("dtype", [tf.float32, tf.complex64])
def test_subnormal_may_be_taken_for_zero_where_a_device_flushes_it(dtype: Any) -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(dtype, [])
        wanted = expect([apply_op("SqrtGrad", [x, x])], {x: np.array(-3e-45, dtype.numpy)}, flush=True)[0]
    assert wanted is not None
    assert not wanted.mismatch(np.zeros((), dtype.numpy))


def test_slopes_notice_a_wrong_subgradient_of_a_smooth_function(target: Target, monkeypatch: Any) -> None:
    def loss(_sentinel: Any = None, labels: Any = None, logits: Any = None, name: Any = None) -> Any:
        return tf.nn.relu(logits) - logits * labels + tf.math.log1p(tf.exp(-tf.abs(logits)))

    monkeypatch.setattr(tf.nn, "sigmoid_cross_entropy_with_logits", loss)
    failure = judge(_logits_of_zero("nn.sigmoid_cross_entropy_with_logits"), target, oracles=["slopes"]).failure
    assert failure is not None
    assert "differences give" in failure[1]
