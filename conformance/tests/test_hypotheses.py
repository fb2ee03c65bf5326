"""Messages of failures say what fits the wrong values."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_conformance.case import CaseFailedError, WrongValuesError
from timberframe_conformance.hypotheses.upstream import first_wrong_node
from timberframe_conformance.hypotheses.wrong import after_other_inputs
from timberframe_conformance.suites.checks import same
from timberframe_conformance.target import Target
from timberframe_conformance.tolerance.compare import check
from timberframe_conformance.twin import Twin
from timberframe_core.dtypes import as_dtype
from timberframe_core.ops.definition import registry
from timberframe_sdk.reference import evaluate

RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(2, 6, 6, 20)).astype(np.float32)
FILTERS = RNG.normal(size=(2, 2, 20, 24)).astype(np.float32)
A, B = (RNG.normal(size=(17, 17)).astype(np.float32) for _ in range(2))


def message(op: str, inputs: list[np.ndarray], got: np.ndarray, attrs: dict[str, Any]) -> str:
    """Returns the suite's words for an output that is wrong."""
    with pytest.raises(CaseFailedError) as failed:
        check(registry.get(op), full(op, attrs), inputs, [got], [got.dtype])
    return str(failed.value)


def full(op: str, attrs: dict[str, Any]) -> dict[str, Any]:
    defaults = {a.name: a.default for a in registry.get(op).attrs.values() if not a.required}
    return {**defaults, "T": as_dtype("float32"), **attrs}


def result(op: str, inputs: list[np.ndarray], attrs: dict[str, Any]) -> np.ndarray:
    return np.array(evaluate(registry.get(op), full(op, attrs), inputs)[0])


SAME = {"strides": (1, 2, 2, 1), "padding": "SAME"}


def test_padding_on_the_other_side() -> None:
    mirrored = [IMAGES[:, ::-1, ::-1], FILTERS[::-1, ::-1]]
    attrs = {"strides": (1, 1, 1, 1), "padding": "SAME"}
    got = np.ascontiguousarray(result("Conv2D", mirrored, attrs)[:, ::-1, ::-1])
    text = message("Conv2D", [IMAGES, FILTERS], got, attrs)
    assert text.endswith("; equals SAME padding with the odd pixel on the other side")


def test_no_hypothesis_takes_more_memory_than_the_call() -> None:
    """With a size and a limit exchanged the op has ten million elements."""
    attrs = {"seed": 1, "seed2": 2, "T": as_dtype("int32"), "Tout": as_dtype("int32")}
    inputs = [np.array([40], np.int32), np.array(0, np.int32), np.array(10_000_000, np.int32)]
    got = result("RandomUniformInt", inputs, attrs) // 2
    tracemalloc.start()
    try:
        message("RandomUniformInt", inputs, got, attrs)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_a_mean_that_counts_padding() -> None:
    attrs = {"ksize": (1, 3, 3, 1), "strides": (1, 2, 2, 1), "padding": "SAME"}
    padded = np.pad(IMAGES, ((0, 0), (0, 1), (0, 1), (0, 0)))
    got = result("AvgPool", [padded], {**attrs, "padding": "VALID"})
    assert message("AvgPool", [IMAGES], got, attrs).endswith("; equals the result with padding that counts as zeros")


def test_a_softmax_along_another_dimension() -> None:
    got = np.ascontiguousarray(result("Softmax", [A.T], {}).T)
    assert message("Softmax", [A], got, {}).endswith("; equals the result along dimension 0 in place of 1")


def test_some_channels() -> None:
    got = result("Conv2D", [IMAGES, FILTERS], SAME)
    got[..., 16:20] += 1
    assert "; only channels 16 to 19 of 24 differ" in message("Conv2D", [IMAGES, FILTERS], got, SAME)


