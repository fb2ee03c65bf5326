"""Ensembles of decision trees: all rows go down all trees at once, one level a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from timberframe_onnx.elements import Array
from timberframe_onnx.errors import InvalidModelError
from timberframe_onnx.families.ml_scores import as_floats, class_labels, transformed_scores
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.initializers import array_of
from timberframe_onnx.translation.node import Node, shape_parts
from timberframe_onnx.translation.registry import MACHINE_LEARNING, translates
from timberframe_onnx.translation.values import Tensor

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
LEAF = -1
_COMPARISONS = (tf.less_equal, tf.less, tf.greater_equal, tf.greater, tf.equal, tf.not_equal)


@dataclass
class Trees:
    """All nodes of an ensemble in arrays; a leaf is its own successor.

    members: by node that asks for membership, the values that are in its set. roots: where each tree begins. weights:
    what a leaf adds to each target, [nodes, targets]; counted: whether it has a weight for the target.
    """

    features: Array
    splits: Array
    modes: Array
    true: Array
    false: Array
    missing: Array
    members: dict[int, Array]
    roots: Array
    weights: Array
    counted: Array

    def depth(self) -> int:
        """Returns the most steps from a root to a leaf; raises InvalidModelError where nodes go around in a circle."""
        level = np.unique(self.roots)
        for steps in range(len(self.features) + 1):
            level = level[self.modes[level] != LEAF]
            if not len(level):
                return steps
            level = np.unique(np.concatenate([self.true[level], self.false[level]]))
        raise InvalidModelError("nodes of a tree follow each other in a circle; they must lead to leaves")

    def leaves(self, x: Tensor) -> Tensor:
        """Returns the leaf of each row in each tree, [rows, trees]."""
        rows = tf.shape(x)[0]
        width = tf.shape(x)[1]
        flat = tf.reshape(x, [-1])
        first = (tf.range(rows) * width)[:, None]
        at = tf.zeros([rows, 1], tf.int32) + tf.constant(self.roots.astype(np.int32))
        tables = [tf.constant(t.astype(np.int32)) for t in (self.features, self.true, self.false)]
        splits, missing = tf.constant(self.splits.astype(x.dtype.numpy)), tf.constant(self.missing)
        for _ in range(self.depth()):
            value = tf.gather(flat, first + tf.gather(tables[0], at))
            holds = self._holds(value, tf.gather(splits, at), at)
            if self.missing.any():
                holds = tf.logical_or(holds, tf.logical_and(tf.gather(missing, at), tf.is_nan(value)))
            at = tf.where_v2(holds, tf.gather(tables[1], at), tf.gather(tables[2], at))
        return at

    def _holds(self, value: Tensor, split: Tensor, at: Tensor) -> Tensor:
        """Returns whether each node's condition holds."""
        used = [int(m) for m in np.unique(self.modes) if m != LEAF]
        made: Any = None
        mode = tf.gather(tf.constant(self.modes.astype(np.int32)), at) if len(used) > 1 else None
        for kind in used:
            here = self._member(value, at) if kind == len(_COMPARISONS) else _COMPARISONS[kind](value, split)
            made = here if made is None else tf.where_v2(tf.equal(mode, kind), here, made)
        return tf.zeros_like(value, dtype=tf.bool) if made is None else made

    def _member(self, value: Tensor, at: Tensor) -> Tensor:
        longest = max(len(v) for v in self.members.values())
        table = np.full((len(self.features), max(longest, 1)), np.nan, value.dtype.numpy)
        for node, values in self.members.items():
            table[node, : len(values)] = values
        return tf.reduce_any(tf.equal(value[..., None], tf.gather(tf.constant(table), at)), -1)

    def targets(self, x: Tensor, aggregate: str) -> Tensor:
        """Returns what the leaves of all trees add up to, or the average, least or greatest: [rows, targets]."""
        leaves = self.leaves(x)
        weights = self.weights.astype(x.dtype.numpy)
        if aggregate in ("SUM", "AVERAGE"):
            total = tf.reduce_sum(tf.gather(tf.constant(weights), leaves), 1)
            return total / len(self.roots) if aggregate == "AVERAGE" else total
        limits = np.finfo(x.dtype.numpy)
        filler = limits.max if aggregate == "MIN" else limits.min
        taken = tf.gather(tf.constant(np.where(self.counted, weights, filler)), leaves)
        return tf.reduce_min(taken, 1) if aggregate == "MIN" else tf.reduce_max(taken, 1)


