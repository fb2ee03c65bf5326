"""Programs of any size, to see how their cost grows: for `timberframe` and, as a script of its own, for TensorFlow.

``python growth_programs.py NAME SIZE REPEATS`` prints, as JSON, the seconds of processor time of each part of a
program under TensorFlow, once for each repeat. It imports nothing of ours: TensorFlow may be in another environment.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

Times = dict[str, float]
"""Seconds of processor time by the part of a program."""


class Parts:
    """The parts of one program, each timed by a block."""

    def __init__(self) -> None:
        self.times: Times = {}

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Notes how long the block takes."""
        start = time.process_time()
        yield
        self.times[name] = time.process_time() - start


def _imported(tf: Any, build: Callable[[Any], Any]) -> Times:
    """Imports and runs a graph of one placeholder of four floats, of which `build` makes the result."""
    parts = Parts()
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [4], name="x")
        name = build(x).name
        graph_def = graph.as_graph_def()
    with tf.Graph().as_default(), tf.Session() as session:
        with parts.timed("import"):
            (y,) = tf.import_graph_def(graph_def, return_elements=[name], name="")
        with parts.timed("first run"):
            session.run(y, {"x:0": [0.0, 1.0, 2.0, 3.0]})
    return parts.times


def chain(tf: Any, size: int) -> Times:
    """Times a chain of `size` nodes, additions of a constant and tanh in turn."""

    def build(x: Any) -> Any:
        one = tf.constant(1.0)
        for i in range(size):
            x = tf.add(x, one) if i % 2 else tf.tanh(x)
        return x

    return _imported(tf, build)


def wide(tf: Any, size: int) -> Times:
    """Times `size` nodes of one input, added up a hundred at a time."""

    def build(x: Any) -> Any:
        parts = [tf.tanh(x) for _ in range(size)]
        while len(parts) > 1:
            parts = [tf.add_n(parts[i : i + 100]) for i in range(0, len(parts), 100)]
        return parts[0]

    return _imported(tf, build)


def variables(tf: Any, size: int) -> Times:
    """Times the first step of Adam over `size` variables of four floats."""
    parts = Parts()
    with tf.Graph().as_default(), tf.Session() as session:
        made = [tf.get_variable(f"v{i}", [4], tf.float32, tf.ones_initializer()) for i in range(size)]
        loss = tf.add_n([tf.reduce_sum(v * v) for v in made])
        with parts.timed("building"):
            step = tf.train.AdamOptimizer().minimize(loss)
        session.run(tf.global_variables_initializer())
        with parts.timed("first step"):
            session.run(step)
    return parts.times


def _nested(tf: Any, size: int, within: Callable[[Any, Any, Any], Any]) -> Times:
    """Times bodies within bodies, `size` deep, and their gradient.

    within: puts what a function makes of a value into one.
    """
    parts = Parts()

    def nest(depth: int, value: Any) -> Any:
        return value * 1.01 if depth == 0 else within(tf, value, lambda v: nest(depth - 1, v))

    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [])
        with parts.timed("building"):
            y = nest(size, x)
        with parts.timed("first run"):
            session.run(y, {x: 1.0})
        with parts.timed("gradient"):
            session.run(tf.gradients(y, x), {x: 1.0})
    return parts.times


def branches(tf: Any, size: int) -> Times:
    """Times branches within branches, `size` levels deep."""
    return _nested(tf, size, lambda tf, v, inner: tf.cond(v > -1e9, lambda: inner(v * 1.01), lambda: v))


def loops(tf: Any, size: int) -> Times:
    """Times loops of one iteration within loops, `size` levels deep."""

    def within(tf: Any, value: Any, inner: Any) -> Any:
        return tf.while_loop(lambda i, _: i < 1, lambda i, v: (i + 1, inner(v)), [tf.constant(0), value])[1]

    return _nested(tf, size, within)


def shapes(tf: Any, size: int) -> Times:
    """Times `size` shapes of a feed: the first run of each, and a second turn."""
    parts = Parts()
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 4])
        y = tf.reduce_sum(tf.tanh(x + 1.0) * 2.0)
        fed = [np.ones((i + 1, 4), np.float32) for i in range(size)]
        for name in ("first turn", "second turn"):
            with parts.timed(name):
                for array in fed:
                    session.run(y, {x: array})
    return parts.times


PROGRAMS: dict[str, tuple[Callable[[Any, int], Times], tuple[int, ...]]] = {
    "nodes of a chain": (chain, (2000, 4000, 8000, 16000, 32000)),
    "nodes side by side": (wide, (2000, 4000, 8000, 16000, 32000)),
    "variables of Adam": (variables, (125, 250, 500, 1000, 2000)),
    "branches in branches": (branches, (4, 8, 16, 32, 64)),
    "loops in loops": (loops, (2, 4, 8, 16, 24)),
    "shapes in turn": (shapes, (32, 64, 128, 256, 512)),
}
"""By name, a program of any size and the sizes that it is measured at."""


def measure(tf: Any, name: str, size: int, repeats: int) -> dict[str, list[float]]:
    """Returns the seconds of each part of a program, once for each repeat."""
    program, found = PROGRAMS[name][0], dict[str, list[float]]()
    for _ in range(repeats):
        gc.collect()
        for part, seconds in program(tf, size).items():
            found.setdefault(part, []).append(seconds)
    return found


if __name__ == "__main__":
    tensorflow = import_module("tensorflow.compat.v1")
    tensorflow.disable_v2_behavior()
    tensorflow.logging.set_verbosity(tensorflow.logging.ERROR)
    print(json.dumps(measure(tensorflow, sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
