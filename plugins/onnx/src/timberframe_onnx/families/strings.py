"""Texts: joined, split, matched, normalized, counted as n-grams."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_onnx.families.shapes import dynamic_shape
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import Node
from timberframe_onnx.translation.registry import translates
from timberframe_onnx.translation.values import Tensor


def texts(values: list[str]) -> Tensor:
    """Returns a vector of texts."""
    array = np.empty(len(values), object)
    array[:] = [v.encode("utf-8", "surrogateescape") for v in values]
    return tf.constant(array, tf.string)


@translates("StringConcat")
def _concat(node: Node, a: Tensor, b: Tensor) -> Tensor:
    shape = tf.broadcast_dynamic_shape(tf.shape(a), tf.shape(b))
    return tf.strings.join([tf.broadcast_to(a, shape), tf.broadcast_to(b, shape)])


@translates("RegexFullMatch")
def _full_match(node: Node, x: Tensor) -> Tensor:
    return tf.strings.regex_full_match(x, node.get("pattern"))


@translates("StringSplit")
def _split(node: Node, x: Tensor) -> tuple[Tensor, Tensor]:
    separator = node.get("delimiter") or ""
    parts = tf.raw_ops.StringSplitV2(input=tf.reshape(x, [-1]), sep=separator, maxsplit=node.get("maxsplit", -1))
    indices, values, shape = parts
    counts = tf.unsorted_segment_sum(tf.ones_like(indices[:, 0]), indices[:, 0], tf.size(x))
    table = tf.sparse_to_dense(indices, shape, values, default_value="")
    return tf.reshape(table, tf.concat([dynamic_shape(x), shape[1:]], 0)), tf.reshape(counts, tf.shape(x))


@translates("StringNormalizer")
def _normalize(node: Node, x: Tensor) -> Tensor:
    action, stopwords = node.get("case_change_action", "NONE"), node.get("stopwords", [])
    rank = node.rank(x)
    words = tf.reshape(x, [-1])
    if stopwords:
        sensitive = node.get("is_case_sensitive", 0)
        seen = words if sensitive else tf.strings.lower(words, encoding="utf-8")
        stops = texts([s if sensitive else s.lower() for s in stopwords])
        kept = tf.logical_not(tf.reduce_any(tf.equal(seen[:, None], stops), 1))
        words = tf.boolean_mask(words, kept)
        empty = tf.cast(tf.equal(tf.size(words), 0), tf.int32)
        words = tf.pad(words, [[0, empty]], constant_values="")
    if action == "LOWER":
        words = tf.strings.lower(words, encoding="utf-8")
    elif action == "UPPER":
        words = tf.strings.upper(words, encoding="utf-8")
    return words if rank == 1 else tf.expand_dims(words, 0)


@translates("TfIdfVectorizer")
def _tf_idf(node: Node, x: Tensor) -> Tensor:
    """Each n-gram of the pool is looked for at every place, with every number of elements skipped between its own."""
    pool: list[Any] = node.get("pool_int64s") or node.get("pool_strings")
    starts, places = node.get("ngram_counts"), node.get("ngram_indexes")
    width = max(places) + 1
    rank = node.rank(x)
    rows = x if rank == 2 else tf.expand_dims(x, 0)
    length = tf.shape(rows)[1]
    columns: list[Tensor] = []
    kept: list[int] = []
    first = 0
    for n, start in enumerate(starts, 1):
        end = starts[n] if n < len(starts) else len(pool)
        grams = [pool[i : i + n] for i in range(start, end, n)]
        if node.get("min_gram_length") <= n <= node.get("max_gram_length") and grams:
            columns.append(_found(node, rows, length, grams, n))
            kept.extend(range(first, first + len(grams)))
        first += len(grams)
    counts = tf.cast(tf.concat(columns, 1), tf.float32)
    mode, weights = node.get("mode"), node.get("weights")
    if mode in ("IDF", "TFIDF"):
        counts = tf.cast(counts > 0, tf.float32) if mode == "IDF" else counts
        if weights is not None:
            counts = counts * tf.constant([weights[k] for k in kept], tf.float32)
    spread = np.zeros((len(kept), width), np.float32)
    spread[np.arange(len(kept)), [places[k] for k in kept]] = 1
    made = tf.matmul(counts, tf.constant(spread))
    return made if rank == 2 else made[0]


def _found(node: Node, rows: Tensor, length: Tensor, grams: list[Any], n: int) -> Tensor:
    """Returns how often each of these n-grams is in each row."""
    flat = [g for gram in grams for g in gram]
    wanted = texts(flat) if isinstance(flat[0], str) else tf.constant(np.array(flat, rows.dtype.numpy), rows.dtype)
    wanted = tf.reshape(wanted, [len(grams), n])
    total: Any = 0
    for skipped in range(1 if n == 1 else node.get("max_skip_count") + 1):
        step = skipped + 1
        count = tf.maximum(length - (n - 1) * step, 0)
        same: Any = None
        for k in range(n):
            here = tf.equal(rows[:, k * step : k * step + count, None], wanted[:, k])
            same = here if same is None else tf.logical_and(same, here)
        total = total + tf.reduce_sum(tf.cast(same, tf.int32), 1)
    return total
