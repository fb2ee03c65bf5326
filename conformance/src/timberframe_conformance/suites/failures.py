"""Drivers that fail: an error of the driver reaches the run that it belongs to, once, and nothing else.

`Device.inject_failure` has the next piece of work of a kind fail. Of a device that runs ahead of the host all kinds are
asked: that what fails in its queue arrives cannot be seen otherwise.
"""

from __future__ import annotations

import functools
import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_conformance.case import Case, CaseFailedError, Measured, NotApplicableError, UnsupportedError
from timberframe_conformance.suites.checks import tf
from timberframe_core.errors import OpError
from timberframe_core.ops.definition.opdef import OpDef

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE, LEVEL = "failures", "training"
KINDS = ("launch", "copy", "allocation", "compile", "queue")
OF_QUEUES = frozenset({"launch", "copy", "queue"})
"""Kinds that only a device which runs ahead of the host can have late."""
X = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
W = np.arange(12, dtype=np.float32).reshape(3, 4)
THREADS, RUNS = 4, 12
Check = Callable[["Target", str, Any], None]


def collect(target: Target, ops: Sequence[OpDef]) -> Iterator[Case]:
    """Yields the checks for each kind."""
    for kind in KINDS:
        for check in (_fetched, _not_fetched, _variables, _traced, _copied, _other_threads):
            if check in (_traced, _copied) and kind != "launch":
                continue
            detail = f"{kind}-{check.__name__.strip('_').replace('_', '-')}"
            run = functools.partial(_run, check, kind)
            yield Case(SUITE, "Device", (), detail, run, LEVEL, asked_by=LEVEL)


def _run(check: Check, kind: str, target: Target) -> Measured | None:
    device: Any = target.device
    if target.url:
        raise NotApplicableError("its driver is in another process")
    if not device.asynchronous and kind in OF_QUEUES:
        raise NotApplicableError("it runs nothing ahead of the host: what fails raises where it is called")
    if not device.inject_failure(kind):
        raise UnsupportedError(
            f"inject_failure({kind!r}) is False, so that nobody can see whether errors of the driver arrive; it must "
            "have the driver fail, see Device.inject_failure"
        )
    device.withdraw_failures()
    graph = tf.Graph()
    try:
        with graph.as_default(), tf.device(target.spec):
            check(target, kind, graph)
    finally:
        device.withdraw_failures()
    return None


class Program:
    """relu(x @ w), with w in a variable, in a session; each new program is compiled by itself."""

    def __init__(self, target: Target, graph: Any) -> None:
        self.x = tf.placeholder(tf.float32, (None, 3), name="x")
        self.w = tf.get_variable("w", initializer=tf.constant(W), use_resource=True)
        self.product = tf.matmul(self.x, self.w, name="product")
        self.y = tf.nn.relu(self.product, name="y")
        self.update = tf.assign_add(self.w, tf.ones_like(W), name="update")
        self.session = target.session(graph)
        self.session.run(tf.global_variables_initializer())

    def right(self, what: str, x: np.ndarray = X, w: np.ndarray = W) -> None:
        """Requires the result of a run."""
        found = self.session.run(self.y, {self.x: x})
        if not np.array_equal(found, x @ w):
            raise CaseFailedError(f"{what} gives {found.tolist()}; {(x @ w).tolist()} is required")

    def fails(self, kind: str, run: Callable[[], Any], device: Any) -> OpError:
        """Requires that a run with a failure raises it; gives the error."""
        device.inject_failure(kind)
        try:
            found = run()
        except OpError as e:
            return e
        _require_met(kind, device)
        raise CaseFailedError(
            f"a run in which the driver reports a failed {kind} raises nothing and gives {_shown(found)}; an error of "
            "the driver must be raised before anything that rests on it leaves the device"
        )


def _require_met(kind: str, device: Any) -> None:
    """NotApplicableError where a run asked the allocator for nothing, and so could not fail."""
    if kind == "allocation" and kind in device.withdraw_failures():
        raise NotApplicableError("the run asks the device's allocator for nothing")


def _shown(found: Any) -> str:
    return str(found.tolist() if isinstance(found, np.ndarray) else found)[:200]


def _program(target: Target, graph: Any, kind: str) -> Program:
    """Returns one whose work has been prepared, unless preparing is what is to fail."""
    program = Program(target, graph)
    if kind != "compile":
        program.right("the run before")
    return program


