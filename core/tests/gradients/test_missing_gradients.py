"""Ops whose derivative is missing here as in TensorFlow: gradients through them are errors, not zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import MissingGradient

tf: Any = timberframe  # its functions take anything that converts to a tensor


def test_second_derivative_that_is_missing_is_a_lookup_error_that_names_the_op() -> None:
    with tf.Graph().as_default():
        x, filters = tf.placeholder(tf.float64, [1, 4, 4, 1]), tf.placeholder(tf.float64, [2, 2, 1])
        y = tf.nn.dilation2d(x, filter=filters, strides=[1] * 4, rates=[1] * 4, padding="VALID")
        (gradient,) = tf.gradients(tf.sin(y), x)
        with pytest.raises(LookupError, match="Dilation2DBackpropInput 'gradients/"):
            tf.gradients(tf.reduce_sum(tf.sin(gradient)) + tf.reduce_sum(x), x)


def test_missing_gradient_beside_the_path_to_the_sources_is_no_error() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        images, weight = tf.placeholder(tf.float32, [2, 2, 3]), tf.placeholder(tf.float32, [])
        (gradient,) = tf.gradients(tf.reduce_sum(tf.image.adjust_hue(images, 0.0)) * weight, weight)
        assert session.run(gradient, {images: np.ones((2, 2, 3)), weight: 2.0}) == 12


def test_stop_gradient_leaves_a_missing_gradient_out() -> None:
    with pytest.raises(LookupError, match="AdjustSaturation"):
        _gradient_of_saturation(stop=False)
    assert _gradient_of_saturation(stop=True) is None


def _gradient_of_saturation(stop: bool) -> Any:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2, 2, 3])
        return tf.gradients(tf.image.adjust_saturation(tf.stop_gradient(x) if stop else x, 0.5), x)[0]


def test_ops_with_a_missing_gradient() -> None:
    missing = {o.name for o in registry.all_ops() if isinstance(o.gradient, MissingGradient)}
    assert {"AdjustHue", "Dilation2DBackpropFilter", "FractionalMaxPoolGrad", "RandomGammaGrad"} <= missing


EXAMPLES = [tf.train.Example().SerializeToString()]


def reference() -> Any:
    return tf.raw_ops.VariableV2(shape=[2], dtype=tf.float32)


WITHOUT = {
    "Bitcast": lambda x: tf.bitcast(x, tf.bfloat16),
    "DeepCopy": lambda x: tf.raw_ops.DeepCopy(x=x),
    "InplaceAdd": lambda x: tf.raw_ops.InplaceAdd(x=x, i=[0], v=x[:1]),
    "InplaceSub": lambda x: tf.raw_ops.InplaceSub(x=x, i=[0], v=x[:1]),
    "InplaceUpdate": lambda x: tf.raw_ops.InplaceUpdate(x=x, i=[0], v=x[:1]),
    "Unique": lambda x: tf.unique(x)[0],
    "UniqueWithCounts": lambda x: tf.unique_with_counts(x)[0],
    "ListDiff": lambda x: tf.setdiff1d(x, x[:1])[0],
    "RandomPoissonV2": lambda x: tf.random.poisson(x, [2]),
    "Dequantize": lambda x: tf.quantization.dequantize(tf.cast([1, 2], tf.quint8), x[0], x[1]),
    "SparseSplit": lambda x: (
        tf.sparse_split(sp_input=tf.SparseTensor([[0], [2]], x, [4]), num_split=2, axis=0)[0].values
    ),
    "SparseDenseCwiseAdd": lambda x: tf.raw_ops.SparseDenseCwiseAdd(
        sp_indices=[[0], [1]], sp_values=x, sp_shape=[2], dense=x
    ),
    "ExtractGlimpseV2": lambda x: tf.raw_ops.ExtractGlimpseV2(
        input=tf.reshape(x, [1, 1, 2, 1]), size=[1, 1], offsets=[[0.0, 0.0]], noise="zero"
    ),
    "DrawBoundingBoxesV2": lambda x: tf.raw_ops.DrawBoundingBoxesV2(
        images=tf.reshape(x, [1, 1, 2, 1]), boxes=[[[0.0, 0.0, 1.0, 1.0]]], colors=[[1.0]]
    ),
    "NonMaxSuppressionV5": lambda x: tf.raw_ops.NonMaxSuppressionV5(
        boxes=[[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.9]], scores=x, max_output_size=2, iou_threshold=0.5,
        score_threshold=0.0, soft_nms_sigma=0.5,
    )[1],
    "DecodeCSV": lambda x: tf.decode_csv([","], [x[:1], x[1:]])[0],
    "ParseExampleV2": lambda x: tf.parse_example(EXAMPLES, {"a": tf.FixedLenFeature([2], tf.float32, x)})["a"],
    "ApplyGradientDescent": lambda x: tf.raw_ops.ApplyGradientDescent(var=reference(), alpha=0.1, delta=x),
    "ApplyAdagrad": lambda x: tf.raw_ops.ApplyAdagrad(var=reference(), accum=reference(), lr=0.1, grad=x),
    "SparseApplyAdagrad": lambda x: tf.raw_ops.SparseApplyAdagrad(
        var=reference(), accum=reference(), lr=0.1, grad=x, indices=[0, 1]
    ),
    "ScatterUpdate": lambda x: tf.raw_ops.ScatterUpdate(ref=reference(), indices=[0, 1], updates=x),
    "ScatterMax": lambda x: tf.raw_ops.ScatterMax(ref=reference(), indices=[0, 1], updates=x),
    "StatelessShuffle": lambda x: tf.raw_ops.StatelessShuffle(
        value=x, key=tf.constant([1], tf.uint64), counter=tf.constant([1, 2], tf.uint64), alg=1
    ),
}  # fmt: skip
"""Functions of two numbers through ops of which TensorFlow's registry of gradients has no entry."""


@pytest.mark.parametrize("op", WITHOUT)
def test_path_through_an_op_without_a_gradient_is_a_lookup_error(op: str) -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2])
        part = WITHOUT[op](x)
        with pytest.raises(LookupError, match=op):
            tf.gradients(tf.reduce_sum(tf.cast(part, tf.float32)) + tf.reduce_sum(x), x)


def test_writes_that_tensorflow_takes_for_constants_are_none() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2])
        written = tf.raw_ops.ScatterAdd(ref=reference(), indices=[0, 1], updates=x)
        assert tf.gradients(written, x) == [None]


def test_gradient_of_rgb_to_hsv_is_tensorflows_also_where_components_are_equal() -> None:
    colours = [[0.1, 0.5, 0.3], [0.5, 0.5, 0.5], [0.5, 0.5, 0.2], [0, 0, 0], [0.9, 0.1, 0.9], [0.2, 0.7, 0.7]]
    wanted = [
        [-2.2083333, 1.1916666, 0.41666666], [3, 0, -2], [1.2444444, 0.5555556, -2], [1, 0, 0],
        [1.3317902, -1.1111112, -0.20833336], [-1.4285715, 1.0748299, 0.33333334],
    ]  # fmt: skip
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(colours)
        found = session.run(tf.gradients(tf.image.rgb_to_hsv(x), x)[0])
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