def _values(node: Node, name: str) -> Array:
    """Returns numbers of an attribute, which may be a tensor for float64."""
    tensor = node.get(f"{name}_as_tensor")
    return array_of(tensor, None) if tensor is not None else np.array(node.get(name, []), np.float32)


def _by_identity(node: Node, kind: str, count: int) -> Trees:
    """Returns the trees of the older ops, whose nodes are known by the numbers of tree and node."""
    trees, ids = node.get("nodes_treeids"), node.get("nodes_nodeids")
    places = {key: i for i, key in enumerate(zip(trees, ids, strict=True))}
    modes = np.array([LEAF if m == "LEAF" else MODES.index(m) for m in node.get("nodes_modes")])

    def successors(name: str) -> Array:
        found = [i if modes[i] == LEAF else places[trees[i], n] for i, n in enumerate(node.get(name))]
        return np.array(found, np.int64)

    missing = np.array(node.get("nodes_missing_value_tracks_true") or [0] * len(ids), bool)
    weights = np.zeros((len(ids), count))
    counted = np.zeros((len(ids), count), bool)
    names = (f"{kind}_{part}" for part in ("treeids", "nodeids", "ids"))
    given = zip(*(node.get(name) for name in names), _values(node, f"{kind}_weights"), strict=True)
    for tree, identity, target, weight in given:
        weights[places[tree, identity], target] += weight
        counted[places[tree, identity], target] = True
    first: dict[int, int] = {}
    for i, tree in enumerate(trees):
        first.setdefault(tree, i)
    return Trees(
        np.array(node.get("nodes_featureids")),
        _values(node, "nodes_values"),
        modes,
        successors("nodes_truenodeids"),
        successors("nodes_falsenodeids"),
        missing,
        {},
        np.array(list(first.values())),
        weights,
        counted,
    )


def _check(trees: Trees, x: Tensor) -> None:
    """Raises InvalidModelError where nodes refer to features or nodes that are not there."""
    inner = trees.modes != LEAF
    width = shape_parts(x)[-1]
    features = trees.features[inner]
    if len(features) and (features.min() < 0 or (isinstance(width, int) and features.max() >= width)):
        raise InvalidModelError(f"a tree asks for features {features.min()} to {features.max()}; there are {width}")
    for successors in (trees.true, trees.false):
        if len(successors) and (successors.min() < 0 or successors.max() >= len(trees.modes)):
            raise InvalidModelError(f"a tree has nodes up to {successors.max()}; there are {len(trees.modes)}")


@translates("TreeEnsembleRegressor", domain=MACHINE_LEARNING)
def _regressor(node: Node, x: Tensor) -> Tensor:
    x = as_floats(x)
    trees = _by_identity(node, "target", node.get("n_targets", 1))
    _check(trees, x)
    made = trees.targets(x, node.get("aggregate_function", "SUM"))
    base = _values(node, "base_values")
    made = made + tf.constant(base.astype(x.dtype.numpy)) if len(base) else made
    return tf.cast(transformed_scores(node, made), tf.float32)