def test_entries_of_a_batch_after_the_first() -> None:
    got = result("Conv2D", [IMAGES, FILTERS], SAME)
    got[1:] = got[0]
    text = message("Conv2D", [IMAGES, FILTERS], got, SAME)
    assert "; only batch entries 1 of 2 differ; repeats the first entry of dimension 0" in text


def test_memory_that_nobody_wrote_to() -> None:
    got = result("MatMul", [A, B], {})
    got[:, 16:] = 0
    assert "dimension 1, 16 of 17 differ; they are 0" in message("MatMul", [A, B], got, {})


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: A.T @ B, "equals the result with transpose_a=True"),
        (lambda: B @ A, "equals the result with inputs 0 and 1 exchanged"),
        (lambda: A.copy(), "equals input 0"),
        (lambda: -(A @ B), "has the other sign"),
        (lambda: 2 * (A @ B), "is 2 times the right result"),
        (lambda: bfloat16(A) @ bfloat16(B), "equals the result of inputs in bfloat16"),
        (
            lambda: (A @ B).astype(np.float16).astype(np.float32),
            "every one is a number of float16, near the right one: they were computed or stored in float16",
        ),
    ],
)
def test_a_product_with_a_fault(wrong: Callable[[], np.ndarray], words: str) -> None:
    assert message("MatMul", [A, B], wrong(), {}).endswith(f"; {words}")


def bfloat16(x: np.ndarray) -> np.ndarray:
    return x.astype(as_dtype("bfloat16").numpy).astype(np.float32)


def test_weights_of_the_version_before() -> None:
    with after_other_inputs({"the variable's version before": [A, B + 1]}):
        text = message("MatMul", [A, B], A @ (B + 1), {})
    assert text.endswith("; equals the result of the variable's version before")


def test_sums_in_float16() -> None:
    a, b = A.astype(np.float16), B.astype(np.float16)
    total = np.zeros((17, 17), np.float16)
    for k in range(17):
        total += np.outer(a[:, k], b[k])
    text = message("MatMul", [a, b], total, {"T": as_dtype("float16")})
    assert "off by no more than a sum of 17 terms in float16 may be; sums need float32" in text


def test_nothing_is_said_where_nothing_fits() -> None:
    noise = RNG.normal(size=(17, 17)).astype(np.float32)
    assert message("MatMul", [A, B], A @ B + noise, {}).count(";") == 1


def test_nothing_is_said_of_few_values_that_fit_by_chance() -> None:
    small = np.arange(5, dtype=np.int32)
    got = small >= small[::-1]
    got[:2] = True  # as with inputs exchanged, and unlike it elsewhere
    attrs = {"T": as_dtype("int32")}
    assert "exchanged" not in message("GreaterEqual", [small, small[::-1].copy()], got, attrs)
    got = small >= 3
    got[3] = False
    assert "they are 0" not in message("GreaterEqual", [small, np.full_like(small, 3)], got, attrs)
    off_by_one = np.array([3, 0, 2], np.int32)  # where 1 is right
    assert message("Abs", [np.array([-3, -1, 2], np.int32)], off_by_one, attrs).count(";") == 1


def test_rows_of_one_value_are_no_repeated_first_entry() -> None:
    expected = result("Relu", [A[:, 0]], {})
    got = np.full_like(expected, expected[0])
    assert "repeats the first entry" not in message("Relu", [A[:, 0]], got, {})


def test_no_error_or_limit_is_shown_that_is_no_number() -> None:
    x = np.array([-1.0, 4.0, 9.0], np.float32)
    with np.errstate(invalid="ignore"):
        right = np.sqrt(x)
    text = message("Sqrt", [x], np.where(x < 0, np.float32(0), right), {})
    assert "got np.float32(0.0), expected np.float64(nan), for input -1.0" in text
    text = message("Sqrt", [x], np.where(x > 5, np.float32(np.nan), right), {})
    assert "expected np.float64(3.0) (limit " in text
    assert "nan ULP" not in text


