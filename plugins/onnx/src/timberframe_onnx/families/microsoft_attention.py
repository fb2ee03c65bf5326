"""Attention as com.microsoft has it: with weights of its own, of many heads, of groups that share keys and values."""

from __future__ import annotations

import math
from typing import Any

from timberframe_onnx.families.elementwise import scalar
from timberframe_onnx.families.heads import joined, rotated, split_heads
from timberframe_onnx.families.shapes import stacked
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import Node, shape_parts
from timberframe_onnx.translation.registry import MICROSOFT, translates
from timberframe_onnx.translation.values import Tensor


def _attended(q: Tensor, k: Tensor, v: Tensor, scale: float, bias: Tensor | None, softcap: float = 0.0) -> Tensor:
    """Returns the values [batch, heads, keys, size], weighted by how queries and keys suit each other."""
    scores = tf.matmul(q, k, transpose_b=True) * scalar(scale, q)
    if softcap:
        scores = scalar(softcap, scores) * tf.tanh(scores / scalar(softcap, scores))
    scores = scores if bias is None else scores + bias
    return tf.matmul(tf.nn.softmax(scores), v)


def _scale(node: Node, size: Any) -> float:
    node.require_known(isinstance(size, int), "the size of its heads")
    return float(node.get("scale", 0.0) or 1 / math.sqrt(size))


def _hidden(node: Node, like: Tensor, seen: Tensor) -> Tensor:
    """Returns what is added to scores: 0 for what is seen, else the value that stands for minus infinity."""
    return tf.where_v2(seen, scalar(0, like), scalar(node.get("mask_filter_value", -10000.0), like))


def _causal(queries: Tensor, keys: Tensor) -> Tensor:
    """Returns whether a query [queries, 1] sees a key [keys]: those up to its own place,
    which is counted from the end.
    """
    return tf.range(keys) <= (tf.range(queries) + keys - queries)[:, None]


def _mask(node: Node, mask: Tensor, like: Tensor, keys: Tensor) -> Tensor:
    """Returns the bias of a mask: lengths [batch], or 0 and 1 for each key, or for each query and key."""
    rank = node.rank(mask, "mask")
    if rank == 1:
        seen = (tf.range(keys) < tf.cast(mask, tf.int32)[:, None])[:, None, None]
    else:
        shown = tf.not_equal(mask, tf.zeros_like(mask))
        seen = {2: lambda: shown[:, None, None], 3: lambda: shown[:, None], 4: lambda: shown}[rank]()
    return _hidden(node, like, seen)


