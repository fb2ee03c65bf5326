"""Gradients of convolution, pooling and normalisation are TensorFlow's, in first and second order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe

Compare = Callable[..., None]
# TensorFlow differentiates no dilated convolution on a CPU.
GEOMETRIES: dict[str, dict[str, Any]] = {
    "same": {"strides": [1, 1, 1, 1], "padding": "SAME"},
    "strided": {"strides": [1, 2, 3, 1], "padding": "SAME"},
    "explicit": {"strides": [1, 1, 2, 1], "padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 2, 0, 1, 0, 0]},
}
WINDOWS: dict[str, dict[str, Any]] = {
    "apart": {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"},
    "overlapping": {"ksize": [1, 3, 2, 1], "strides": [1, 1, 2, 1], "padding": "SAME"},
}


def numbers(shape: tuple[int, ...], dtype: str = "float64", seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(dtype)


def output_of(tensorflow: Any, op: str, **arguments: Any) -> np.ndarray:
    """Returns what TensorFlow's op gives."""
    with tensorflow.Graph().as_default(), tensorflow.Session() as session:
        result = getattr(tensorflow.raw_ops, op)(**arguments)
        return np.asarray(session.run(result[0] if isinstance(result, tuple) else result))


@pytest.mark.parametrize("attrs", GEOMETRIES.values(), ids=GEOMETRIES)
@pytest.mark.parametrize("unknown", [False, True], ids=["known", "unknown"])
def test_convolution(compare: Compare, attrs: dict[str, Any], unknown: bool) -> None:
    compare("Conv2D", {"input": numbers((2, 7, 8, 3)), "filter": numbers((3, 2, 3, 4))}, attrs, unknown)


@pytest.mark.parametrize("attrs", GEOMETRIES.values(), ids=GEOMETRIES)
def test_gradients_of_convolution(compare: Compare, tensorflow: Any, attrs: dict[str, Any]) -> None:
    x, w = numbers((2, 7, 8, 3)), numbers((3, 2, 3, 4))
    dy = numbers(output_of(tensorflow, "Conv2D", input=x, filter=w, **attrs).shape)
    sizes = {"x": np.array(x.shape, np.int32), "w": np.array(w.shape, np.int32)}
    compare("Conv2DBackpropInput", {"input_sizes": sizes["x"], "filter": w, "out_backprop": dy}, attrs)
    compare("Conv2DBackpropFilter", {"input": x, "filter_sizes": sizes["w"], "out_backprop": dy}, attrs)


@pytest.mark.parametrize("op", ["DepthwiseConv2dNative", "BackpropInput", "BackpropFilter"])
def test_depthwise_convolution(compare: Compare, op: str) -> None:
    attrs = {"strides": [1, 2, 2, 1], "padding": "SAME"}
    x, w, dy = numbers((2, 7, 8, 3)), numbers((3, 2, 3, 2)), numbers((2, 4, 4, 6))
    inputs: dict[str, dict[str, np.ndarray]] = {
        "BackpropInput": {"input_sizes": np.array(x.shape, np.int32), "filter": w, "out_backprop": dy},
        "BackpropFilter": {"input": x, "filter_sizes": np.array(w.shape, np.int32), "out_backprop": dy},
    }
    name = f"DepthwiseConv2dNative{op}" if op in inputs else op
    compare(name, inputs.get(op, {"input": x, "filter": w}), attrs)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("unknown", [False, True], ids=["known", "unknown"])
def test_bias(compare: Compare, data_format: str, unknown: bool) -> None:
    x = numbers((2, 3, 4, 3))
    compare("BiasAdd", {"value": x, "bias": numbers((3,))}, {"data_format": data_format}, unknown)
    compare("BiasAddGrad", {"out_backprop": x}, {"data_format": data_format}, unknown)


@pytest.mark.parametrize("op", ["MaxPool", "AvgPool", "MaxPoolWithArgmax"])
@pytest.mark.parametrize("attrs", WINDOWS.values(), ids=WINDOWS)
def test_pooling(compare: Compare, op: str, attrs: dict[str, Any]) -> None:
    compare(op, {"value" if op == "AvgPool" else "input": numbers((2, 6, 7, 3))}, attrs)


