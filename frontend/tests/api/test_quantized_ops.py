"""TensorFlow 1's ops on quantized tensors against NumPy on the numbers that their integers stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf

pytestmark = pytest.mark.usefixtures("session")

LOW, HIGH, STEP = -2.0, 191 / 32, 1 / 32
"""A range in which 8 bits stand for multiples of 1/32, 0 among them."""
random = np.random.default_rng(7)
raw = tf.raw_ops


def some(*shape: int) -> np.ndarray:
    """Returns numbers that quantized ones stand for exactly."""
    return np.asarray(random.integers(-64, 192, shape) * STEP, np.float32)


def quantized(x: np.ndarray) -> Any:
    return tf.quantize(x, LOW, HIGH, tf.quint8, "MIN_FIRST")


def ends(**inputs: Any) -> dict[str, Any]:
    """Returns the arguments with the ends of the ranges of inputs by their names."""
    lows = {f"min_{name}": x.output_min for name, x in inputs.items()}
    return {**lows, **{f"max_{name}": x.output_max for name, x in inputs.items()}}


def numbers(session: tf.Session, result: Any) -> tuple[np.ndarray, float]:
    """Returns the numbers that a result stands for, and the distance of neighbouring ones."""
    integers, low, high = session.run(list(result))
    info = np.iinfo(integers.dtype)
    step = (float(high) - float(low)) / (float(info.max) - float(info.min))
    if info.min < 0:
        return integers * step, step  # whose range is as wide on both sides of 0
    return float(low) + integers * step, step


@pytest.mark.parametrize(("transpose_a", "transpose_b"), [(False, False), (True, False), (False, True)])
def test_product_of_matrices(session: tf.Session, transpose_a: bool, transpose_b: bool) -> None:
    x, y = some(*((4, 3) if transpose_a else (3, 4))), some(*((5, 4) if transpose_b else (4, 5)))
    a, b = quantized(x), quantized(y)
    product = raw.QuantizedMatMul(
        a=a.output, b=b.output, **ends(a=a, b=b), transpose_a=transpose_a, transpose_b=transpose_b
    )
    assert (product.out.dtype, product.out.shape.as_list()) == (tf.qint32, [3, 5])
    wanted = (x.T if transpose_a else x) @ (y.T if transpose_b else y)
    np.testing.assert_allclose(numbers(session, product)[0], wanted, rtol=1e-6)


def test_convolution(session: tf.Session) -> None:
    x, y = some(2, 5, 6, 3), some(3, 2, 3, 4)
    image, filters = quantized(x), quantized(y)
    sums = raw.QuantizedConv2D(
        input=image.output, filter=filters.output, **ends(input=image, filter=filters), strides=[1, 2, 1, 1],
        padding="SAME",
    )  # fmt: skip
    wanted = session.run(tf.nn.conv2d(x, y, [1, 2, 1, 1], "SAME"))
    np.testing.assert_allclose(numbers(session, sums)[0], wanted, rtol=1e-6)


def test_products_of_elements(session: tf.Session) -> None:
    x, y = some(4, 3), some(3)
    a, b = quantized(x), quantized(y)
    np.testing.assert_allclose(
        numbers(session, raw.QuantizedMul(x=a.output, y=b.output, **ends(x=a, y=b)))[0], x * y, rtol=1e-6
    )


def test_sums(session: tf.Session) -> None:
    x, y = some(4, 3), some(3)
    a, b = quantized(x), quantized(y)
    added = raw.QuantizedAdd(x=a.output, y=b.output, **ends(x=a, y=b))
    moved = raw.QuantizedBiasAdd(input=a.output, bias=b.output, **ends(input=a, bias=b), out_type=tf.qint32)
    for result, room in ((added, 1 << 14), (moved, 1 << 17)):
        found, step = numbers(session, result)
        assert step == pytest.approx(room * HIGH / 2**31, rel=1e-6)
        # Half a step for each term, and one for the integer that stands for 0, which is -1 or 0.
        np.testing.assert_allclose(found, x + y, rtol=0, atol=2 * step)


def test_rectified_numbers(session: tf.Session) -> None:
    x = some(50)
    a = quantized(x)
    arguments = {"features": a.output, **ends(features=a)}
    for result, most in (
        (raw.QuantizedRelu(**arguments), HIGH),
        (raw.QuantizedRelu6(**arguments), 6.0),
        (raw.QuantizedReluX(**arguments, max_value=1.5), 1.5),
    ):
        assert result.activations.dtype is tf.quint8
        np.testing.assert_allclose(numbers(session, result)[0], np.clip(x, 0, most), atol=1e-6)


def test_pooled_integers(session: tf.Session) -> None:
    integers = random.integers(0, 256, (1, 4, 6, 2))
    a = quantized((integers * STEP + LOW).astype(np.float32))
    window: dict[str, Any] = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    windows = integers.reshape(1, 2, 2, 3, 2, 2)
    most = raw.QuantizedMaxPool(input=a.output, **ends(input=a), **window)
    mean = raw.QuantizedAvgPool(input=a.output, **ends(input=a), **window)
    assert session.run(most.output).tolist() == windows.max((2, 4)).tolist()
    assert session.run(mean.output).tolist() == (windows.sum((2, 4)) // 4).tolist()


def test_another_shape(session: tf.Session) -> None:
    x = some(2, 3)
    a = quantized(x)
    column = raw.QuantizedReshape(tensor=a.output, shape=[-1, 1], input_min=a.output_min, input_max=a.output_max)
    assert column.output.shape.as_list() == [6, 1]
    np.testing.assert_allclose(numbers(session, column)[0], x.reshape(-1, 1), atol=1e-6)


def test_joined_tensors_cover_the_ranges_of_all(session: tf.Session) -> None:
    x, y = some(2, 3), np.float32(random.uniform(-4, 1, (2, 2)))
    a, b = quantized(x), tf.quantize(y, -4.0, 1.0, tf.quint8, "MIN_FIRST")
    joined = raw.QuantizedConcat(
        concat_dim=1, values=[a.output, b.output], input_mins=[a.output_min, b.output_min],
        input_maxes=[a.output_max, b.output_max],
    )  # fmt: skip
    assert joined.output.shape.as_list() == [2, 5]
    assert session.run([joined.output_min, joined.output_max]) == [-4.0, np.float32(HIGH)]
    found, step = numbers(session, joined)
    np.testing.assert_allclose(found, np.concatenate([x, y], 1), atol=2 * step)


def test_sums_with_fewer_bits(session: tf.Session) -> None:
    x, y = some(3, 4), some(4, 5)
    a, b = quantized(x), quantized(y)
    product = raw.QuantizedMatMul(a=a.output, b=b.output, **ends(a=a, b=b))
    given = {"input": product.out, "input_min": product.min_out, "input_max": product.max_out}
    low, high = session.run(list(raw.RequantizationRange(**given)))
    assert (low, high) == pytest.approx((min(0, (x @ y).min()), (x @ y).max()), abs=STEP**2)
    for small in (
        raw.Requantize(**given, requested_output_min=low, requested_output_max=high, out_type=tf.quint8),
        raw.QuantizeDownAndShrinkRange(**given, out_type=tf.quint8),
    ):
        found, step = numbers(session, small)
        assert step == pytest.approx((high - low) / 255)
        np.testing.assert_allclose(found, x @ y, atol=1.01 * step)


def test_wrong_calls(session: tf.Session) -> None:
    a = quantized(some(2, 3))
    with pytest.raises(ValueError, match="QuantizedMatMul 'product': "):
        raw.QuantizedMatMul(a=a.output, b=a.output, **ends(a=a, b=a), name="product")
    with pytest.raises(ValueError, match=r"QuantizedConcat 'joined': inputs have shapes \(2, 3\), \(3, 3\); "):
        raw.QuantizedConcat(
            concat_dim=1, values=[a.output, quantized(some(3, 3)).output], input_mins=[0.0, 0.0],
            input_maxes=[1.0, 1.0], name="joined",
        )  # fmt: skip
    turned = raw.QuantizedRelu(features=a.output, min_features=1.0, max_features=-1.0, name="turned")
    words = r"QuantizedRelu 'turned': a range is 1.0 to -1.0; its first end must be at most its second"
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        session.run(turned.activations)
