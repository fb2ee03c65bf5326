"""The gradient suite: which gradients it refuses, and which it accepts."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import timberframe as tf
import timberframe_sdk as sdk
from timberframe_conformance.backward import Evaluated
from timberframe_conformance.cases.smooth import smooth_samples
from timberframe_conformance.judge import judge_case
from timberframe_conformance.options import Options
from timberframe_conformance.suites.gradient import collect
from timberframe_conformance.target import Target, open_target
from timberframe_conformance.truth.differences import directions, slope
from timberframe_conformance.truth.graphs import Evaluator
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.gradients import apply_op, sum_to_shape
from timberframe_sdk.numpy_device import NumpyAllocator, NumpyDevice
from timberframe_sdk.testing.loaded import loaded_plugin

POINTS = ("zeros", "ties", "limits")


def verdicts(target: Target, *names: str) -> dict[str, str]:
    """Verdicts by case id, with the messages of failures."""
    cases = list(collect(target, [registry.get(n) for n in names]))
    results = [judge_case(c, target) for c in cases]
    return {r.id: r.verdict if r.verdict == "pass" else f"{r.verdict}: {r.message}" for r in results}


@contextmanager
def changed(name: str, **fields: Any) -> Iterator[None]:
    """Replaces fields of an op's definition within the block."""
    old = registry.substitute(dataclasses.replace(registry.get(name), **fields))
    try:
        yield
    finally:
        registry.substitute(old)


@pytest.mark.parametrize("name", ["Tanh", "Mul", "Sum", "Relu", "Acosh", "Select"])
def test_correct_gradients_pass(target: Target, name: str) -> None:
    found = verdicts(target, name)
    assert found
    assert set(found.values()) == {"pass"}


def test_cases_have_both_orders_and_every_floating_dtype(target: Target) -> None:
    cases = list(collect(target, [registry.get("Exp")]))
    assert {c.dtype_label for c in cases} == {
        "float16", "bfloat16", "float32", "float64", "complex64", "complex128"
    }  # fmt: skip
    assert {c.detail.split("-")[0] for c in cases} == {"first", "second", *POINTS}


def test_first_gradients_of_what_networks_call_count_for_training(target: Target) -> None:
    levels = {(c.detail.split("-")[0], c.dtype_label): c.level for c in collect(target, [registry.get("Tanh")])}
    assert {key for key, level in levels.items() if level == "training"} == {("first", "float32")}


def test_op_without_float64_has_cases_of_both_orders(target: Target) -> None:
    cases = [c for c in collect(target, [registry.get("LRN")]) if c.dtype_label == "float32"]
    assert {c.detail.split("-")[0] for c in cases} == {"first", "second", *POINTS} - {"limits"}
    assert len(cases) > 2


def test_wrong_factor_is_noticed(target: Target) -> None:
    with changed("Square", gradient=lambda op, grad: [grad * op.inputs[0]]):
        found = verdicts(target, "Square")
    wrong = [v for v in found.values() if "central differences give" in v]
    assert wrong


def test_input_that_the_definition_calls_constant_needs_no_gradient(target: Target) -> None:
    with changed("Sub", gradient=lambda op, grad: [None, sum_to_shape(-grad, op.inputs[1])], constant_inputs=("x",)):
        found = verdicts(target, "Sub")
    assert set(found.values()) == {"pass"}


def test_output_that_the_definition_calls_constant_needs_no_gradient(target: Target) -> None:
    assert set(verdicts(target, "FusedBatchNorm").values()) == {"pass"}
    with changed("FusedBatchNorm", constant_outputs=()):
        found = verdicts(target, "FusedBatchNorm")
    assert any("gives the slope" in v for v in found.values())


def test_gradient_that_is_none_is_noticed(target: Target) -> None:
    with changed("Sub", gradient=lambda op, grad: [None, -grad]):
        found = verdicts(target, "Sub")
    assert any("the declared gradient for input 0 gives the slope 0.0" in v for v in found.values())


def test_wrong_second_derivative_is_noticed(target: Target) -> None:
    with changed("SigmoidGrad", gradient=lambda op, grad: [grad, apply_op("SigmoidGrad", [op.inputs[0], grad])]):
        found = verdicts(target, "Sigmoid")
    assert {i.split("/")[3].split("-")[0] for i, v in found.items() if v != "pass"} == {"second", "zeros"}


def test_op_without_gradient_must_give_none(target: Target) -> None:
    assert set(verdicts(target, "Floor").values()) == {"pass"}


def test_slope_is_within_its_bound() -> None:
    s = slope(lambda t: math.exp(1 + t), 2.0**-53 * 3)
    assert abs(s.value - math.e) <= s.bound
    assert s.bound < 1e-10


