"""Several devices of the type under test in one graph."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import timberframe
from timberframe.ops.opdef import OpDef
from timberframe_conformance.case import Case, Measured, UnsupportedError
from timberframe_conformance.suites.flow import same

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "graphs"
tf: Any = timberframe  # its functions take whatever converts to a tensor, as users give it
COUNT = 2


def collect(target: Target, ops: Sequence[OpDef]) -> Iterator[Case]:
    """Graphs over two devices of the type; unsupported where a session cannot have two."""
    for name, function in (("there-and-back", _there_and_back), ("side-by-side", _side_by_side), ("loop", _loop)):
        yield Case(
            SUITE, "Graph", (), f"two-devices-{name}", functools.partial(_run, function), "inference", expected=False
        )


def _run(function: Any, target: Target) -> Measured | None:
    kind = target.device.type
    graph = tf.Graph()
    with graph.as_default():
        fetches, feeds, wanted = function([f"/device:{kind}:{i}" for i in range(COUNT)])
    with target.session(graph, device_count={kind: COUNT}) as session:
        present = {d.spec.rpartition("/device:")[2] for d in session.list_devices()}
        if f"{kind}:{COUNT - 1}" not in present:
            raise UnsupportedError(f"a session has no {COUNT} devices of type {kind}")
        for _ in range(2):
            same(session.run(fetches, feeds), wanted)
    return None


def _there_and_back(specs: Sequence[str]) -> Any:
    x = tf.placeholder(tf.float32, (3,))
    y = x
    for k in range(6):
        with tf.device(specs[k % len(specs)]):
            y = y * 2.0 + float(k)
    a = np.array([1, 2, 3], np.float32)
    wanted = a
    for k in range(6):
        wanted = wanted * 2 + k
    return y, {x: a}, wanted


def _side_by_side(specs: Sequence[str]) -> Any:
    x = tf.placeholder(tf.float32, (50, 50))
    parts = []
    for spec in specs:
        with tf.device(spec):
            parts.append(tf.reduce_sum(tf.matmul(x, x)))
    with tf.device(specs[0]):
        total = tf.add_n(parts)
    a = np.eye(50, dtype=np.float32) * 2
    return total, {x: a}, np.float32(len(specs) * 200)


def _loop(specs: Sequence[str]) -> Any:
    """A loop whose body spans devices."""
    n = tf.placeholder(tf.int32, ())

    def body(i: Any, s: Any) -> Any:
        with tf.device(specs[-1]):
            s = s + i
        with tf.device(specs[0]):
            return i + 1, s * 2

    with tf.device(specs[0]):
        result = tf.while_loop(lambda i, s: i < n, body, [tf.constant(0), tf.constant(1)])[1]
    wanted = 1
    for i in range(5):
        wanted = (wanted + i) * 2
    return result, {n: 5}, wanted
