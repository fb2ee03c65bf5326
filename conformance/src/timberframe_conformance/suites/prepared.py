"""Prepared inputs: what kernels derive from constants and from versions of variables (`KernelNode.prepared`).

Two kinds of cases. Those of MatMul with a kernel of the suite's own, which has the right operand transposed: a device
that compiles clusters itself must make such a form when it is due, and never use an old one. And those of each op that
sums products, such as convolutions, with the device's own kernels, whatever they keep of their weights.
"""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_conformance.case import LEVELS, Case, CaseFailedError, NotApplicableError
from timberframe_conformance.suites import weights
from timberframe_conformance.suites.checks import Checks, in_threads, same, tf
from timberframe_core.dtypes import as_dtype
from timberframe_core.errors import ResourceExhaustedError
from timberframe_core.graph.apply import apply_op
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.plugin.contracts import KernelDef, KernelNode, Value
from timberframe_sdk.launching import Launch

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "prepared"
LABEL = "conformance-prepares"
F = np.float32
W = np.array([[1, 2], [3, 5]], F)
X = np.array([[2, 1]], F)
MOST_ALLOCATIONS = 30
"""Allocations of a run that are made to fail at most."""

check = Checks(SUITE, LEVELS[0], expected=False)


def collect(target: Target, ops: Sequence[OpDef]) -> Iterator[Case]:
    """Yields the checks of this module, and those of the device's own kernels."""
    yield from check.collect(target, ops)
    yield from weights.collect(target, ops)


class Transposing:
    """A kernel of MatMul that has its right operand transposed once; works on any device that runs launchers.

    made: what forms were made of so far, on the host. forms: the forms, where arrays of the device can be referenced
    weakly.
    """

    def __init__(self, target: Target) -> None:
        self.device = target.device
        self.made: list[np.ndarray] = []
        self.forms: list[weakref.ref[Any]] = []

    def build(self, node: KernelNode) -> Launch:
        flipped = bool(node.attrs["transpose_b"])

        def form(w: Any) -> Any:
            host = np.array(self._host(w))
            self.made.append(host)
            made = self.device.copy_in(np.array(host if flipped else host.T))
            with contextlib.suppress(TypeError):
                self.forms.append(weakref.ref(made))
            return made

        shape = node.inputs[1].shape
        prepared = node.prepared(1, (LABEL, flipped), form, shape if flipped else shape[::-1])

        def launch(x: Any, w: Any, out: Any) -> None:
            right = self._host(w).T if prepared or flipped else self._host(w)
            self._write(self._host(x) @ right, out)

        return Launch(launch, repeatable=False)

    def _host(self, a: Any) -> np.ndarray:
        return a if isinstance(a, np.ndarray) else self.device.copy_out(a)

    def _write(self, value: np.ndarray, out: Any) -> None:
        if isinstance(out, np.ndarray):
            out[...] = value
        else:
            self.device.copy(self.device.copy_in(np.ascontiguousarray(value)), out)  # type: ignore[attr-defined]  # devices that run launchers have it


@contextlib.contextmanager
def transposing(target: Target) -> Iterator[Transposing]:
    """The kernel, registered within the block. NotApplicableError for a device that runs no registered kernels."""
    kernel, device = Transposing(target), target.device
    with contextlib.ExitStack() as undo:
        definition = KernelDef("MatMul", device.type, kernel.build, {"T": ("float32",)}, label=LABEL)
        device.kernels.register([definition], SUITE)
        undo.callback(device.kernels.unregister, SUITE)
        runs_launchers = device.host_memory or hasattr(device, "copy")
        if target.url or not runs_launchers or device.kernel(_probe(device)) is not definition:
            raise NotApplicableError("the device runs no kernels that this process registers")
        yield kernel


def _probe(device: Any) -> KernelNode:
    values = [Value(i, np.dtype(F), (2, 2), "input") for i in range(3)]
    attrs = {"T": as_dtype("float32"), "transpose_a": False, "transpose_b": False, "_kernel": LABEL}
    return KernelNode("MatMul", "probe", attrs, values[:2], values[2:], device)


def product(x: Any, w: Any, flipped: bool = False) -> Any:
    """Returns the product by the suite's kernel."""
    return apply_op("MatMul", [x, w], {"transpose_b": flipped, "_kernel": LABEL})


