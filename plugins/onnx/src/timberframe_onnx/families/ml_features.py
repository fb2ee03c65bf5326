"""Features for machine learning, as scikit-learn's converters write them: scaled, encoded, filled in, joined."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_onnx.elements import held
from timberframe_onnx.families.elementwise import scalar
from timberframe_onnx.families.strings import texts
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.initializers import array_of
from timberframe_onnx.translation.node import Node, shape_parts
from timberframe_onnx.translation.registry import MACHINE_LEARNING, translates
from timberframe_onnx.translation.values import Maps, Tensor


@translates("ArrayFeatureExtractor", domain=MACHINE_LEARNING)
def _array_feature_extractor(node: Node, x: Tensor, indices: Tensor) -> Tensor:
    made = tf.gather(x, tf.reshape(indices, [-1]), axis=-1)
    return made if node.rank(x) > 1 else tf.expand_dims(made, 0)


@translates("Binarizer", domain=MACHINE_LEARNING)
def _binarizer(node: Node, x: Tensor) -> Tensor:
    return tf.cast(x > scalar(node.get("threshold", 0.0), x), x.dtype)


@translates("Scaler", domain=MACHINE_LEARNING)
def _scaler(node: Node, x: Tensor) -> Tensor:
    x = tf.cast(x, tf.float32)
    return (x - tf.constant(node.get("offset", [0.0]))) * tf.constant(node.get("scale", [1.0]))


@translates("Normalizer", domain=MACHINE_LEARNING)
def _normalizer(node: Node, x: Tensor) -> Tensor:
    x = tf.cast(x, tf.float32)
    kind = node.get("norm", "MAX")
    if kind == "MAX":
        size = tf.reduce_max(tf.abs(x), -1, keepdims=True)
    elif kind == "L1":
        size = tf.reduce_sum(tf.abs(x), -1, keepdims=True)
    else:
        size = tf.sqrt(tf.reduce_sum(tf.square(x), -1, keepdims=True))
    return x / tf.maximum(size, 1e-30)


@translates("Imputer", domain=MACHINE_LEARNING)
def _imputer(node: Node, x: Tensor) -> Tensor:
    floats = x.dtype.is_floating
    kind = "float" if floats else "int64"
    values = tf.constant(np.array(node.get(f"imputed_value_{kind}s"), x.dtype.numpy))
    replaced = node.get(f"replaced_value_{kind}", 0)
    missing = tf.is_nan(x) if floats and np.isnan(replaced) else tf.equal(x, scalar(replaced, x))
    return tf.where_v2(missing, values, x)


@translates("FeatureVectorizer", domain=MACHINE_LEARNING)
def _feature_vectorizer(node: Node, *inputs: Tensor) -> Tensor:
    widths = node.get("inputdimensions") or [shape_parts(x)[-1] for x in inputs]
    parts = []
    for x, width in zip(inputs, widths, strict=False):
        rows = tf.cast(x if node.rank(x) > 1 else tf.expand_dims(x, -1), tf.float32)
        missing = tf.maximum(width - tf.shape(rows)[1], 0)
        parts.append(tf.pad(rows[:, :width], tf.stack([tf.constant([0, 0]), tf.stack([0, missing])])))
    return tf.concat(parts, 1)


def _same(x: Tensor, keys: Tensor) -> Tensor:
    """Returns which of the keys each element is, along a new last axis; NaN is the same as NaN."""
    element = tf.expand_dims(x, -1)
    same = tf.equal(element, keys)
    if x.dtype.is_floating:
        same = tf.logical_or(same, tf.logical_and(tf.is_nan(element), tf.is_nan(keys)))
    return same


@translates("OneHotEncoder", domain=MACHINE_LEARNING)
def _one_hot_encoder(node: Node, x: Tensor) -> Tensor:
    """An element that is in no category gives zeros."""
    names = node.get("cats_strings")
    if names:
        return tf.cast(_same(x, texts(names)), tf.float32)
    categories = tf.constant(np.array(node.get("cats_int64s"), np.int64))
    return tf.cast(_same(tf.cast(x, tf.int64), categories), tf.float32)


@translates("CategoryMapper", domain=MACHINE_LEARNING)
def _category_mapper(node: Node, x: Tensor) -> Tensor:
    names, numbers = texts(node.get("cats_strings")), tf.constant(np.array(node.get("cats_int64s"), np.int64))
    if x.dtype == tf.string:
        return _looked_up(x, names, numbers, tf.constant(node.get("default_int64", -1), tf.int64))
    return _looked_up(x, numbers, names, tf.constant(node.get("default_string", "_Unused")))


def _looked_up(x: Tensor, keys: Tensor, values: Tensor, otherwise: Tensor) -> Tensor:
    """Returns the value of each element's key, or another one where it is no key."""
    same = _same(x, keys)
    return tf.where_v2(tf.reduce_any(same, -1), tf.gather(values, tf.argmax(tf.cast(same, tf.int32), -1)), otherwise)


@translates("LabelEncoder", domain=MACHINE_LEARNING)
def _label_encoder(node: Node, x: Tensor) -> Tensor:
    if "classes_strings" in node.attributes:  # opset 1: the place in a list, or the list's element at a place
        names = node.get("classes_strings")
        numbers = tf.range(tf.constant(len(names), tf.int64))
        if x.dtype == tf.string:
            return _looked_up(x, texts(names), numbers, tf.constant(node.get("default_int64", -1), tf.int64))
        return _looked_up(x, numbers, texts(names), tf.constant(node.get("default_string", "_Unused")))
    values, kind = _listed(node, "values")
    defaults: dict[str, Any] = {"float": -0.0, "int64": -1, "string": "_Unused"}
    if kind == "tensor":
        default = node.get("default_tensor")
        node.require(default is not None, "it has values_tensor without default_tensor")
        otherwise = tf.reshape(tf.constant(held(array_of(default, None), default.data_type)), [])
    elif kind == "string":
        otherwise = tf.constant(node.get("default_string", defaults[kind]))
    else:
        otherwise = scalar(node.get(f"default_{kind}", defaults[kind]), values)
    return _looked_up(x, _listed(node, "keys")[0], values, otherwise)


def _listed(node: Node, what: str) -> tuple[Tensor, str]:
    """Returns the keys or values of an encoder, and their kind."""
    for kind, dtype in (("float", tf.float32), ("int64", tf.int64)):
        if f"{what}_{kind}s" in node.attributes:
            return tf.constant(np.array(node.get(f"{what}_{kind}s"), dtype.numpy)), kind
    if f"{what}_strings" in node.attributes:
        return texts(node.get(f"{what}_strings")), "string"
    proto = node.get(f"{what}_tensor")
    node.require(proto is not None, f"it has no {what}")
    return tf.reshape(tf.constant(held(array_of(proto, None), proto.data_type)), [-1]), "tensor"


@translates("ZipMap", domain=MACHINE_LEARNING)
def _zip_map(node: Node, x: Tensor) -> Maps:
    keys = node.get("classlabels_strings") or node.get("classlabels_int64s")
    return Maps(x, tuple(keys))
