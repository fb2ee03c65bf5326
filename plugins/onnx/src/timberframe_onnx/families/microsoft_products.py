"""Ops of com.microsoft that real files have: fused products, activations and normalizations, weights of 4 bits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import timberframe_onnx.families.normalization as normalization
from timberframe_onnx.families.convolution import convolved
from timberframe_onnx.families.elementwise import scalar
from timberframe_onnx.families.products import matmul
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import Node
from timberframe_onnx.translation.registry import MICROSOFT, translates
from timberframe_onnx.translation.values import Tensor


@translates("FusedMatMul", "TransposeMatMul", domain=MICROSOFT)
def _fused_matmul(node: Node, a: Tensor, b: Tensor) -> Tensor:
    plain = not node.get("transBatchA", 0) and not node.get("transBatchB", 0)
    node.require(plain, "it has transBatchA or transBatchB")
    if node.get("transA", 0):
        a = tf.linalg.matrix_transpose(a)
    if node.get("transB", 0):
        b = tf.linalg.matrix_transpose(b)
    made = matmul(a, b)
    alpha = node.get("alpha", 1.0)
    return made if alpha == 1.0 else made * scalar(alpha, made)


@translates("FusedGemm", domain=MICROSOFT)
def _fused_gemm(node: Node, a: Tensor, b: Tensor, c: Tensor = None) -> Tensor:
    made = tf.matmul(a, b, bool(node.get("transA", 0)), bool(node.get("transB", 0)))
    made = made * scalar(node.get("alpha", 1.0), made)
    if c is not None:
        made = made + c * scalar(node.get("beta", 1.0), c)
    return _activated(node, made)


def _activated(node: Node, x: Tensor) -> Tensor:
    """Returns what a fused op does last."""
    name = node.get("activation", "")
    functions = {"": tf.identity, "Relu": tf.nn.relu, "Sigmoid": tf.sigmoid, "Tanh": tf.tanh}
    if name == "LeakyRelu":
        return tf.nn.leaky_relu(x, node.get("activation_alpha", node.get("leaky_relu_alpha", 0.01)))
    node.require(name in functions, f"its activation is '{name}'")
    return functions[name](x)


@translates("Gelu", domain=MICROSOFT)
def _gelu(node: Node, x: Tensor) -> Tensor:
    return scalar(0.5, x) * x * (scalar(1, x) + tf.erf(x * scalar(math.sqrt(0.5), x)))


@translates("BiasGelu", domain=MICROSOFT)
def _bias_gelu(node: Node, x: Tensor, bias: Tensor) -> Tensor:
    return _gelu(node, x + bias)


@translates("FastGelu", domain=MICROSOFT)
def _fast_gelu(node: Node, x: Tensor, bias: Tensor = None) -> Tensor:
    x = x if bias is None else x + bias
    inner = scalar(math.sqrt(2 / math.pi), x) * (x + scalar(0.044715, x) * x * x * x)
    return scalar(0.5, x) * x * (scalar(1, x) + tf.tanh(inner))


@translates("QuickGelu", domain=MICROSOFT)
def _quick_gelu(node: Node, x: Tensor) -> Tensor:
    return x * tf.sigmoid(x * scalar(node.get("alpha", 1.702), x))


@translates("SimplifiedLayerNormalization")
def _simplified(node: Node, x: Tensor, scale: Tensor) -> Tensor:
    return normalization.rms_normalized(node, x, scale)


@translates("SkipLayerNormalization", domain=MICROSOFT)
def _skip_normalization(
    node: Node, x: Tensor, skip: Tensor, gamma: Tensor, beta: Tensor = None, bias: Tensor = None
) -> tuple[Any, ...]:
    total = x + skip if bias is None else x + skip + bias
    made, mean, inverse = normalization.layer_normalized(node, total, gamma, beta)
    return made, mean, inverse, total


@translates("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def _skip_simplified(node: Node, x: Tensor, skip: Tensor, gamma: Tensor, bias: Tensor = None) -> tuple[Any, ...]:
    total = x + skip if bias is None else x + skip + bias
    return normalization.rms_normalized(node, total, gamma), None, None, total


@translates("EmbedLayerNormalization", domain=MICROSOFT)
def _embeddings(
    node: Node,
    words: Tensor,
    segments: Tensor,
    word_table: Tensor,
    place_table: Tensor,
    segment_table: Tensor,
    gamma: Tensor,
    beta: Tensor,
    mask: Tensor = None,
    places: Tensor = None,
) -> tuple[Any, ...]:
    total = tf.gather(word_table, words)
    rows = place_table[: tf.shape(words)[1]] if places is None else tf.gather(place_table, places)
    total = total + rows
    if segments is not None:
        total = total + tf.gather(segment_table, segments)
    made, _, _ = normalization.layer_normalized(node, total, gamma, beta)
    counts = tf.zeros([tf.shape(words)[0]], tf.int32) if mask is None else tf.reduce_sum(mask, 1)
    return made, counts, total


@translates("MatMulNBits", domain=MICROSOFT)
def _matmul_bits(
    node: Node,
    x: Tensor,
    packed: Tensor,
    scales: Tensor,
    zeros: Tensor = None,
    groups: Tensor = None,
    bias: Tensor = None,
) -> Tensor:
    """Weights [outputs, blocks, bytes of a block], low bits first, with a scale for each block."""
    inputs, outputs = node.get("K"), node.get("N")
    bits, block = node.get("bits", 4), node.get("block_size")
    node.require(bits in (2, 4, 8), f"its weights have {bits} bits")
    node.require(groups is None, "it has g_idx, the order of groups")
    blocks = -(-inputs // block)
    codes = tf.reshape(_unpacked(packed, bits), [outputs, blocks, -1])[..., :block]
    points: Any = float(1 << (bits - 1))
    if zeros is not None and zeros.dtype == tf.uint8:
        row = tf.reshape(_unpacked(tf.reshape(zeros, [outputs, -1]), bits), [outputs, -1])[:, :blocks]
        points = tf.cast(row, tf.float32)[..., None]
    elif zeros is not None:
        points = tf.cast(tf.reshape(zeros, [outputs, blocks, 1]), tf.float32)
    factors = tf.cast(tf.reshape(scales, [outputs, blocks, 1]), tf.float32)
    weights = tf.reshape((tf.cast(codes, tf.float32) - points) * factors, [outputs, -1])[:, :inputs]
    made = matmul(tf.cast(x, tf.float32), tf.transpose(weights))
    made = made if bias is None else made + tf.cast(bias, tf.float32)
    return tf.cast(made, x.dtype)


def _unpacked(packed: Tensor, bits: int) -> Tensor:
    """Returns the codes of bytes along a new last axis, those in the low bits first."""
    if bits == 8:
        return packed
    shifts = tf.constant(np.arange(0, 8, bits), tf.uint8)
    return tf.bitwise.bitwise_and(
        tf.bitwise.right_shift(packed[..., None], shifts), tf.constant((1 << bits) - 1, tf.uint8)
    )


@translates("FusedConv", domain=MICROSOFT)
def _fused_conv(node: Node, x: Tensor, w: Tensor, bias: Tensor = None, added: Tensor = None) -> Tensor:
    made = convolved(node, x, w)
    made = made if bias is None else made + tf.reshape(bias, [-1] + [1] * (node.rank(x) - 2))
    return _activated(node, made if added is None else made + added)


@translates("Inverse", domain=MICROSOFT)
def _inverse(node: Node, x: Tensor) -> Tensor:
    return tf.linalg.inv(x)


@translates("Rfft", domain=MICROSOFT)
def _rfft(node: Node, x: Tensor) -> Tensor:
    node.require(node.get("signal_ndim", 1) == 1, "it transforms other than one axis")
    made = tf.spectral.rfft(x)
    return tf.stack([tf.real(made), tf.imag(made)], -1)


@translates("Tokenizer", domain=MICROSOFT)
def _tokenizer(node: Node, x: Tensor) -> Tensor:
    """Words of each text, which separators part; shorter rows are filled up."""
    separators = node.get("separators")
    if node.get("tokenexp"):
        node.refuse("it finds words by an expression (tokenexp)")
    node.require(not node.get("mark", 0), "it marks beginning and end (mark)")
    flat = tf.reshape(x, [-1])
    if not separators or separators == [""]:
        words = tf.strings.regex_replace(flat, "(.)", "\\1\x00")
    else:
        words = tf.strings.regex_replace(flat, "|".join(f"(?:{s})" for s in separators), "\x00")
    indices, values, shape = tf.raw_ops.StringSplitV2(input=words, sep="\x00", maxsplit=-1)
    least = max(node.get("mincharnum", 1), 1)
    kept = tf.strings.length(values, unit="UTF8_CHAR") >= least
    rows = tf.boolean_mask(indices[:, 0], kept)
    order = tf.range(tf.size(rows, out_type=tf.int64))
    first = tf.unsorted_segment_min(order, rows, shape[0])
    places = order - tf.gather(first, rows)
    width = tf.maximum(tf.reduce_max(tf.concat([places, [-1]], 0)) + 1, 1)
    table = tf.sparse_to_dense(
        tf.stack([rows, places], 1), tf.stack([shape[0], width]), tf.boolean_mask(values, kept),
        default_value=node.get("pad_value", ""),
    )  # fmt: skip
    return tf.reshape(table, tf.concat([tf.shape(x, out_type=tf.int64), tf.reshape(width, [1])], 0))
