"""Several devices of the type under test in one graph; arrays that stay on a device between runs."""

from __future__ import annotations

import functools
import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

import timberframe
from timberframe_conformance.case import Case, CaseFailedError, Measured, NotApplicableError
from timberframe_conformance.suites.checks import same
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.opdef import OpDef

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "graphs"
tf: Any = timberframe  # its functions take anything that converts to a tensor
COUNT = 2


def collect(target: Target, ops: Sequence[OpDef]) -> Iterator[Case]:
    """Graphs over two devices of the type; unsupported where a session cannot have two."""
    for name, function in (("there-and-back", _there_and_back), ("side-by-side", _side_by_side), ("loop", _loop)):
        yield Case(SUITE, "Graph", (), f"two-devices-{name}", functools.partial(_run, function), expected=False)
    yield Case(SUITE, "Graph", (), "two-devices-error", _error, expected=False)
    yield Case(SUITE, "Graph", (), "device-arrays", _device_arrays)


@contextmanager
def _two_devices(target: Target, graph: Any) -> Iterator[Any]:
    """A session with two devices of the type."""
    kind = target.device.type
    with target.session(graph, device_count={kind: COUNT}) as session:
        present = {d.spec.rpartition("/device:")[2] for d in session.list_devices()}
        if f"{kind}:{COUNT - 1}" not in present:
            raise NotApplicableError(f"a session has no {COUNT} devices of type {kind}")
        yield session


def _specs(target: Target) -> list[str]:
    return [f"/device:{target.device.type}:{i}" for i in range(COUNT)]


def _run(function: Any, target: Target) -> Measured | None:
    graph = tf.Graph()
    with graph.as_default():
        fetches, feeds, wanted = function(_specs(target))
    with _two_devices(target, graph) as session:
        for _ in range(2):
            same(session.run(fetches, feeds), wanted)
    return None


def _error(target: Target) -> Measured | None:
    """Checks that an error on one device ends the run and names it; variables and memory are
    intact, and the next run works.
    """
    graph, kinds = tf.Graph(), _specs(target)
    with graph.as_default():
        table, rows = tf.placeholder(tf.float32, (4, 5000)), {s: tf.placeholder(tf.int32, (None,)) for s in kinds}
        variables, fetches = [], []
        for i, spec in enumerate(kinds):
            with tf.device(spec):
                variables.append(tf.Variable(np.zeros(5000, np.float32)))
                fetches.append(tf.reduce_sum(tf.gather(table, rows[spec], name=f"taken{i}")))
                fetches.append(variables[i].assign_add(tf.ones((5000,))))
        with tf.device(kinds[0]):
            fetches.append(fetches[0] + fetches[2])
    with _two_devices(target, graph) as session:
        found = {d.spec: d for d in session.list_devices()}
        session.run([v.initializer for v in variables])

        def run(bad: str = "") -> Any:
            feeds: dict[Any, Any] = {row: [4 if spec == bad else 1] for spec, row in rows.items()}
            return session.run(fetches, {**feeds, table: np.ones((4, 5000), np.float32)})

        def used() -> list[int]:
            gc.collect()
            for spec in kinds:
                found[spec].synchronize()
            return [found[spec].allocator.statistics().used for spec in kinds]

        run()
        before = used()
        for i, spec in enumerate(kinds):
            _fails(run, spec, f"taken{i}")
            same(run()[-1], np.float32(10_000))
            for v in session.run(variables):
                same(v, np.full(5000, v[0]), "a variable after an error")
            del v
            if used() != before:
                raise CaseFailedError(
                    f"after an error on {spec} {used()} bytes are in use on the devices, not {before}"
                )
    return None


def _fails(run: Any, bad: str, node: str) -> None:
    try:
        run(bad)
    except InvalidArgumentError as e:
        if node not in str(e):
            raise CaseFailedError(f"the error on {bad} says {str(e)!r}; it must name '{node}'") from e
    else:
        raise CaseFailedError(f"an index out of range on {bad} is no error")


def _device_arrays(target: Target) -> Measured | None:
    """Checks that a result that stays on the device can be fed, outlives the next run, and gives its memory back."""
    a, graph = np.arange(20_000, dtype=np.float32), tf.Graph()
    with graph.as_default(), tf.device(target.spec):
        x = tf.placeholder(tf.float32, (None,))
        y = tf.add(x, x)
    with target.session(graph) as session:
        session.run(y, {x: a})
        allocator = next(d for d in session.list_devices() if d.spec == target.spec).allocator
        gc.collect()
        before = allocator.statistics()
        kept = session.run(y, {x: a}, tf.RunOptions(fetch_on_device=True))
        again = session.run(y, {x: kept}, tf.RunOptions(fetch_on_device=True))
        same(np.asarray(again), 4 * a)
        same(np.asarray(kept), 2 * a, "an array that was fed")
        del kept, again
        gc.collect()
        after = allocator.statistics()  # of the session's own device, which tells its process what was dropped
        if after.used > before.used:
            raise CaseFailedError(f"{after.used - before.used} bytes stay in use when the arrays are gone")
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
    """Returns a loop whose body spans devices."""
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
