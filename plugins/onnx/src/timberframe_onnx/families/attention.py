"""Attention and rotary embeddings of ONNX's own domain, without the copies that their bodies make.

Keys and values that groups of heads share are not repeated: the queries of a group are rows of one product. What stands
between nothing and nothing, as the transposition of keys, is left to the product.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from timberframe_onnx.families.elementwise import scalar
from timberframe_onnx.families.heads import joined, rotated, split_heads, turned
from timberframe_onnx.families.shapes import stacked
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import Node, shape_parts
from timberframe_onnx.translation.registry import translates
from timberframe_onnx.translation.values import Tensor

QK_OUTPUT = 3
"""The output that has scores, for debugging."""


def _computes_as_it_is(node: Node, inputs: Sequence[Any]) -> bool:
    """Returns whether an attention is of types in which it is computed as a whole; in short ones its
    body says where to round.

    Scores as an output are left to the body, too.
    """
    return inputs[0].dtype in (tf.float32, tf.float64) and not node.wants(QK_OUTPUT)


@dataclass(frozen=True)
class _Part:
    """Some of the keys and values: k, v [batch, heads, keys, size], and what is added to their scores, if anything."""

    k: Tensor
    v: Tensor
    bias: Tensor | None


@translates("Attention", suits=_computes_as_it_is)
def _attention(
    node: Node,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor = None,
    past_key: Tensor = None,
    past_value: Tensor = None,
    lengths: Tensor = None,
) -> tuple[Any, ...]:
    flat = node.rank(q) == 3
    if mask is None and past_key is None and not flat and not node.wants(1):
        parts = _of_cache(node, q, k, v, lengths)
        if parts is not None:
            return _attended(node, q, parts, True), None, None
    if flat:
        q = split_heads(q, node.get("q_num_heads"))
        k, v = (split_heads(t, node.get("kv_num_heads")) for t in (k, v))
    before: Any = 0
    if past_key is not None:
        before = shape_parts(past_key)[2]
        k, v = tf.concat([past_key, k], 2), tf.concat([past_value, v], 2)
    seen = _seen(node, q, _places(k), None if past_key is None else before, lengths)
    bias, whole_rows = _hiding(q, seen), lengths is not None or _has_window(node)
    if mask is not None:
        added = _mask(node, q, k, mask)
        bias, whole_rows = added if bias is None else added + bias, True
    made = _attended(node, q, [_Part(k, v, bias)], whole_rows)
    return joined(made) if flat else made, k, v


def _of_cache(node: Node, q: Tensor, k: Tensor, v: Tensor, lengths: Tensor | None) -> list[_Part] | None:
    """Keys and values that lie in variables, and those that the run writes there, apart; None where there are none.

    So no key is read from a variable after it was written, and the variables are overwritten in place.
    """
    states = node.scope.translation.states
    keys, values = states.written.get(k), states.written.get(v)
    if keys is None or values is None or keys.starts is not values.starts:
        return None
    starts = tf.cast(keys.starts, tf.int32)[:, None, None, None]
    old, count = _places(k), tf.shape(keys.update)[2]
    kept = tf.logical_or(old < starts, old >= starts + count)
    seen = _seen(node, q, old, None, lengths)
    before = _Part(keys.cache, values.cache, _hiding(q, kept if seen is None else tf.logical_and(seen, kept)))
    new = _seen(node, q, starts + tf.range(count), None, lengths)
    return [before, _Part(keys.update, values.update, _hiding(q, tf.fill([1, 1, 1, 1], True) if new is None else new))]


def _attended(node: Node, q: Tensor, parts: list[_Part], whole_rows: bool) -> Tensor:
    """Returns the values weighted by how queries and keys suit each other.

    whole_rows: the biases may hide all of a query.
    """
    sizes, shared = shape_parts(q), shape_parts(parts[0].k)
    node.require_known(isinstance(sizes[3], int), "the size of its heads")
    grouped = not (isinstance(sizes[1], int) and sizes[1] == shared[1])

    def grouping(x: Tensor, last: Any) -> Tensor:
        return tf.reshape(x, stacked([sizes[0], shared[1], -1, last], tf.int32)) if grouped else x

    def apart(x: Tensor, last: Any) -> Tensor:
        return tf.reshape(x, stacked([*sizes[:3], last], tf.int32)) if grouped else x

    rows = grouping(q * scalar(node.get("scale") or 1 / math.sqrt(sizes[3]), q), sizes[3])
    counts = [shape_parts(part.k)[2] for part in parts]
    scores = [apart(tf.matmul(rows, p.k, transpose_b=True), count) for p, count in zip(parts, counts, strict=True)]
    if cap := node.get("softcap", 0.0):
        scores = [scalar(cap, s) * tf.tanh(s / scalar(cap, s)) for s in scores]
    biased = [s if p.bias is None else s + p.bias for s, p in zip(scores, parts, strict=True)]
    weights = tf.nn.softmax(biased[0] if len(parts) == 1 else tf.concat(biased, -1))
    if whole_rows:
        most = [tf.reduce_max(p.bias, -1, keepdims=True) for p in parts]
        hidden = tf.equal(most[0] if len(most) == 1 else tf.maximum(*most), scalar(-math.inf, q))
        weights = tf.where_v2(hidden, scalar(0, q), weights)
    shares = [weights] if len(parts) == 1 else [weights[..., : counts[0]], weights[..., counts[0] :]]
    made = [tf.matmul(grouping(s, n), p.v) for s, p, n in zip(shares, parts, counts, strict=True)]
    return apart(made[0] if len(made) == 1 else made[0] + made[1], shape_parts(parts[0].v)[3])


def _hiding(like: Tensor, seen: Tensor | None) -> Tensor | None:
    """Returns what is added to scores so that only what is seen counts."""
    return None if seen is None else tf.where_v2(seen, scalar(0, like), scalar(-math.inf, like))


def _mask(node: Node, q: Tensor, k: Tensor, mask: Tensor) -> Tensor:
    """Returns what a mask adds to scores; keys beyond its end are hidden."""
    if mask.dtype == tf.bool:
        mask = _hiding(q, mask)
    mask = tf.cast(mask, q.dtype)
    given, keys = shape_parts(mask)[-1], shape_parts(k)[2]
    if isinstance(given, int) and given == keys:
        return mask
    ends = [[0, 0]] * (node.rank(mask, "mask") - 1)
    missing = tf.cast(keys, tf.int32) - tf.cast(given, tf.int32)
    return tf.pad(mask, tf.stack([*ends, tf.stack([0, missing])]), constant_values=-math.inf)


def _has_window(node: Node) -> bool:
    return bool(max(node.get("left_window_size", -1), node.get("right_window_size", -1)) >= 0)


def _places(k: Tensor) -> Tensor:
    """Returns the places of keys."""
    return tf.range(tf.cast(shape_parts(k)[2], tf.int32))


def _seen(node: Node, q: Tensor, keys: Tensor, before: Any, lengths: Tensor | None) -> Tensor | None:
    """Returns whether each query sees each of the keys at some places; None where all see all.

    before: how many keys precede the first query, None for none. lengths: how many keys of each entry of the batch are
    no padding; where nothing precedes the queries, these are the last of them.
    """
    left, right = node.get("left_window_size", -1), node.get("right_window_size", -1)
    if node.get("is_causal", 0):
        right = 0
    if left < 0 and right < 0 and lengths is None:
        return None
    count = tf.cast(shape_parts(q)[2], tf.int32)
    first = tf.cast(0 if before is None else before, tf.int32)
    conditions = []
    if lengths is not None:
        ends = tf.cast(lengths, tf.int32)[:, None, None, None]
        conditions.append(keys < ends)
        first = ends - count if before is None else first
    places = first + tf.range(count)[:, None]
    if right >= 0:
        conditions.append(keys <= places + right)
    if left >= 0:
        conditions.append(keys >= places - left)
    seen = conditions[0]
    for condition in conditions[1:]:
        seen = tf.logical_and(seen, condition)
    return seen


@translates("RotaryEmbedding")
def _rotary(node: Node, x: Tensor, cosines: Tensor, sines: Tensor, places: Tensor = None) -> Tensor:
    flat = node.rank(x) == 3
    x = split_heads(x, node.get("num_heads")) if flat else x
    interleaved = bool(node.get("interleaved", 0))
    if places is None:
        made = turned(x, tf.expand_dims(cosines, 1), tf.expand_dims(sines, 1), interleaved)
    else:
        made = rotated(x, places, cosines, sines, interleaved)
    return joined(made) if flat else made