def test_a_large_array_is_shown_where_it_is_wrong() -> None:
    wrong = A.copy()
    wrong[3, 14:16] = 7
    with pytest.raises(WrongValuesError) as failed:
        same(wrong, A, "the product of 17 rows")
    assert str(failed.value).startswith("the product of 17 rows is wrong: 2 of 289 elements differ; at [3, 14]: got ")
    assert str(failed.value).endswith(
        "dimension 0, 3 of 17 differ and only indices of dimension 1, 14 to 15 of 17 differ"
    )
    with pytest.raises(WrongValuesError, match=r"the sum is \[1.0, 2.0\]; it must be \[1.0, 3.0\]"):
        same(np.array([1.0, 2.0]), [1.0, 3.0], "the sum")


def test_a_network_is_followed_to_the_first_node_that_differs() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, A.shape, name="x")
        hidden = tf.matmul(tf.nn.relu(x, name="relu"), tf.constant(B), name="hidden")
        y = tf.add(tf.tanh(hidden), tf.exp(x, name="beside"), name="y")
    with np.errstate(all="ignore"):
        relu = np.maximum(A, 0)
        right = {"relu": relu, "hidden": relu @ B, "beside": np.exp(A), "x": A}
        right["Tanh"] = np.tanh(right["hidden"])
        right["y"] = right["Tanh"] + right["beside"]
        got = {**right, "hidden": np.where(np.arange(17) < 16, right["hidden"], 0)}
        got["Tanh"] = np.tanh(got["hidden"])
        got["y"] = got["Tanh"] + got["beside"]

    def values(table: dict[str, Any]) -> Callable[[Any], np.ndarray]:
        return lambda t: np.asarray(B if t.op.type == "Const" else table[t.op.name], np.float32)

    text = first_wrong_node(y, values(got), values(right), 1e-3)
    assert text.startswith("the first node that differs is MatMul 'hidden': 17 of 289 elements differ")
    assert text.endswith(
        "only indices of dimension 1, 16 of 17 differ; they are 0, as memory is that nobody has written to"
    )


def test_a_node_that_a_kernel_for_several_leaves_out(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    twin = Twin(target)
    product = twin.op("MatMul", [twin.feed(A), twin.constant(B, "float32")])
    output = twin.op("Relu", [twin.op("BiasAdd", [product, twin.constant(A[0], "float32")])])
    lost = np.maximum(product.narrow, 0)
    monkeypatch.setattr(tf.Session, "run", lambda self, fetches, feeds: [lost])
    with pytest.raises(CaseFailedError, match=r"; equals the result without BiasAdd 'BiasAdd'$"):
        twin.check([output])


@pytest.mark.parametrize(
    ("attrs", "name", "value"),
    [(SAME, "strides", (1, 1, 1, 1)), ({"strides": (1, 1, 1, 1), "padding": "SAME"}, "padding", "VALID")],
)
def test_the_attr_that_gives_a_wrong_shape_is_named(attrs: dict[str, Any], name: str, value: Any) -> None:
    got = result("Conv2D", [IMAGES, FILTERS], {**attrs, name: value})
    text = message("Conv2D", [IMAGES, FILTERS], got, attrs)
    assert text.endswith(f"; with {name}={value} it would have this shape")


def test_a_product_without_the_last_term_of_each_sum() -> None:
    got = A[:, :16] @ B[:16]
    attrs = {"transpose_a": False, "transpose_b": False}
    text = message("MatMul", [A, B], got, attrs)
    assert text.endswith("; equals the result without the last 1 of 17 of input 0 along dimension 1")


def test_a_maximum_that_passes_over_nan() -> None:
    x = A.copy()
    x[[2, 3, 5, 9], [0, 4, 8, 1]] = np.nan
    got = np.fmax.reduce(x, axis=1)
    text = message("Max", [x, np.array([1], np.int32)], got, {"keep_dims": False, "Tidx": as_dtype("int32")})
    assert text.endswith("; equals the result with -inf in place of NaN, which is passed over")