@check("MatMul", "constant")
def _constant(target: Target, graph: Any) -> None:
    """Once for all nodes, shapes, runs and sessions; another form for another key."""
    x, w = tf.placeholder(tf.float32, (None, 2)), tf.constant(W)
    results = [product(x, w), product(x + 1.0, w), product(x, w, True)]
    with transposing(target) as kernel:
        for _ in range(2):
            with target.session(graph) as session:
                for rows in (1, 3, 1):
                    a = np.repeat(X, rows, 0)
                    for got, wanted in zip(session.run(results, {x: a}), (a @ W, (a + 1) @ W, a @ W.T), strict=True):
                        same(got, wanted)
        if len(kernel.made) != 2:
            raise CaseFailedError(
                f"{len(kernel.made)} forms were made of one constant with two keys; one for each is due"
            )


@check("MatMul", "versions")
def _versions(target: Target, graph: Any) -> None:
    """At most once for each version of a variable, also of one that was written in place; never an old one."""
    x, v = tf.placeholder(tf.float32, (1, 2)), tf.Variable(W)
    y, double, add = product(x, v), v.assign(v * 2.0).op, v.assign_add(np.ones_like(W)).op
    with transposing(target) as kernel, target.session(graph) as session:
        for update, value in ((v.initializer, W), (double, 2 * W), (add, 2 * W + 1), (add, 2 * W + 2)):
            session.run(update)
            for _ in range(weights.LASTING_RUNS):
                same(session.run(y, {x: X}), X @ value, "the product after an update")
        made = [w.tolist() for w in kernel.made]
        if not made or any(made.count(w) > 1 for w in made):
            raise CaseFailedError(
                f"forms were made of {made}; one of each version that stays for {weights.LASTING_RUNS} runs is enough"
            )


@check("MatMul", "beside-other-variables")
def _beside_other_variables(target: Target, graph: Any) -> None:
    """Values of variables that no node reads are fetched beside a form, and are not mixed up with it."""
    x, v = tf.placeholder(tf.float32, (1, 2)), tf.Variable(W)
    others = [tf.Variable(np.full(n, n, F)) for n in (1, 2, 3)]
    fetches = [product(x, v), *(other.read_value() for other in others)]
    with transposing(target), target.session(graph) as session:
        session.run([v.initializer, *(other.initializer for other in others)])
        for _ in range(weights.LASTING_RUNS):
            first, *rest = session.run(fetches, {x: X})
            same(first, X @ W, "the product")
            for n, value in zip((1, 2, 3), rest, strict=True):
                same(value, np.full(n, n, F), "a variable that no node reads")


@check("MatMul", "dropped")
def _dropped(target: Target, graph: Any) -> None:
    """The form of a version goes with it."""
    x, v = tf.placeholder(tf.float32, (1, 2)), tf.Variable(W)
    y, update = product(x, v), v.assign(v * 2.0).op
    with transposing(target) as kernel, target.session(graph) as session:
        session.run(v.initializer)
        for _ in range(3):
            for _ in range(weights.LASTING_RUNS):
                session.run(y, {x: X})
            session.run(update)
        gc.collect()
        left = sum(form() is not None for form in kernel.forms)
        if left:
            raise CaseFailedError(f"{left} forms of old versions are still there when a new one was committed")


@check("MatMul", "failed-run")
def _failed_run(target: Target, graph: Any) -> None:
    """A run that fails commits nothing, so that the form of the version before is right."""
    x, v = tf.placeholder(tf.float32, (1, 2)), tf.Variable(W)
    row = tf.placeholder(tf.int32, (1,))
    y = product(x, v)
    update = v.assign(v + tf.reduce_sum(tf.gather(tf.ones((4, 2)), row))).op
    with transposing(target), target.session(graph) as session:
        session.run(v.initializer)
        for value in (W, W + 2):
            same(session.run(y, {x: X}), X @ value)
            try:
                session.run(update, {row: [4]})
            except tf.errors.InvalidArgumentError:
                same(session.run(y, {x: X}), X @ value, "the product after a run that failed")
            else:
                raise CaseFailedError("an index out of range is no error")
            session.run(update, {row: [1]})
        same(session.run(y, {x: X}), X @ (W + 4))