@pytest.mark.parametrize("attrs", WINDOWS.values(), ids=WINDOWS)
def test_gradients_of_pooling(compare: Compare, tensorflow: Any, attrs: dict[str, Any]) -> None:
    x = numbers((2, 6, 7, 3))
    y = output_of(tensorflow, "MaxPool", input=x, **attrs)
    compare("AvgPoolGrad", {"orig_input_shape": np.array(x.shape, np.int32), "grad": y}, attrs)
    compare("MaxPoolGrad", {"orig_input": x, "orig_output": y, "grad": numbers(y.shape)}, attrs)
    compare("MaxPoolGradGrad", {"orig_input": x, "orig_output": y, "grad": numbers(x.shape)}, attrs)


@pytest.mark.parametrize("op", ["Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"])
def test_convolution_of_volumes(compare: Compare, op: str) -> None:
    attrs = {"strides": [1, 1, 2, 1, 1], "padding": "SAME"}
    x, w, dy = numbers((1, 4, 5, 3, 2)), numbers((2, 3, 2, 2, 3)), numbers((1, 4, 3, 3, 3))
    inputs = {
        "Conv3D": {"input": x, "filter": w},
        "Conv3DBackpropInputV2": {"input_sizes": np.array(x.shape, np.int32), "filter": w, "out_backprop": dy},
        "Conv3DBackpropFilterV2": {"input": x, "filter_sizes": np.array(w.shape, np.int32), "out_backprop": dy},
    }
    compare(op, inputs[op], attrs)


@pytest.mark.parametrize("op", ["MaxPool3D", "AvgPool3D"])
def test_pooling_of_volumes(compare: Compare, op: str) -> None:
    attrs = {"ksize": [1, 2, 3, 2, 1], "strides": [1, 1, 2, 1, 1], "padding": "SAME"}
    compare(op, {"input": numbers((1, 4, 5, 3, 2), "float32")}, attrs)


def test_dilation(compare: Compare) -> None:
    inputs = {"input": numbers((2, 5, 6, 3)), "filter": numbers((3, 2, 3), seed=1)}
    compare("Dilation2D", inputs, {"strides": [1, 2, 1, 1], "rates": [1, 1, 2, 1], "padding": "SAME"})


@pytest.mark.parametrize("op", ["ResizeBilinear", "ResizeNearestNeighbor"])
@pytest.mark.parametrize("flag", ["align_corners", "half_pixel_centers"])
def test_resizing(compare: Compare, op: str, flag: str) -> None:
    compare(op, {"images": numbers((1, 3, 4, 2), "float32"), "size": np.array([7, 2], np.int32)}, {flag: True})


def test_equal_maxima_give_the_gradient_to_the_first(compare: Compare) -> None:
    compare("MaxPool", {"input": np.array([1, 2, 2, 0, 0, 0, 2, 1.0]).reshape(1, 2, 4, 1)}, WINDOWS["apart"])


def test_local_response_normalisation(compare: Compare) -> None:
    compare("LRN", {"input": numbers((1, 2, 2, 9), "float32")}, {"depth_radius": 2, "alpha": 0.1, "beta": 0.75})


@pytest.mark.parametrize("training", [True, False], ids=["training", "inference"])
def test_batch_normalisation(compare: Compare, training: bool) -> None:
    vectors = {name: numbers((3,), "float32", seed) for seed, name in enumerate(("scale", "offset", "mean"), 1)}
    inputs = {"x": numbers((4, 2, 3, 3), "float32"), **vectors, "variance": np.full(3, 0.7, "float32")}
    compare("FusedBatchNormV3", inputs, {"is_training": training, "epsilon": 0.01})


def penalty(tf: Any, x: Any, w: Any, v: Any) -> Any:
    """Returns the squared gradient by its weights of the loss of a small network."""
    hidden = tf.nn.relu(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"))
    normal, _, _ = tf.nn.fused_batch_norm(hidden, tf.ones([4]), tf.zeros([4]))
    pooled = tf.nn.max_pool(normal, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    scores = tf.matmul(tf.reshape(pooled, [2, 4 * 4 * 4]), v)
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1, 0], logits=scores)
    return sum(tf.reduce_sum(g * g) for g in tf.gradients(loss, [w, v]))


def test_second_derivatives_of_a_network(tensorflow: Any) -> None:
    arrays = [numbers(s, "float32", i) for i, s in enumerate(((2, 7, 7, 3), (3, 3, 3, 4), (64, 5)))]
    results = []
    for tf in (tensorflow, timberframe):
        with tf.Graph().as_default(), tf.Session() as session:
            tensors = [tf.constant(a) for a in arrays]
            results.append(session.run(tf.gradients(penalty(tf, *tensors), tensors)))
    for want, got in zip(*results, strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=2e-5 * np.abs(want).max())  # float32, about ten ops deep