@translates("TreeEnsembleClassifier", domain=MACHINE_LEARNING)
def _classifier(node: Node, x: Tensor) -> tuple[Tensor, Tensor]:
    x = as_floats(x)
    labels: Any = class_labels(node)
    node.require(labels is not None, "it has no labels of classes")
    classes = shape_parts(labels)[0]
    trees = _by_identity(node, "class", classes)
    _check(trees, x)
    scores = tf.cast(trees.targets(x, "SUM"), tf.float32)
    base = _values(node, "base_values").astype(np.float32)
    ids = set(node.get("class_ids"))
    if len(ids) == 1 and classes == 2:
        return _binary(node, scores[:, next(iter(ids))], base, labels)
    scores = scores + tf.constant(base) if len(base) else scores
    return tf.gather(labels, tf.argmax(scores, -1)), transformed_scores(node, scores)


def _binary(node: Node, score: Tensor, base: Array, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Returns two classes by the score of one. Scores that are never negative are probabilities, others are margins."""
    if len(base):
        score = score + float(base[-1])
    positive = bool(np.all(_values(node, "class_weights") >= 0))
    if positive and node.get("post_transform", "NONE") in ("NONE", "PROBIT"):
        scores, over = tf.stack([1 - score, score], 1), score > 0.5
    else:
        scores, over = tf.stack([-score, score], 1), score > (0.5 if positive else 0.0)
    return tf.gather(labels, tf.cast(over, tf.int32)), transformed_scores(node, scores)


@translates("TreeEnsemble", domain=MACHINE_LEARNING)
def _tree_ensemble(node: Node, x: Tensor) -> Tensor:
    """Returns the op of opset 5: nodes and leaves are numbered apart; here leaves follow the nodes."""
    modes = array_of(node.get("nodes_modes"), None).astype(np.int64)
    splits = array_of(node.get("nodes_splits"), None)
    leaf_weights, targets = array_of(node.get("leaf_weights"), None), node.get("leaf_targetids")
    count, leaves = len(modes), len(targets)

    def successors(name: str, flags: str) -> Array:
        found = np.array(node.get(name)) + count * np.array(node.get(flags))
        return np.concatenate([found, count + np.arange(leaves)])

    true, false = (
        successors("nodes_truenodeids", "nodes_trueleafs"),
        successors("nodes_falsenodeids", "nodes_falseleafs"),
    )
    weights = np.zeros((count + leaves, node.get("n_targets")), leaf_weights.dtype)
    counted = np.zeros(weights.shape, bool)
    weights[count + np.arange(leaves), targets] = leaf_weights
    counted[count + np.arange(leaves), targets] = True
    missing = np.array(node.get("nodes_missing_value_tracks_true") or [0] * count, bool)
    trees = Trees(
        np.concatenate([np.array(node.get("nodes_featureids")), np.zeros(leaves, np.int64)]),
        np.concatenate([splits, np.zeros(leaves, splits.dtype)]),
        np.concatenate([modes, np.full(leaves, LEAF)]),
        true,
        false,
        np.concatenate([missing, np.zeros(leaves, bool)]),
        {},
        np.array(node.get("tree_roots")),
        weights,
        counted,
    )
    if node.get("membership_values") is not None:
        trees.members = _memberships(trees, array_of(node.get("membership_values"), None), modes)
    _check(trees, x)
    kinds: Sequence[str] = ("AVERAGE", "SUM", "MIN", "MAX")
    made = trees.targets(x, kinds[node.get("aggregate_function", 1)])
    transforms = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
    node.attributes["post_transform"] = transforms[node.get("post_transform", 0)]
    return transformed_scores(node, made)


def _memberships(trees: Trees, values: Array, modes: Array) -> dict[int, Array]:
    """Returns the set of each node that asks for one; sets end with NaN, in the order of the nodes."""
    ends = np.flatnonzero(np.isnan(values))
    starts = [0, *(ends[:-1] + 1)]
    sets = [values[s:e] for s, e in zip(starts, ends, strict=True)]
    asking = [i for i in range(len(modes)) if modes[i] == len(_COMPARISONS)]
    return dict(zip(asking, sets, strict=True))