@check("MatMul", "updated-in-the-run")
def _updated_in_the_run(target: Target, graph: Any) -> None:
    """A product before an update of its weights and one after it, in one run."""
    x, v = tf.placeholder(tf.float32, (1, 2)), tf.Variable(W)
    before = product(x, v.read_value())
    with tf.control_dependencies([before]), tf.control_dependencies([v.assign_add(np.ones_like(W))]):
        after = product(x, v.read_value())
    with transposing(target), target.session(graph) as session:
        session.run(v.initializer)
        for step in range(3):
            got = session.run([before, after], {x: X})
            same(got[0], X @ (W + step), "the product before the update")
            same(got[1], X @ (W + step + 1), "the product after the update")


@check("MatMul", "loop")
def _loop(target: Target, graph: Any) -> None:
    """In the body of a loop, with a constant and with a variable that changes between runs."""
    x, v, c = tf.placeholder(tf.float32, (1, 2)), tf.Variable(W), tf.constant(W)
    body = lambda i, a: (i + 1, product(product(a, v), c))  # noqa: E731 - as tf.while_loop takes it
    y = tf.while_loop(lambda i, _: i < 3, body, [tf.constant(0), x])[1]
    with transposing(target), target.session(graph) as session:
        session.run(v.initializer)
        value = W
        for _ in range(3):
            same(session.run(y, {x: X}), X @ np.linalg.matrix_power(value @ W, 3))
            session.run(v.assign_sub(np.eye(2, dtype=F)).op)
            value = value - np.eye(2, dtype=F)


@check("MatMul", "sessions")
def _sessions(target: Target, graph: Any) -> None:
    """Two sessions at once, each with a value of its own for the same variable."""
    x, v, start = tf.placeholder(tf.float32, (1, 2)), tf.Variable(W), tf.placeholder(tf.float32, (2, 2))
    y, update = product(x, v), v.assign(start).op

    with transposing(target), target.session(graph) as one, target.session(graph) as other:
        sessions = (one, other)

        def work(number: int) -> None:
            for step in range(10):
                value = W * (1 + number) + step
                sessions[number].run(update, {start: value})
                for _ in range(2):
                    same(sessions[number].run(y, {x: X}), X @ value, f"the product in session {number}")

        in_threads(work, 2)


@check("MatMul", "threads")
def _threads(target: Target, graph: Any) -> None:
    """Runs at the same time while another thread updates: each sees a whole version, prepared from that one."""
    x, v = tf.placeholder(tf.float32, (1, 2)), tf.Variable(np.zeros((2, 2), F))
    y, update = product(x, v), v.assign_add(np.ones((2, 2), F)).op
    with transposing(target), target.session(graph) as session:
        session.run(v.initializer)

        def work(number: int) -> None:
            last = 0.0
            for _ in range(15):
                if number == 0:
                    session.run(update)
                    continue
                got = session.run(y, {x: np.ones((1, 2), F)})
                if got[0, 0] != got[0, 1] or got[0, 0] % 2 or got[0, 0] < last:
                    raise CaseFailedError(f"a run beside updates gives {got.tolist()} after {last}; versions only grow")
                last = float(got[0, 0])

        in_threads(work, 3)
        same(session.run(y, {x: np.ones((1, 2), F)}), np.full((1, 2), 30), "the product after all updates")


@check("MatMul", "memory-pressure")
def _memory_pressure(target: Target, graph: Any) -> None:
    """Whichever allocation fails while a form is made or used, later runs are right, and forms do not pile up."""
    x, v, start = tf.placeholder(tf.float32, (1, 2)), tf.Variable(W), tf.placeholder(tf.float32, (2, 2))
    y, update = product(x, v), v.assign(start).op
    allocator = target.device.allocator
    with transposing(target), target.session(graph) as session:
        session.run(v.initializer)
        session.run(update, {start: W})
        session.run(y, {x: X})
        before = target.settled(target.statistics())
        for n in range(MOST_ALLOCATIONS):
            session.run(update, {start: W + n})
            allocator.fail_at = n
            try:
                got = session.run(y, {x: X})
            except ResourceExhaustedError:
                got = None
            finally:
                consumed = allocator.fail_at is None
                allocator.fail_at = None
            if got is not None:
                same(got, X @ (W + n), f"the product when allocation {n} fails")
            same(session.run(y, {x: X}), X @ (W + n), f"the product after allocation {n} failed")
            del got
            if not consumed:
                break
        after = target.settled(before)
        if after.used > before.used:
            raise CaseFailedError(f"{after.used - before.used} bytes more are in use after {n + 1} further versions")
