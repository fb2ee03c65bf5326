"""BERT (Devlin et al. 2018) with 4 layers of width 128, from the same ops as the authors' program."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import timberframe as tf
from timberframe_conformance.bench.models.layers import Layers

EPSILON = 1e-12
MASKED = -10000.0
"""Added to the attention scores of padding."""


@dataclass(frozen=True)
class Sizes:
    """Numbers of layers, channels, attention heads and known tokens, and the greatest length of a text."""

    layers: int = 4
    width: int = 128
    heads: int = 2
    vocabulary: int = 30522
    positions: int = 512


def bert(layers: Layers, tokens: Any, mask: Any, segments: Any, sizes: Sizes) -> Any:
    """Returns the pooled vector of each text. tokens, mask, segments: int32 [batch, length]."""
    batch, length = (int(d) for d in tokens.shape)
    width = layers.channels(sizes.width)

    def table(rows: int) -> Any:
        return layers.weight(layers.normal([rows, width], 1.0))

    x: Any = tf.gather(table(sizes.vocabulary), tokens)
    kinds = tf.matmul(tf.one_hot(tf.reshape(segments, [-1]), 2), table(2))
    x = x + tf.reshape(kinds, [batch, length, width])
    x = x + tf.reshape(tf.slice(table(sizes.positions), [0, 0], [length, -1]), [1, length, width])
    x = tf.reshape(layer_norm(layers, x), [batch * length, width])
    added = (1.0 - tf.cast(tf.reshape(mask, [batch, 1, 1, length]), tf.float32)) * MASKED
    for _ in range(sizes.layers):
        x = block(layers, x, (batch, length), sizes, added)
    first = tf.squeeze(tf.reshape(x, [batch, length, width])[:, 0:1, :], [1])
    return layers.dense(first, sizes.width, tf.tanh, gain=1.0)


def block(layers: Layers, x: Any, shape: tuple[int, int], sizes: Sizes, added: Any = None) -> Any:
    """Attention and two dense layers, with layer normalisation after each sum. x: [batch * length, width]."""
    attended = layers.dense(attention(layers, x, shape, sizes, added), sizes.width, gain=1.0)
    x = layer_norm(layers, attended + x)
    hidden = layers.dense(x, 4 * sizes.width, gelu)
    return layer_norm(layers, layers.dense(hidden, sizes.width, gain=1.0) + x)


def attention(layers: Layers, x: Any, shape: tuple[int, int], sizes: Sizes, added: Any) -> Any:
    """Attention: for each head the means of the tokens' vectors, weighted by queries and keys. added: to the scores."""
    batch, length = shape
    width = layers.channels(sizes.width)
    size = width // sizes.heads

    def head(y: Any) -> Any:
        return tf.transpose(tf.reshape(y, [batch, length, sizes.heads, size]), [0, 2, 1, 3])

    query, key, value = (head(layers.dense(x, sizes.width, gain=1.0)) for _ in range(3))
    scores: Any = tf.multiply(tf.matmul(query, key, transpose_b=True), 1.0 / math.sqrt(size))
    if added is not None:
        scores = scores + added
    mixed = tf.matmul(tf.nn.softmax(scores), value)
    return tf.reshape(tf.transpose(mixed, [0, 2, 1, 3]), [batch * length, width])


def layer_norm(layers: Layers, x: Any) -> Any:
    """Layer normalisation over the last axis, from elementary ops."""
    width = int(x.shape[-1])
    gamma = layers.weight(layers.normal([width], 0.1, 1.0))
    beta = layers.bias(width)
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, beta, gamma, EPSILON)


def gelu(x: Any) -> Any:
    """x times the normal distribution function, approximated by tanh and a third power."""
    cubic = x + tf.multiply(tf.pow(x, 3.0), 0.044715)
    return x * tf.multiply(tf.add(tf.tanh(math.sqrt(2 / math.pi) * cubic), 1.0), 0.5)
