"""Compiled programs and kernels: what was made for one graph, shape or constant serves no other.

All numbers are small integers, so that float32 has them exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_conformance.case import LEVELS
from timberframe_conformance.suites.checks import Checks, in_threads, same, tf

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "programs"
check = Checks(SUITE, LEVELS[0])
collect = check.collect
BATCHES = (2, 7, 3, 301, 1, 5)
"""Batches that grow, shrink, are odd, no power of two and no multiple of what kernels compute at once."""
THREADS, RUNS, NODES = 4, 12, 12
SIZES = (8, 24)
"""Of square matrices: one is small enough to be written into a program, the other is not."""


def _integers(*shape: int, step: int = 1) -> np.ndarray:
    """Returns integers from -3 to 3 that differ from place to place. step: gives others."""
    return ((np.arange(np.prod(shape)) * (2 * step + 1) % 7) - 3).astype(np.float32).reshape(shape)


@check("Graph", "constants", ops=("MatMul", "Relu"))
def _constants(target: Target, graph: Any) -> None:
    """Graphs that differ in the values of a constant alone."""
    for size in SIZES:
        x = _integers(3, size)
        for step in (1, 2, 3):
            weights = _integers(size, size, step=step)
            with tf.Graph().as_default() as own, tf.device(target.spec):
                fed = tf.placeholder(tf.float32, (3, size))
                y = tf.nn.relu(tf.matmul(fed, tf.constant(weights)))
                with target.session(own) as session:
                    what = f"a product with constant {step} of {size} x {size}, in a graph that differs in it alone,"
                    same(session.run(y, {fed: x}), np.maximum(x @ weights, 0), what)


@check("Graph", "constants-of-one-graph", ops=("MatMul",))
def _one_graph(target: Target, graph: Any) -> None:
    """Nodes of one graph that differ in the values of a constant alone, fetched one by one and together."""
    for size in SIZES:
        x = tf.placeholder(tf.float32, (3, size))
        weights = [_integers(size, size, step=s) for s in (1, 2, 3)]
        products = [tf.matmul(x, tf.constant(w)) for w in weights]
        a = _integers(3, size)
        with target.session(graph) as session:
            for i, (y, w) in enumerate(zip(products, weights, strict=True)):
                same(session.run(y, {x: a}), a @ w, f"product {i + 1} of {len(weights)}, fetched alone,")
            for i, (found, w) in enumerate(zip(session.run(products, {x: a}), weights, strict=True)):
                same(found, a @ w, f"product {i + 1} of {len(weights)}, fetched with the others,")


@check("Graph", "batches-of-rows", ops=("MatMul", "BiasAdd", "Relu"))
def _rows(target: Target, graph: Any) -> None:
    """A batch that changes from run to run, in one session and in a new one."""
    weights, bias = _integers(20, 32), _integers(32, step=2)
    x = tf.placeholder(tf.float32, (None, 20))
    y = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, tf.constant(weights)), tf.constant(bias)))
    for _ in range(2):
        with target.session(graph) as session:
            for batch in BATCHES:
                a = _integers(batch, 20)
                same(session.run(y, {x: a}), np.maximum(a @ weights + bias, 0), f"a batch of {batch} rows")


@check("Graph", "batches-of-images", ops=("Conv2D", "Relu", "MaxPool"))
def _images(target: Target, graph: Any) -> None:
    """As batches-of-rows, with a convolution and a pool."""
    filters = _integers(5, 5, 1, 3)
    x = tf.placeholder(tf.float32, (None, 6, 6, 1))
    y = tf.nn.conv2d(x, tf.constant(filters), [1, 1, 1, 1], "SAME")
    z = tf.nn.max_pool(tf.nn.relu(y), [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    with target.session(graph) as session:
        for batch in BATCHES:
            images = _integers(batch, 6, 6, 1)
            wanted = _convolved(images, filters)
            got = session.run([y, z], {x: images})
            same(got[0], wanted, f"the convolution of {batch} images")
            pooled = np.maximum(wanted, 0).reshape(batch, 3, 2, 3, 2, 3).max((2, 4))
            same(got[1], pooled, f"the pool of {batch} images")


def _convolved(x: np.ndarray, filters: np.ndarray) -> np.ndarray:
    """Returns a convolution with SAME padding and windows of 5 x 5."""
    padded = np.pad(x, ((0, 0), (2, 2), (2, 2), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (5, 5), axis=(1, 2))
    found: np.ndarray = np.tensordot(windows, filters, axes=((4, 5, 3), (0, 1, 2)))
    return found


@check("Graph", "many-tensors", ops=("MatMul", "Relu"))
def _many(target: Target, graph: Any) -> None:
    """Intermediate tensors that are alive at the same time and take more than 65,536 bytes together."""
    weights = [_integers(16, 16, step=s) for s in (1, 2, 3, 4)]
    x = tf.placeholder(tf.float32, (None, 16))
    parts = [tf.nn.relu(tf.matmul(x, tf.constant(w))) for w in weights]
    last = tf.constant(np.eye(16, dtype=np.float32))
    total = [tf.matmul(p, last) for p in reversed(parts)]
    with target.session(graph) as session:
        for rows in (3, 1000, 2001):
            a = _integers(rows, 16)
            for found, w in zip(session.run(total, {x: a}), reversed(weights), strict=True):
                same(found, np.maximum(a @ w, 0), f"one of {len(weights)} results of {rows} rows")


@check("Graph", "read-by-several", ops=("MatMul", "BiasAdd", "Relu"))
def _read_by_several(target: Target, graph: Any) -> None:
    """Checks that a tensor that several nodes read is the same for each, in whatever order they run."""
    weights, bias = _integers(6, 8), _integers(8, step=2)
    x = tf.placeholder(tf.float32, (None, 6))
    y = tf.matmul(x, tf.constant(weights))
    with_bias = tf.nn.bias_add(y, tf.constant(bias))
    rectified = tf.nn.relu(y)
    again = tf.nn.bias_add(y, tf.constant(-bias))
    squared = tf.matmul(y, tf.constant(_integers(8, 5)))
    a = _integers(4, 6)
    product = a @ weights
    wanted = [product + bias, np.maximum(product, 0), product - bias, product @ _integers(8, 5), product]
    fetches = [with_bias, rectified, again, squared, y]
    with target.session(graph) as session:
        for order in (range(5), reversed(range(5))):
            chosen = list(order)
            for i, found in zip(chosen, session.run([fetches[i] for i in chosen], {x: a}), strict=True):
                same(found, wanted[i], f"result {i + 1} of 5 that rest on one product")


@check("Graph", "versions", ops=("MatMul", "Conv2D"))
def _versions(target: Target, graph: Any) -> None:
    """Weights in variables that change between runs, in two sessions that each have their own."""
    x, images = tf.placeholder(tf.float32, (None, 6)), tf.placeholder(tf.float32, (None, 6, 6, 1))
    w = tf.get_variable("w", initializer=_integers(6, 8), use_resource=True)
    filters = tf.get_variable("filters", initializer=_integers(5, 5, 1, 3), use_resource=True)
    new = tf.placeholder(tf.float32, (6, 8)), tf.placeholder(tf.float32, (5, 5, 1, 3))
    changes = [tf.assign(w, new[0]).op, tf.assign(filters, new[1]).op]
    fetches = [tf.matmul(x, w), tf.nn.conv2d(images, filters, [1, 1, 1, 1], "SAME")]
    rows, pictures = _integers(3, 6), _integers(2, 6, 6, 1)
    with target.session(graph) as one, target.session(graph) as other:
        for session in (one, other):
            session.run(tf.global_variables_initializer())
        for session, step in ((one, 2), (other, 3), (one, 4), (other, 5)):
            values = _integers(6, 8, step=step), _integers(5, 5, 1, 3, step=step)
            session.run(changes, dict(zip(new, values, strict=True)))
            for number in range(2):
                found = session.run(fetches, {x: rows, images: pictures})
                what = f"run {number + 1} after the weights of its session changed"
                same(found[0], rows @ values[0], f"the product in {what}")
                same(found[1], _convolved(pictures, values[1]), f"the convolution in {what}")


@check("Graph", "threads", ops=("MatMul", "Relu"))
def _threads(target: Target, graph: Any) -> None:
    """Numbers of threads, of which some do not divide the work."""
    weights = _integers(20, 32)
    x = tf.placeholder(tf.float32, (None, 20))
    y = tf.nn.relu(tf.matmul(x, tf.constant(weights)))
    for threads in (1, 2, 3, 4, 5, 7):
        with target.session(graph, intra_op_parallelism_threads=threads) as session:
            for batch in BATCHES:
                a = _integers(batch, 20)
                same(session.run(y, {x: a}), np.maximum(a @ weights, 0), f"{batch} rows with {threads} threads")


@check("Graph", "at-once", ops=("Conv2D", "MatMul", "Reshape", "Relu"))
def _at_once(target: Target, graph: Any) -> None:
    """One program that several threads run at once, each on inputs of its own."""
    filters = [_integers(5, 5, 1, 3, step=s) for s in range(NODES)]
    weights = _integers(108, 8)
    x = tf.placeholder(tf.float32, (None, 6, 6, 1))
    y = [tf.nn.conv2d(x, tf.constant(f), [1, 1, 1, 1], "SAME") for f in filters]
    z = tf.matmul(tf.reshape(tf.nn.relu(y[-1]), [-1, 108]), tf.constant(weights))
    with target.session(graph) as session:

        def work(number: int) -> None:
            images = _integers(number + 1, 6, 6, 1, step=number)
            wanted = [_convolved(images, f) for f in filters]
            product = np.maximum(wanted[-1], 0).reshape(-1, 108) @ weights
            for _ in range(RUNS):
                *got, last = session.run([*y, z], {x: images})
                for found, right in zip(got, wanted, strict=True):
                    same(found, right, f"a convolution in thread {number} of {THREADS}")
                same(last, product, f"the product in thread {number} of {THREADS}")

        in_threads(work, THREADS)


@check("Graph", "windows", LEVELS[-1], ops=("MaxPool", "AvgPool"))
def _windows(target: Target, graph: Any) -> None:
    """Pools that differ in their window alone, whose inputs and outputs have equal shapes."""
    a = 4 * _integers(2, 5, 6, 3)
    x = tf.placeholder(tf.float32, a.shape)
    for pool, fold in ((tf.nn.max_pool, np.nanmax), (tf.nn.avg_pool, np.nanmean)):
        windows = ((1, 2), (2, 1), (2, 2))
        made = [pool(x, [1, *w, 1], [1, 1, 1, 1], "SAME") for w in windows]
        with target.session(graph) as session:
            for (height, width), found in zip(windows, session.run(made, {x: a}), strict=True):
                padded = np.pad(a, ((0, 0), (0, height - 1), (0, width - 1), (0, 0)), constant_values=np.nan)
                taken = np.lib.stride_tricks.sliding_window_view(padded, (height, width), axis=(1, 2))
                same(found, fold(taken, (4, 5)), f"a pool with windows of {height} x {width}")


@check("Graph", "transposed", LEVELS[-1], ops=("MatMul",))
def _transposed(target: Target, graph: Any) -> None:
    """Products of square matrices that differ in what is transposed alone."""
    a, b = _integers(6, 6), _integers(6, 6, step=2)
    x, y = (tf.placeholder(tf.float32, (6, 6)) for _ in range(2))
    flags = [(p, q) for p in (False, True) for q in (False, True)]
    products = [tf.matmul(x, y, transpose_a=p, transpose_b=q) for p, q in flags]
    with target.session(graph) as session:
        for (p, q), found in zip(flags, session.run(products, {x: a, y: b}), strict=True):
            same(found, (a.T if p else a) @ (b.T if q else b), f"a product with transpose_a={p}, transpose_b={q}")
