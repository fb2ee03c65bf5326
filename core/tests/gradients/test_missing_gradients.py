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
