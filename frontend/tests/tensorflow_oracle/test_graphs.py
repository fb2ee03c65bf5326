"""Graphs built in TensorFlow: arithmetic, arrays, reductions, layers and small models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

RNG = np.random.default_rng(7)
A = RNG.standard_normal((4, 5)).astype(np.float32)
B = RNG.standard_normal((5,)).astype(np.float32)
POSITIVE = (np.abs(A) + 0.1).astype(np.float32)
CUBE = RNG.standard_normal((2, 3, 4)).astype(np.float32)
IMAGE = RNG.standard_normal((2, 8, 9, 3)).astype(np.float32)
INTEGERS = np.array([[7, -7, 3], [-3, 12, 5]], np.int32)
SQUARE = RNG.standard_normal((5, 5)).astype(np.float32)
TEXTS = np.array([b"a", b"bc", b"", b"a"], object)


def weights(*shape: int) -> np.ndarray:
    return (np.random.default_rng(sum(shape)).standard_normal(shape) * 0.3).astype(np.float32)


def layer_norm(tf: Any, x: Any) -> Any:
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return (x - mean) * tf.rsqrt(variance + 1e-6)


def attention(tf: Any, q: Any, k: Any, v: Any) -> Any:
    scores = tf.matmul(q, k, transpose_b=True) / np.sqrt(q.shape.as_list()[-1])
    return tf.matmul(tf.nn.softmax(scores), v)


def lstm_step(tf: Any, x: Any, h: Any, c: Any) -> Any:
    gates = tf.matmul(tf.concat([x, h], 1), weights(8, 12)) + weights(12)
    i, g, f, o = tf.split(gates, 4, 1)[0:4]
    c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
    return tf.sigmoid(o) * tf.tanh(c), c


ARITHMETIC: dict[str, Callable[..., Any]] = {
    "polynomial": lambda tf, f: tf.reduce_sum((f(A) * 2 + 1) ** 3 - f(A)),
    "broadcast_rows": lambda tf, f: f(A) + f(B) * tf.constant([[2.0], [3.0], [4.0], [5.0]]),
    "broadcast_unknown_shapes": lambda tf, f: f(A, [None, None]) - f(B, None),
    "division_kinds": lambda tf, f: [f(INTEGERS) // 4, f(INTEGERS) % 4, tf.truncatediv(f(INTEGERS), 4), f(A) / f(B)],
    "negative_modulo": lambda tf, f: [tf.floormod(f(A), -0.3), tf.truncatemod(f(INTEGERS), -4)],
    "int_overflow": lambda tf, f: f(np.array([2**31 - 1], np.int32)) + 1,
    "unsigned": lambda tf, f: f(np.array([250, 3], np.uint8)) - f(np.array([251, 4], np.uint8)),
    "float16_chain": lambda tf, f: tf.tanh(tf.cast(f(A), tf.float16) * 0.5) + 1,
    "bfloat16_chain": lambda tf, f: tf.cast(tf.cast(f(A), tf.bfloat16) * 3, tf.float32),
    "float64_functions": lambda tf, f: tf.lgamma(tf.cast(f(POSITIVE), tf.float64)) + tf.erf(tf.cast(f(A), tf.float64)),
    "complex": lambda tf, f: f((A + 1j * A[::-1]).astype(np.complex64)) * tf.constant(1 - 2j, tf.complex64),
    "trigonometry": lambda tf, f: tf.sin(f(A)) ** 2 + tf.cos(f(A)) * tf.tan(f(A)) - tf.atan2(f(A), f(B)),
    "hyperbolic": lambda tf, f: [tf.sinh(f(A)), tf.cosh(f(A)), tf.asinh(f(A)), tf.acosh(f(POSITIVE) + 1)],
    "inverse_trigonometry": lambda tf, f: [tf.asin(tf.tanh(f(A))), tf.acos(tf.tanh(f(A))), tf.atan(f(A))],
    "exponentials": lambda tf, f: [tf.exp(f(A)), tf.math.expm1(f(A)), tf.log(f(POSITIVE)), tf.log1p(f(POSITIVE))],
    "roots": lambda tf, f: [tf.sqrt(f(POSITIVE)), tf.rsqrt(f(POSITIVE)), tf.square(f(A)), tf.reciprocal(f(POSITIVE))],
    "rounding": lambda tf, f: [
        tf.floor(f(A)),
        tf.ceil(f(A)),
        tf.round(f(A) * 2),
        tf.math.rint(f(A) * 2),
        tf.sign(f(A)),
    ],
    "specials": lambda tf, f: [g(f(np.array([np.nan, np.inf, -0.0, 1], np.float32))) for g in (tf.is_nan, tf.is_inf)],
    "nan_propagates": lambda tf, f: tf.maximum(f(np.array([np.nan, 1], np.float32)), 0.0),
    "safe_division": lambda tf, f: tf.div_no_nan(f(A), tf.constant([0.0, 1, 2, 0, 4])),
    "xlogy": lambda tf, f: [tf.math.xlogy(f(POSITIVE), f(POSITIVE)), tf.math.xdivy(f(A), f(POSITIVE))],
    "clip": lambda tf, f: tf.clip_by_value(f(A), -0.5, 0.5),
    "clip_by_norm": lambda tf, f: tf.clip_by_norm(f(A), 1.0, axes=[1]),
    "comparisons": lambda tf, f: [f(A) < f(B), f(A) >= 0.0, tf.equal(f(INTEGERS), 3), tf.not_equal(f(INTEGERS), 3)],
    "logic": lambda tf, f: tf.logical_xor(f(A) > 0, tf.logical_not(f(B) > 0)),
    "bits": lambda tf, f: [
        tf.bitwise.bitwise_and(f(INTEGERS), 6),
        tf.bitwise.left_shift(f(INTEGERS), 2),
        tf.bitwise.right_shift(f(INTEGERS), 1),
        tf.bitwise.invert(f(INTEGERS)),
    ],
    "select": lambda tf, f: tf.where_v2(f(A) > 0, f(A), f(B)),
    "select_v1": lambda tf, f: tf.where(tf.constant([True, False, True, False]), f(A), -f(A)),
    "add_n": lambda tf, f: tf.add_n([f(A), f(A) * 2, tf.ones([4, 5])]),
    "casts": lambda tf, f: [tf.cast(f(A), t) for t in (tf.int8, tf.int64, tf.float64, tf.bool, tf.complex64)],
    "squared_difference": lambda tf, f: tf.math.squared_difference(f(A), f(B)),
    "powers": lambda tf, f: [tf.pow(f(POSITIVE), f(B)), tf.pow(f(INTEGERS), 3)],
}

ARRAYS: dict[str, Callable[..., Any]] = {
    "reshape_by_shape": lambda tf, f: tf.reshape(f(CUBE, [None, 3, 4]), [-1, tf.shape(f(CUBE))[2]]),
    "flatten_dynamic": lambda tf, f: tf.reshape(f(CUBE, [None, None, 4]), [tf.shape(f(CUBE))[0], -1]),
    "transpose": lambda tf, f: [tf.transpose(f(CUBE)), tf.transpose(f(CUBE), [1, 0, 2])],
    "expand_squeeze": lambda tf, f: tf.squeeze(tf.expand_dims(tf.expand_dims(f(A), 1), -1), [1]),
    "concat_split": lambda tf, f: tf.split(tf.concat([f(A), f(A) + 1, f(A)[:, :2]], 1), 3, 1),
    "split_sizes": lambda tf, f: tf.split(f(A), [1, 3, 1], 1),
    "stack_unstack": lambda tf, f: tf.unstack(tf.stack([f(A), f(A) * 2], 1), axis=2),
    "slices": lambda tf, f: [f(CUBE)[1], f(CUBE)[:, 1:], f(CUBE)[..., -1], f(CUBE)[:, ::-1, tf.newaxis, 2]],
    "slice_by_tensor": lambda tf, f: f(CUBE)[f(np.int32(0)) :, : f(np.int32(2)), f(np.int32(1))],
    "slice_negative_steps": lambda tf, f: f(A)[3:0:-2, -1:-5:-2],
    "tf_slice": lambda tf, f: tf.slice(f(CUBE), [0, 1, 2], [-1, 2, 1]),
    "gather": lambda tf, f: [tf.gather(f(A), [3, 0, 3]), tf.gather(f(A), [[0], [2]], axis=1)],
    "batched_gather": lambda tf, f: tf.gather(f(CUBE), [[0, 2], [1, 1]], axis=1, batch_dims=1),
    "gather_nd": lambda tf, f: tf.gather_nd(f(CUBE), [[[0, 1]], [[1, 2]]]),
    "scatter_nd": lambda tf, f: tf.scatter_nd([[1], [3], [1]], f(A)[:3], [6, 5]),
    "one_hot": lambda tf, f: [tf.one_hot([0, 2, -1], 3), tf.one_hot([1, 0], 2, 5.0, -1.0, 0)],
    "pads": lambda tf, f: [
        tf.pad(f(A), [[1, 0], [2, 3]], constant_values=7.0),
        tf.pad(f(A), [[1, 1], [2, 2]], "REFLECT"),
    ],
    "pad_symmetric": lambda tf, f: tf.pad(f(A), [[2, 0], [0, 4]], "SYMMETRIC"),
    "tile": lambda tf, f: tf.tile(f(A), [2, 3]),
    "broadcast_to": lambda tf, f: tf.broadcast_to(f(B), [2, 3, 5]),
    "reverse": lambda tf, f: tf.reverse(f(CUBE), [0, -1]),
    "fill_like": lambda tf, f: [tf.zeros_like(f(A)), tf.ones_like(f(INTEGERS)), tf.fill(tf.shape(f(A)), 3.0)],
    "ranges": lambda tf, f: [tf.range(f(np.int32(2)), 20, 3), tf.range(0.0, 1.0, 0.3), tf.linspace(0.0, 1.0, 7)],
    "where_indices": lambda tf, f: tf.where(f(A) > 0),
    "boolean_mask": lambda tf, f: tf.boolean_mask(f(A), f(A)[:, 0] > -10),
    "unique": lambda tf, f: list(tf.unique(f(np.array([3, 1, 3, 7, 1], np.int64)))),
    "top_k": lambda tf, f: list(tf.nn.top_k(f(A), 3)),
    "invert_permutation": lambda tf, f: tf.invert_permutation(f(np.array([2, 0, 1], np.int32))),
    "shapes": lambda tf, f: [tf.shape(f(CUBE)), tf.size(f(CUBE)), tf.rank(f(CUBE)), *tf.shape_n([f(A), f(B)])],
    "meshgrid": lambda tf, f: tf.meshgrid(tf.range(3), tf.range(4)),
    "strings": lambda tf, f: [tf.equal(f(TEXTS), b"a"), tf.gather(f(TEXTS), [1, 3]), tf.concat([f(TEXTS), ["x"]], 0)],
    "matrix_diag_by_hand": lambda tf, f: f(SQUARE) * tf.one_hot(tf.range(5), 5),
    "checks": lambda tf, f: tf.check_numerics(tf.identity(f(A)), "finite"),
    "asserts": lambda tf, f: tf.tuple([f(A)], control_inputs=[tf.debugging.assert_positive(f(POSITIVE))])[0],
}

REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sums": lambda tf, f: [tf.reduce_sum(f(CUBE)), tf.reduce_sum(f(CUBE), 1), tf.reduce_sum(f(CUBE), [0, 2], True)],
    "means": lambda tf, f: [tf.reduce_mean(f(CUBE), -1), tf.reduce_mean(tf.cast(f(INTEGERS), tf.float64), 0)],
    "extremes": lambda tf, f: [tf.reduce_max(f(CUBE), 0), tf.reduce_min(f(CUBE)), tf.reduce_prod(f(INTEGERS), 1)],
    "logic": lambda tf, f: [tf.reduce_any(f(A) > 1, 1), tf.reduce_all(f(A) < 3)],
    "by_tensor_axis": lambda tf, f: tf.reduce_sum(f(CUBE), tf.range(tf.rank(f(CUBE)) - 1)),
    "arg": lambda tf, f: [tf.argmax(f(CUBE), 2), tf.argmin(f(CUBE), 0, output_type=tf.int32)],
    "cumulative": lambda tf, f: [tf.cumsum(f(A), 1, reverse=True), tf.cumprod(f(A), 0, exclusive=True)],
    "norms": lambda tf, f: [tf.norm(f(A)), tf.norm(f(A), axis=1, ord=1), tf.nn.l2_normalize(f(A), 1)],
    "logsumexp": lambda tf, f: tf.reduce_logsumexp(f(A), 1),
    "variance": lambda tf, f: list(tf.nn.moments(f(CUBE), [0, 1])),
    "empty": lambda tf, f: [tf.reduce_sum(f(A)[:0], 0), tf.reduce_max(f(A)[:, :0], 1), tf.reduce_prod(f(A)[:0])],
}

LINEAR: dict[str, Callable[..., Any]] = {
    "matmul": lambda tf, f: tf.matmul(f(A), f(SQUARE)),
    "matmul_transposed": lambda tf, f: [
        tf.matmul(f(A), f(A), transpose_b=True),
        tf.matmul(f(A), f(A), transpose_a=True),
    ],
    "matmul_unknown": lambda tf, f: tf.matmul(f(A, [None, None]), f(SQUARE, [None, None])),
    "batch_matmul": lambda tf, f: tf.matmul(f(CUBE), f(CUBE), adjoint_b=True),
    "batch_matmul_broadcast": lambda tf, f: tf.linalg.matmul(f(CUBE), weights(4, 6)),
    "matmul_float64": lambda tf, f: tf.matmul(tf.cast(f(A), tf.float64), tf.cast(f(SQUARE), tf.float64)),
    "matmul_integer": lambda tf, f: tf.matmul(f(INTEGERS), f(INTEGERS), transpose_b=True),
    "einsum": lambda tf, f: [tf.einsum("bij,bkj->bik", f(CUBE), f(CUBE)), tf.einsum("bij->jb", f(CUBE))],
    "tensordot": lambda tf, f: tf.tensordot(f(CUBE), f(CUBE), [[0, 2], [0, 2]]),
    "outer": lambda tf, f: f(B)[:, None] * f(B)[None, :],
    "power_iteration": lambda tf, f: tf.nn.l2_normalize(tf.matmul(f(SQUARE), tf.matmul(f(SQUARE), f(SQUARE)))),
}

NEURAL: dict[str, Callable[..., Any]] = {
    "dense": lambda tf, f: tf.nn.relu(tf.nn.bias_add(tf.matmul(f(A), weights(5, 7)), weights(7))),
    "activations": lambda tf, f: [
        g(f(A)) for g in (tf.nn.relu6, tf.nn.elu, tf.nn.selu, tf.nn.softplus, tf.nn.softsign, tf.nn.leaky_relu)
    ],
    "gelu": lambda tf, f: 0.5 * f(A) * (1 + tf.erf(f(A) / np.float32(np.sqrt(2)))),
    "swish": lambda tf, f: f(A) * tf.sigmoid(f(A)),
    "softmaxes": lambda tf, f: [tf.nn.softmax(f(CUBE)), tf.nn.log_softmax(f(A)), tf.nn.softmax(f(CUBE), axis=1)],
    "cross_entropy_by_hand": lambda tf, f: -tf.reduce_sum(tf.one_hot([0, 2, 1, 4], 5) * tf.nn.log_softmax(f(A)), 1),
    "conv_same": lambda tf, f: tf.nn.conv2d(f(IMAGE), weights(3, 3, 3, 4), strides=[1, 1, 1, 1], padding="SAME"),
    "conv_valid_strided": lambda tf, f: tf.nn.conv2d(
        f(IMAGE), weights(2, 3, 3, 5), strides=[1, 2, 3, 1], padding="VALID"
    ),
    "conv_dilated": lambda tf, f: tf.nn.conv2d(
        f(IMAGE), weights(3, 3, 3, 2), strides=[1, 1, 1, 1], padding="VALID", dilations=[1, 2, 2, 1]
    ),
    "conv_explicit_pads": lambda tf, f: tf.nn.conv2d(
        f(IMAGE), weights(3, 3, 3, 2), strides=[1, 2, 2, 1], padding=[[0, 0], [1, 2], [0, 1], [0, 0]]
    ),
    "conv_pointwise": lambda tf, f: tf.nn.conv2d(f(IMAGE), weights(1, 1, 3, 8), strides=[1, 1, 1, 1], padding="SAME"),
    "depthwise": lambda tf, f: tf.nn.depthwise_conv2d(f(IMAGE), weights(3, 3, 3, 2), [1, 1, 1, 1], "SAME"),
    "separable": lambda tf, f: tf.nn.separable_conv2d(
        f(IMAGE), weights(3, 3, 3, 2), weights(1, 1, 6, 4), [1, 2, 2, 1], "SAME"
    ),
    "max_pool": lambda tf, f: tf.nn.max_pool2d(f(IMAGE), 3, 2, "SAME"),
    "avg_pool": lambda tf, f: tf.nn.avg_pool2d(f(IMAGE), [2, 3], [2, 1], "VALID"),
    "global_pool": lambda tf, f: tf.reduce_mean(f(IMAGE), [1, 2]),
    "batch_norm_inference": lambda tf, f: tf.nn.fused_batch_norm(
        f(IMAGE), weights(3), weights(3) + 1, mean=weights(3), variance=np.abs(weights(3)) + 0.5, is_training=False
    )[0],
    "batch_norm_training": lambda tf, f: list(tf.nn.fused_batch_norm(f(IMAGE), weights(3), weights(3) + 1)[:1]),
    "layer_norm": lambda tf, f: layer_norm(tf, f(CUBE)),
    "attention": lambda tf, f: attention(tf, f(CUBE), f(CUBE) * 2, f(CUBE) + 1),
    "masked_attention": lambda tf, f: attention(tf, f(CUBE), tf.where_v2(f(CUBE) > 1, 0.0, f(CUBE)), f(CUBE)),
    "lstm_step": lambda tf, f: list(lstm_step(tf, f(A), f(weights(4, 3)), f(weights(4, 3) + 1))),
    "residual_block": lambda tf, f: tf.nn.relu(
        f(IMAGE)
        + tf.nn.conv2d(
            tf.nn.relu(tf.nn.conv2d(f(IMAGE), weights(3, 3, 3, 6), strides=[1, 1, 1, 1], padding="SAME")),
            weights(3, 3, 6, 3),
            strides=[1, 1, 1, 1],
            padding="SAME",
        )
    ),
    "upsample_by_tile": lambda tf, f: tf.reshape(
        tf.tile(f(IMAGE)[:, :, None, :, None, :], [1, 1, 2, 1, 2, 1]), [2, 16, 18, 3]
    ),
    "mlp": lambda tf, f: tf.nn.softmax(tf.matmul(tf.tanh(tf.matmul(f(A), weights(5, 16))), weights(16, 3))),
    "embedding": lambda tf, f: tf.reduce_mean(tf.nn.embedding_lookup(tf.constant(weights(10, 4)), [[1, 2], [9, 0]]), 1),
    "mlp_gradient": lambda tf, f: mlp_gradient(tf, f),
    "logistic_gradient": lambda tf, f: logistic_gradient(tf, f),
}


def mlp_gradient(tf: Any, f: Any) -> Any:
    """TensorFlow's own gradient graph, imported like any other."""
    x, w = f(A), tf.constant(weights(5, 6))
    loss = tf.reduce_mean(tf.square(tf.sin(tf.matmul(x, w)) * 2 - 1))
    return tf.gradients(loss, [x, w])


def logistic_gradient(tf: Any, f: Any) -> Any:
    x, w = f(A, [None, 5]), tf.constant(weights(5, 1))
    p = 1 / (1 + tf.exp(-tf.matmul(x, w)))
    loss = -tf.reduce_sum(tf.log(p + 1e-6))
    return tf.gradients(loss, [w])


ALL = {
    f"{family}_{name}": build
    for family, builds in {
        "arithmetic": ARITHMETIC,
        "arrays": ARRAYS,
        "reductions": REDUCTIONS,
        "linear": LINEAR,
        "neural": NEURAL,
    }.items()
    for name, build in builds.items()
}


@pytest.mark.parametrize("build", ALL.values(), ids=ALL.keys())
def test_graph_gives_tensorflows_result(build: Callable[..., Any], carry_over: Callable[[Any], int]) -> None:
    assert carry_over(build) > 0
