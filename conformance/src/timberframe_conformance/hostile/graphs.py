"""Graphs to be mutated, built here: loops and branches of both kinds, variables, lists, functions, training, ops."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import timberframe as tf
from timberframe_conformance import drive
from timberframe_conformance.cases.trials import Trial, fits, own_samples
from timberframe_conformance.cases.types import combinations
from timberframe_conformance.suites.forward import is_callable
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.function import FuncGraph
from timberframe_core.ops.definition import registry


def _layers() -> None:
    x = tf.placeholder(tf.float32, [None, 8, 8, 1], "x")
    kernel = tf.get_variable("kernel", [3, 3, 1, 2], tf.float32, tf.random_normal_initializer(seed=1))
    y = tf.nn.max_pool(tf.nn.relu(tf.nn.conv2d(x, kernel, [1, 1, 1, 1], "SAME")), [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    mean, variance = tf.nn.moments(y, [0, 1, 2])
    y = tf.nn.batch_normalization(y, mean, variance, None, None, 1e-3)
    flat = tf.reshape(y, [-1, 32])
    tf.nn.softmax(tf.matmul(tf.nn.dropout(flat, 0.9, seed=3), tf.ones([32, 3])), name="y")


def _training() -> None:
    x, labels = tf.placeholder(tf.float32, [None, 4], "x"), tf.placeholder(tf.int64, [None], "labels")
    w = tf.Variable(tf.random_normal([4, 3], seed=5), name="w")
    b = tf.Variable(tf.zeros([3]), name="b")
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.add(tf.matmul(x, w), b))
    rate = tf.train.exponential_decay(0.1, tf.train.get_or_create_global_step(), 10, 0.5)
    tf.train.AdamOptimizer(rate).minimize(tf.reduce_mean(losses), tf.train.get_global_step(), name="train")
    tf.global_variables_initializer()


def _loop() -> None:
    limit = tf.placeholder(tf.int32, [], "limit")
    tf.while_loop(lambda i, x: tf.less(i, limit), lambda i, x: (i + 1, x * 2.0), [0, tf.ones([3])], name="loop")


def _nested_loops() -> None:
    def body(i: Any, x: Any) -> Any:
        inner = tf.while_loop(lambda j, y: tf.less(j, i), lambda j, y: (j + 1, y + 1.0), [0, x])[1]
        return i + 1, tf.cond(tf.less(i, 2), lambda: inner, lambda: inner * 0.5)

    tf.while_loop(lambda i, x: tf.less(i, 4), body, [0, tf.placeholder(tf.float32, [2], "x")], name="outer")


def _loop_gradient() -> None:
    x = tf.placeholder(tf.float32, [2], "x")
    y = tf.while_loop(lambda i, y: tf.less(i, 3), lambda i, y: (i + 1, tf.sin(y) * x), [0, x])[1]
    first = tf.gradients(y, x)[0]
    tf.gradients(tf.reduce_sum(first * first), x, name="second")


def _branches() -> None:
    p, x = tf.placeholder(tf.bool, [], "p"), tf.placeholder(tf.float32, [None], "x")
    y = tf.cond(p, lambda: tf.reduce_sum(tf.multiply(x, 2.0)), lambda: tf.reduce_max(tf.cumsum(x)))
    tf.gradients(y, x, name="gradient")


def _arrays() -> None:
    x = tf.placeholder(tf.float32, [None, 2], "x")
    mapped = tf.map_fn(lambda row: tf.tanh(row) + 1.0, x)
    total = tf.foldl(lambda a, row: a + row, mapped)
    scanned = tf.scan(lambda a, row: a * row, x, initializer=tf.ones([2]))
    array = tf.TensorArray(tf.float32, size=3, dynamic_size=True, clear_after_read=False).unstack(tf.ones([3, 2]))
    array = array.write(3, total)
    tf.gradients(tf.add(tf.reduce_sum(array.stack()), tf.reduce_sum(scanned)), x)


def _variables() -> None:
    v = tf.get_variable("v", [4, 2], tf.float32, tf.ones_initializer())
    n = tf.get_variable("n", [], tf.int64, tf.zeros_initializer())
    with tf.control_dependencies([tf.assign_add(n, 1)]):
        tf.scatter_update(v, tf.placeholder(tf.int32, [None], "rows"), tf.placeholder(tf.float32, [None, 2], "x"))
    tf.identity(v.read_value(), name="now")
    tf.global_variables_initializer()


def _selection() -> None:
    x = tf.placeholder(tf.float32, [None], "x")
    chosen = tf.boolean_mask(x, tf.greater(x, 0.0))
    tf.unique(tf.cast(chosen, tf.int32))
    tf.segment_sum(chosen, tf.range(tf.size(chosen)))
    tf.dynamic_partition(x, tf.cast(tf.greater(x, 0.5), tf.int32), 2)
    tf.nn.top_k(x, 1)
    tf.reshape(tf.where(tf.greater(x, 0.0)), tf.concat([[-1], [1]], 0))
    tf.strided_slice(x, [0], tf.shape(x), [2])


def _strings() -> None:
    s = tf.placeholder(tf.string, [None], "s")
    tf.equal(s, ["a"])
    tf.concat([s, tf.constant(["b", "\u00e9"])], 0)
    tf.gather(s, [0])
    apply_op("StringJoin", [[s, s]], {"separator": "-"})


def _random() -> None:
    n = tf.placeholder(tf.int32, [1], "n")
    tf.random_uniform(n, seed=1)
    tf.random_shuffle(tf.range(5), seed=2)
    tf.multinomial(tf.zeros([1, 3]), 2, seed=3)
    tf.truncated_normal([2, 2], seed=4)


def _calls() -> None:
    """Makes a function that calls another one, as nodes of ops and as attrs."""
    graph = tf.get_default_graph()
    inner, outer = FuncGraph("inner", graph), FuncGraph("outer", graph)
    with inner.as_default():
        x = inner.add_input(tf.float32, (None,), "x")
        inner.finish([tf.exp(x), tf.reduce_sum(x)])
    with outer.as_default():
        x = outer.add_input(tf.float32, (None,), "x")
        a, b = apply_op("PartitionedCall", [[x]], {"f": inner, "Tout": [tf.float32, tf.float32]})
        outer.finish([a * b])
    x = tf.placeholder(tf.float32, [None], "x")
    apply_op("StatefulPartitionedCall", [[x]], {"f": outer, "Tout": [tf.float32]})


def _old_loop() -> None:
    """Makes a loop of TensorFlow 1: Enter, Merge, Switch, NextIteration, Exit."""
    graph = tf.get_default_graph()
    start, limit = tf.constant(0), tf.placeholder(tf.int32, [], "limit")
    entered = apply_op("Enter", [start], {"frame_name": "loop"}, "i")
    bound = apply_op("Enter", [limit], {"frame_name": "loop", "is_constant": True}, "limit_in")
    now, _ = apply_op("Merge", [[entered, entered]], name="now")
    more = apply_op("LoopCond", [apply_op("Less", [now, bound])], name="more")
    out, inside = apply_op("Switch", [now, more], name="if")
    with graph.control_dependencies([inside.op]):
        one = tf.constant(1)
    following = apply_op("NextIteration", [apply_op("AddV2", [inside, one])], name="next")
    graph.close_loop(now.op, 1, following)
    apply_op("Exit", [out], name="out")


def _old_branch() -> None:
    p, x = tf.placeholder(tf.bool, [], "p"), tf.placeholder(tf.float32, [None], "x")
    otherwise, then = apply_op("Switch", [x, p])
    apply_op("Merge", [[apply_op("Exp", [otherwise]), apply_op("Neg", [then])]], name="merged")


def _old_variables() -> None:
    reference = apply_op("VariableV2", (), {"dtype": tf.float32, "shape": (2,)}, "v")
    apply_op("Assign", [reference, tf.constant([1.0, 2.0])], name="start")
    apply_op("AssignAdd", [reference, tf.placeholder(tf.float32, [2], "x")], name="add")
    apply_op("Identity", [reference], name="read")


BUILDERS: Mapping[str, Callable[[], None]] = {
    b.__name__.strip("_"): b
    for b in (
        _layers, _training, _loop, _nested_loops, _loop_gradient, _branches, _arrays, _variables, _selection, _strings,
        _random, _calls, _old_loop, _old_branch, _old_variables,
    )
}  # fmt: skip


@functools.cache
def named_graph(name: str) -> bytes:
    """Returns the GraphDef of one of BUILDERS, or for ``Op/NUMBER`` a call of an op with its sample of this number."""
    builder = BUILDERS.get(name)
    graph = tf.Graph()
    if builder is None:
        op, _, number = name.partition("/")
        graph = _call(op, int(number))
    else:
        with graph.as_default():
            builder()
    return bytes(graph.as_graph_def(add_shapes=len(name) % 2 == 0).SerializeToString(deterministic=True))


@functools.cache
def _samples() -> Mapping[str, Any]:
    """Returns the samples of all ops that can be called on values; those with large inputs take too long here."""
    return {
        op.name: [s for s in own_samples(op) if _elements(s) <= 4096] for op in registry.all_ops() if is_callable(op)
    }


def _elements(sample: Any) -> int:
    args = [a for arg in sample.inputs for a in (arg if isinstance(arg, list | tuple) else [arg])]
    return sum(int(np.prod(np.shape(a.values) if a.values is not None else a.shape)) for a in args)


def _call(name: str, number: int) -> Any:
    op = registry.get(name)
    sample = _samples()[name][number]
    groups = [types for found in combinations(op).values() for types in found if fits(op, sample, types)]
    trial = Trial(op, groups[number % len(groups)] if groups else (), sample, number)
    arrays = trial.arrays(f"hostile/{name}/{number}")
    return drive.build(op, trial.attrs(arrays), arrays, "", known=number % 2 == 0, fed=number % 3 > 0).graph


def choose(rng: random.Random) -> str:
    """Returns the name of a graph: a composite one, or a call of any op."""
    if rng.random() < 0.6:
        return rng.choice(list(BUILDERS))
    samples = _samples()
    op = rng.choice(sorted(name for name, found in samples.items() if found))
    return f"{op}/{rng.randrange(len(samples[op]))}"