def _fetched(target: Target, kind: str, graph: Any) -> None:
    """Checks that the run raises the error, the next ones are right, and no memory is lost."""
    device: Any = target.device
    program = _program(target, graph, kind)
    before = target.statistics()
    error = program.fails(kind, lambda: program.session.run(program.y, {program.x: X}), device)
    if not str(error).strip():
        raise CaseFailedError(f"the error of a failed {kind} says nothing")
    del error
    for number in range(2):
        program.right(f"run {number + 1} after a failed {kind}")
    if kind != "compile":
        gc.collect()
        after = target.settled(before)
        if after.used > before.used or after.live > before.live:
            raise CaseFailedError(
                f"{after.used - before.used} bytes in {after.live - before.live} buffers are lost after a failed {kind}"
            )
    program.session.close()


def _not_fetched(target: Target, kind: str, graph: Any) -> None:
    """Checks that a run that fetches nothing raises the error itself, and leaves none to the next one."""
    if kind == "copy":
        raise NotApplicableError("nothing is copied to the host")
    device: Any = target.device
    program = _program(target, graph, kind)
    program.fails(kind, lambda: program.session.run(program.product.op, {program.x: X}), device)
    program.right(f"the run after a failed {kind}")
    program.session.close()


def _variables(target: Target, kind: str, graph: Any) -> None:
    """Checks that a variable keeps its value when the run that would change it fails."""
    device: Any = target.device
    program = _program(target, graph, kind)
    if kind == "copy":
        raise NotApplicableError("nothing that an update rests on is copied")
    program.fails(kind, lambda: program.session.run(program.update.op), device)
    found = program.session.run(program.w)
    if not np.array_equal(found, W):
        raise CaseFailedError(
            f"after a failed {kind} the variable is {found.tolist()}; it must be {W.tolist()}, as before the run"
        )
    program.session.run(program.update.op)
    program.right("a run after the update was repeated", w=W + 1)
    program.session.close()


def _traced(target: Target, kind: str, graph: Any) -> None:
    """Checks that a traced run, which waits for each node, names the one that failed."""
    device: Any = target.device
    program = _program(target, graph, kind)
    options = tf.RunOptions(trace=True)
    error = program.fails(
        kind, lambda: program.session.run(program.y, {program.x: X}, options, tf.RunMetadata()), device
    )
    if error.node is None or error.node.split("/")[0] not in ("product", "y"):
        raise CaseFailedError(f"the error of a traced run names node {error.node!r}; 'product' is the first: {error}")
    program.right("the run after a traced run that failed")
    program.session.close()


def _copied(target: Target, kind: str, graph: Any) -> None:
    """Copies of a tensor to the host raise the error of the launch that should have filled it."""
    device: Any = target.device
    if not hasattr(device, "empty") or not hasattr(device, "copy"):
        raise NotApplicableError("it copies nothing within the device by itself")
    copies = {"copy_out": device.copy_out, "start_copy_out": lambda a: device.start_copy_out(a).result()}
    for name, copy in copies.items():
        source, made = device.copy_in(X), device.empty(X.dtype, X.shape)
        device.synchronize()
        device.inject_failure(kind)
        try:
            device.copy(source, made)
            found = copy(made)
        except OpError:
            continue
        raise CaseFailedError(
            f"{name} gives {_shown(found)} though the launch that should have filled the tensor failed; it must raise "
            "the error"
        )
    if not np.array_equal(device.copy_out(device.copy_in(X)), X):
        raise CaseFailedError("copies are wrong after a failed launch")


def _other_threads(target: Target, kind: str, graph: Any) -> None:
    """Of runs in several threads one raises the error; all others, those under way too, are right."""
    if kind == "compile":
        raise NotApplicableError("programs that are compiled already have nothing to fail at")
    device: Any = target.device
    program = _program(target, graph, kind)
    inputs = [X * (n + 1) for n in range(THREADS)]
    for x in inputs:
        program.right("a run before", x)
    errors: list[BaseException] = []
    wrong: list[str] = []
    start = threading.Barrier(THREADS)

    def work(number: int) -> None:
        x = inputs[number]
        start.wait()
        for i in range(RUNS):
            if number == 0 and i == RUNS // 2:
                device.inject_failure(kind)
            try:
                program.right(f"run {i} of thread {number}", x)
            except CaseFailedError as e:
                wrong.append(str(e))
            except BaseException as e:
                errors.append(e)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise CaseFailedError(f"after a failed {kind} in one of {THREADS} threads, {wrong[0]}")
    if not errors:
        _require_met(kind, device)
    if len(errors) != 1:
        raise CaseFailedError(
            f"one failed {kind} is raised by {len(errors)} of {THREADS * RUNS} runs in {THREADS} threads; the run that "
            f"it belongs to must raise it, and no other: {[str(e) for e in errors][:2]}"
        )
    program.session.close()