def test_kink_nearby_makes_the_bound_large() -> None:
    assert slope(lambda t: abs(t - 1e-4), 0.0).bound > 1e-2


def test_directions_touch_every_element_once() -> None:
    found = directions((3, 5), np.dtype(np.float64), 4, np.random.default_rng(0))
    assert len(found) == 4
    assert np.array_equal(np.sum([v != 0 for v in found], axis=0), np.ones((3, 5)))


def test_samples_differ_in_attrs_and_shapes() -> None:
    op = registry.get("MatMul")
    chosen = [s for _, s in smooth_samples(op, (("T", "float64"),), 6)]
    assert len({(s.attrs.get("transpose_a"), s.attrs.get("transpose_b")) for s in chosen}) >= 4


def test_evaluator_follows_the_graph_in_float64() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, (3,))
        y = tf.reduce_sum(tf.exp(x) * 2.0)
    values = np.array([1, 2, 3], np.float32)
    (found,) = Evaluator([y], [x]).wide([values])
    assert found == pytest.approx(2 * np.exp(values.astype(np.float64)).sum(), rel=1e-15)


def perturbed(y: Any, feeds: dict[Any, Any]) -> np.ndarray:
    """Returns a tensor's value in an evaluation with all nodes perturbed."""
    values = [np.asarray(v, x.dtype.numpy) for x, v in feeds.items()]
    _, moved = Evaluator([y], list(feeds)).perturbed(values, np.random.default_rng(0), 1)
    ((off,),) = moved
    return off


def test_perturbed_evaluation_moves_by_declared_errors() -> None:
    values = np.linspace(-1, 1, 1000).astype(np.float32)
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, (1000,))
        off = perturbed(tf.exp(x), {x: values})
    true = np.exp(values.astype(np.float64))
    ulps = np.abs(off - true) / true / 2.0**-23
    assert 1 < ulps.max() < 4


def test_moved_elements_have_no_error() -> None:
    values = np.array([1, -2, 3, 0.1], np.float32)
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, (4,))
        off = perturbed(tf.reshape(tf.negative(x), (2, 2)), {x: values})
    assert np.array_equal(off, -values.reshape(2, 2).astype(np.float64))


def test_zeros_have_no_error() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, (2,))
        off = perturbed(tf.exp(x) * x, {x: [-2000.0, 0.0]})
    assert np.array_equal(off, [0, 0])


def test_errors_make_no_finite_number_infinite() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float64, (100,))
        off = perturbed(tf.negative(x * 2.0), {x: np.full(100, np.finfo(np.float64).max / 2)})
    assert np.isfinite(off).all()


def test_errors_of_several_nodes_add_up_as_independent_ones_do() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, ())
        one, other = tf.exp(x), tf.exp(x)
        values = {x: np.float32(0.5)}
        (alone,) = Evaluated([one], values).moves(2)
        (both,) = Evaluated([one - other], values).moves(1000)
    assert both == pytest.approx(math.sqrt(2) * alone, rel=0.05)


class NarrowDevice(NumpyDevice):
    """A device without float64."""

    type, priority, by_reference = "NARROW", 0, True
    attributes = sdk.DeviceAttributes(memory=1 << 30, dtypes=("bfloat16", "float32", "int32", "bool"))

    def __init__(self, index: int = 0) -> None:
        super().__init__(index)
        self.allocator = NumpyAllocator()

    def supports(self, node: sdk.KernelNode) -> sdk.Support:
        wide = [v for v in (*node.inputs, *node.outputs) if v.dtype.name not in self.attributes.dtypes]
        return f"it holds no {wide[0].dtype}" if wide else super().supports(node)


@pytest.fixture
def narrow() -> Iterator[Target]:
    plugin = SimpleNamespace(timberframe_devices=sdk.hookimpl(lambda config: [NarrowDevice()]))
    with loaded_plugin("narrow_device", plugin):  # a pass has the other name
        yield open_target(Options("narrow"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Erf", "Cast", "LogSoftmax", "Square"])
def test_declared_gradients_are_judged_in_float64_on_a_device_without_it(narrow: Target, name: str) -> None:
    found = verdicts(narrow, name)
    assert any("first" in case for case in found)
    assert set(found.values()) == {"pass"}


def test_a_wrong_declared_gradient_is_found_on_a_device_without_float64(narrow: Target) -> None:
    with changed("Erf", gradient=lambda op, grad: [grad * 1.1283]):
        found = verdicts(narrow, "Erf")
    assert any("the definition of the op is wrong, on every device" in text for text in found.values())