@translates("Attention", domain=MICROSOFT)
def _attention(
    node: Node,
    x: Tensor,
    weights: Tensor,
    bias: Tensor = None,
    mask: Tensor = None,
    past: Tensor = None,
    added: Any = None,
) -> tuple[Any, ...]:
    heads = node.get("num_heads")
    parts: list[Any] = shape_parts(x)
    whole = tf.matmul(tf.reshape(x, stacked([-1, parts[2]], tf.int32)), weights)
    whole = whole if bias is None else whole + bias
    whole = tf.reshape(whole, stacked([*parts[:2], -1], tf.int32))
    sizes = node.get("qkv_hidden_sizes") or [shape_parts(weights)[1] // 3] * 3
    q, k, v = (split_heads(part, heads) for part in tf.split(whole, sizes, -1))
    present = None
    if past is not None:
        k, v = tf.concat([past[0], k], 2), tf.concat([past[1], v], 2)
    if node.wants(1):
        present = tf.stack([k, v])
    made = _attended(q, k, v, _scale(node, shape_parts(q)[-1]), _bias(node, q, k, mask, added))
    return joined(made), present


def _bias(node: Node, q: Tensor, k: Tensor, mask: Any, added: Any) -> Any:
    """Returns all that is added to scores."""
    keys = tf.shape(k)[2]
    parts = [] if added is None else [added]
    if mask is not None:
        parts.append(_mask(node, mask, q, keys))
    if node.get("unidirectional", 0):
        parts.append(_hidden(node, q, _causal(tf.shape(q)[2], keys)))
    total: Any = None
    for part in parts:
        total = part if total is None else total + part
    return total


@translates("MultiHeadAttention", domain=MICROSOFT)
def _multi_head(
    node: Node,
    query: Tensor,
    key: Tensor = None,
    value: Tensor = None,
    bias: Tensor = None,
    mask: Tensor = None,
    added: Tensor = None,
    past_key: Tensor = None,
    past_value: Tensor = None,
) -> tuple[Any, ...]:
    heads = node.get("num_heads")
    node.require(key is not None and value is not None, "it has queries, keys and values in one input")
    if bias is not None:
        width = shape_parts(query)[-1]
        query, rest = query + bias[:width], bias[width:]
        if node.rank(key) == 3:
            span = shape_parts(key)[-1]
            key, value = key + rest[:span], value + rest[span:]
    q = split_heads(query, heads)
    k = split_heads(key, heads) if node.rank(key) == 3 else key
    v = split_heads(value, heads) if node.rank(value) == 3 else value
    if past_key is not None:
        k, v = tf.concat([past_key, k], 2), tf.concat([past_value, v], 2)
    made = _attended(q, k, v, _scale(node, shape_parts(q)[-1]), _bias(node, q, k, mask, added))
    return joined(made), k, v


@translates("RotaryEmbedding", domain=MICROSOFT)
def _rotary(node: Node, x: Tensor, places: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    flat = node.rank(x) == 3
    heads = node.get("num_heads", 0)
    if flat:
        width = shape_parts(x)[-1]
        heads = heads or width // (2 * shape_parts(cosines)[-1])
        x = split_heads(x, heads)
    if node.rank(places) == 1:
        places = tf.reshape(places, [1, 1]) + tf.range(tf.shape(x, out_type=tf.int64)[2])
    made = rotated(x, places, cosines, sines, bool(node.get("interleaved", 0)))
    return joined(made) if flat else made


@translates("GroupQueryAttention", domain=MICROSOFT)
def _group_query(
    node: Node,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    past_key: Tensor,
    past_value: Tensor,
    lengths: Tensor,
    total: Tensor,
    cosines: Tensor = None,
    sines: Tensor = None,
    *others: Tensor,
) -> tuple[Any, ...]:
    """Queries are the last places of sequences whose lengths, less 1, are given; those before are in the cache."""
    node.require(all(o is None for o in others), "it has position_ids, attention_bias or a head sink")
    heads, groups = node.get("num_heads"), node.get("kv_num_heads")
    if key is None:
        size = shape_parts(query)[-1] // (heads + 2 * groups)
        query, key, value = tf.split(query, [heads * size, groups * size, groups * size], -1)
    q, k, v = split_heads(query, heads), split_heads(key, groups), split_heads(value, groups)
    count = tf.shape(q)[2]
    places = (tf.cast(tf.reshape(lengths, [-1]), tf.int32) + 1 - count)[:, None] + tf.range(count)
    if node.get("do_rotary", 0):
        turn = bool(node.get("rotary_interleaved", 0))
        q, k = (rotated(t, tf.maximum(places, 0), cosines, sines, turn) for t in (q, k))
    if past_key is not None:
        kept = tf.cast(tf.reshape(total, []), tf.int32) - count
        k, v = tf.concat([past_key[:, :, :kept], k], 2), tf.concat([past_value[:, :, :kept], v], 2)
    keys = tf.range(tf.shape(k)[2])
    seen = keys <= places[..., None]
    window = node.get("local_window_size", -1)
    if window > 0:
        seen = tf.logical_and(seen, keys > places[..., None] - window)
    hidden = tf.where_v2(seen, scalar(0, q), scalar(-10000.0, q))[:, None]
    shared = heads // groups
    wide_k, wide_v = (tf.repeat(t, shared, axis=1) if shared > 1 else t for t in (k, v))
    made = _attended(q, wide_k, wide_v, _scale(node, shape_parts(q)[-1]), hidden, node.get("softcap", 0.0))
    return joined(made), k, v
