"""Targets: the same graph in this process and on the same kind of device in another one gives equal bits.

A device of this process is compared with that of the SDK's ``process:1``, one of a target with that of its type here.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_conformance.case import Case, CaseFailedError, Measured, NotApplicableError, generator
from timberframe_conformance.suites.checks import in_threads, same, tf
from timberframe_conformance.suites.models import MODELS, Net
from timberframe_conformance.twin import Twin
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.plugin.device_defaults import DeviceDefaults
from timberframe_sdk import register_target
from timberframe_sdk.testing import process_target

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "targets"
F = np.float32
PROCESS = "process:1"
X = np.linspace(-1, 1, 12, dtype=F).reshape(3, 4)
UNAVAILABLE_SECONDS = 5.0
"""By then a run must have failed whose process has ended: it should within a second, but machines are busy."""
LIMIT_MILLISECONDS = 150
LONGEST_MILLISECONDS = 15_000
"""For runs that wait for what another session does, which may have failed."""
_numbers = itertools.count()


def collect(target: Target, ops: Sequence[OpDef]) -> Iterator[Case]:
    """Yields each graph on both sides, errors, and the end of the other process."""
    for name, build in GRAPHS.items():
        yield _case(name, functools.partial(_equal_bits, build))
    for name in ("mlp", "lenet", "attention", "recurrent"):
        yield _case(f"model-{name}", functools.partial(_model, name))
    yield _case("error", _error)
    yield _case("process-ends", _process_ends)
    for name, check in SHARED.items():
        yield _case(f"shared-{name}", functools.partial(_shared, check))


def _case(detail: str, run: Callable[[Target], Measured | None]) -> Case:
    return Case(SUITE, "Graph", (), detail, run, expected=False)


class Sides:
    """The target here and the one in another process, and what devices of the type under test are called there."""

    def __init__(self, target: Target) -> None:
        kind = target.device.type
        if target.url:
            remote, self.here = target.spec, f"/device:{kind}:0"
        else:
            remote, self.here = f"/job:worker/task:0{target.spec}", target.spec
            register_target("process", process_target)
        self.there, self.url, self.config = remote, target.url or PROCESS, target.config
        with self.session("", None) as session:
            if self.here not in {d.spec for d in session.list_devices()}:
                raise NotApplicableError(f"this process has no {self.here}")
        with self.session(self.url, None) as session:
            names = {d.name for d in session.list_devices()}
        self.name = remote.replace("/task:0/", "/replica:0/task:0/") if "replica" not in remote else remote
        if self.name not in names:
            raise NotApplicableError(f"{self.url} has no {kind} ({', '.join(sorted(names))})")

    def session(self, url: str, graph: Any, **config: Any) -> Any:
        return tf.Session(url, graph=graph, config=tf.SessionConfig(**{**self.config, **config}))

    def results(self, build: Callable[[], Any]) -> list[Any]:
        """Returns what the run that `build` makes gives here and there: lists of arrays."""
        found = []
        for url, spec in (("", self.here), (self.url, self.there)):
            graph = tf.Graph()
            with graph.as_default(), tf.device(spec), tf.name_scope(f"targets{next(_numbers)}"):
                run = build()
                with self.session(url, graph) as session:
                    if tf.global_variables():
                        session.run([v.initializer for v in tf.global_variables()])
                    found.append([np.asarray(x) for x in run(session)])
        return found


def _compare(here: Sequence[np.ndarray], there: Sequence[np.ndarray]) -> None:
    for i, (a, b) in enumerate(zip(here, there, strict=True)):
        if a.dtype != b.dtype or a.shape != b.shape or a.tobytes() != b.tobytes():
            raise CaseFailedError(f"result {i} is {b.tolist()!r:.150} in the other process; here {a.tolist()!r:.150}")


def _equal_bits(build: Callable[[], Any], target: Target) -> None:
    _compare(*Sides(target).results(build))


def _model(name: str, target: Target) -> None:
    sides = Sides(target)
    twin = Twin(target)
    value = MODELS[name](Net(twin, generator(f"{SUITE}/{name}"), "float32"), 2)
    message = twin.graph.as_graph_def()
    for node in message.node:
        node.device = ""
    feeds = {t.name: x for t, x in twin.feeds.items()}

    def build() -> Any:
        (fetch,) = tf.import_graph_def(message, return_elements=[value.tensor.name], name="model")
        graph = tf.get_default_graph()
        scope = fetch.name.removesuffix(value.tensor.name)
        given = {graph.get_tensor_by_name(scope + n): x for n, x in feeds.items()}
        return lambda session: [session.run(fetch, given) for _ in range(2)]

    _compare(*sides.results(build))


def _elementwise() -> Any:
    x = tf.placeholder(tf.float32, (3, 4))
    y = tf.tanh(x * 2.0) + tf.sigmoid(x)
    return lambda session: session.run([y, tf.reduce_sum(y, 0), tf.argmax(x, 1)], {x: X})


def _several_runs() -> Any:
    """Returns shapes that change from run to run, and arrays with strides of any kind."""
    x = tf.placeholder(tf.float32, (None, None))
    y = tf.matmul(x, x, transpose_b=True)
    return lambda session: [session.run(y, {x: a}) for a in (X, X.T, X[::-1, ::2], X[:0], np.asfortranarray(X))]


def _attrs() -> Any:
    """Attrs that are not their defaults, constants of several dtypes, one of them in a branch."""
    x = tf.placeholder(tf.float32, (3, 4))
    table = tf.constant(np.arange(12, dtype=np.int64).reshape(4, 3).T.copy())
    y = [
        tf.matmul(x, x, transpose_a=True),
        tf.cumsum(x, axis=1, exclusive=True, reverse=True),
        tf.nn.leaky_relu(x, alpha=0.3),
        tf.gather(table, [2, 0], axis=1),
        tf.cond(tf.reduce_sum(x) > 9.0, lambda: x, lambda: tf.constant(0.1, shape=(3, 4))),
    ]
    return lambda session: session.run(y, {x: X})


def _variables() -> Any:
    v = tf.Variable(X, name="v")
    step = v.assign_sub(0.1 * tf.square(v)).op

    def run(session: Any) -> list[Any]:
        found = []
        for _ in range(3):
            session.run(step)
            found.append(session.run(v))
        return found

    return run


def _loop() -> Any:
    n, x = tf.placeholder(tf.int32, ()), tf.placeholder(tf.float32, (3, 4))

    def body(i: Any, a: Any) -> Any:
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: tf.sin(a) * 2.0, lambda: a - tf.reduce_mean(a))

    y = tf.while_loop(lambda i, _: i < n, body, [tf.constant(0), x])[1]
    return lambda session: [session.run(y, {x: X, n: k}) for k in (0, 1, 4)]


def _random() -> Any:
    draws = [tf.random_uniform((7,), seed=3), tf.random_normal((2, 3), seed=4), tf.random_shuffle(tf.range(9), seed=5)]
    return lambda session: [x for _ in range(3) for x in session.run(draws)]


def _host_ops() -> Any:
    """Checks that values go to the process of the session and back."""
    x = tf.placeholder(tf.float32, (3, 4))
    y = tf.py_func(lambda a: a.T.copy(), [tf.exp(x)], tf.float32)
    y.set_shape((4, 3))
    queue = tf.FIFOQueue(2, tf.float32, shapes=[(4, 3)])
    add, taken = queue.enqueue(y * 2.0), tf.square(queue.dequeue())

    def run(session: Any) -> list[Any]:
        session.run(add, {x: X})
        return [session.run(taken), session.run(y + 1.0, {x: X})]

    return run


GRAPHS: dict[str, Callable[[], Any]] = {
    "elementwise": _elementwise, "several-runs": _several_runs, "attrs": _attrs, "variables": _variables,
    "loop": _loop, "random": _random, "host-ops": _host_ops,
}  # fmt: skip


def _error(target: Target) -> None:
    """Checks that an error has the same class on both sides, and names its node; the session goes on."""

    def build() -> Any:
        row = tf.placeholder(tf.int32, (1,))
        y = tf.gather(tf.constant(np.ones((4, 3), F)), row, name="taken")

        def run(session: Any) -> list[Any]:
            try:
                session.run(y, {row: [4]})
            except tf.errors.InvalidArgumentError as e:
                if "taken" not in str(e):
                    raise CaseFailedError(f"the error says {e}; it must name 'taken'") from e
            else:
                raise CaseFailedError("an index out of range is no error")
            return [session.run(y, {row: [1]})]

        return run

    _compare(*Sides(target).results(build))


def _process_ends(target: Target) -> None:
    """Checks that a run fails by UnavailableError soon after the process has ended, other devices
    go on, a new session works.
    """
    sides = Sides(target)
    if sides.url != PROCESS:
        raise NotApplicableError(f"only the process of {PROCESS} is the suite's to end")
    graph = tf.Graph()
    with graph.as_default():
        x = tf.placeholder(tf.float32, (2,))
        with tf.device(sides.there):
            y = tf.exp(x)
        with tf.device("/job:localhost" + sides.here):
            z = tf.exp(x)
    with sides.session(sides.url, graph) as session:
        session.run([y, z], {x: [0, 0]})
        worker = process_target.workers_of("1").processes[0]
        assert worker is not None
        worker.kill()
        worker.wait(10)
        start = time.monotonic()
        try:
            session.run(y, {x: [0, 0]})
        except tf.errors.UnavailableError as e:
            if time.monotonic() - start > UNAVAILABLE_SECONDS:
                raise CaseFailedError(f"the run failed {time.monotonic() - start:.1f} s after its process ended") from e
        else:
            raise CaseFailedError("a run on a process that has ended is no error")
        _compare([np.ones(2, F)], [session.run(z, {x: [0, 0]})])
    with sides.session(sides.url, graph) as session:
        _compare([np.ones(2, F)], [session.run(y, {x: [0, 0]})])


def _shared(check: Callable[[Any, Any, Any], None], target: Target) -> None:
    """Calls a check of resources with a shared_name in the other process, with a graph there and two sessions."""
    sides = Sides(target)
    graph = tf.Graph()
    with sides.session(sides.url, graph) as one, sides.session(sides.url, graph) as other:
        device = next(d for d in one.list_devices() if d.name == sides.name)
        if getattr(type(device), "host_call", DeviceDefaults.host_call) is DeviceDefaults.host_call:
            raise NotApplicableError(f"{sides.there} keeps no resources that sessions share")
        with graph.as_default(), tf.device(sides.there), tf.name_scope(f"shared{next(_numbers)}"):
            check(one, other, f"shared{next(_numbers)}")
    tf.Session.reset(sides.url)


def _shared_queue(one: Any, other: Any, name: str) -> None:
    """Checks that elements that one session's device computed come once, in order and unchanged,
    to the device of another.
    """
    x = tf.placeholder(tf.float32, (None,))
    queue = tf.FIFOQueue(9, [tf.float32, tf.int32], shared_name=name)
    add = queue.enqueue([x * 2.0, tf.shape(x)])
    vector, size = queue.dequeue()
    taken = [vector + 1.0, size]
    arrays = [np.full(n, n, F) for n in (3, 0, 100_000)]
    for x_ in arrays:
        one.run(add, {x: x_})
    same(other.run(queue.size()), len(arrays), "the number of elements that another session sees")
    for x_ in arrays:
        got = other.run(taken, options=tf.RunOptions(timeout_in_ms=LONGEST_MILLISECONDS))
        same(got[0], x_ * 2 + 1, f"an element of {x_.size}")
        same(got[1], [x_.size])
    same(one.run(queue.size()), 0, "the number of elements when all are taken")


def _shared_accumulator(one: Any, other: Any, name: str) -> None:
    """Checks the mean of the gradients of two sessions, for which one waits while the other adds its own."""
    x = tf.placeholder(tf.float32, (3,))
    accumulator = tf.ConditionalAccumulator(tf.float32, (3,), shared_name=name)
    add, taken = accumulator.apply_grad(tf.square(x), 9), accumulator.take_grad(2) * 2.0
    a = np.array([1, 2, 3], F)
    one.run(add, {x: a})
    found: list[Any] = []

    def work(number: int) -> None:
        if number:
            other.run(add, {x: 3 * a})
        else:
            found.append(one.run(taken, options=tf.RunOptions(timeout_in_ms=LONGEST_MILLISECONDS)))

    in_threads(work, 2)
    same(found[0], 10 * a * a, "twice the mean of the gradients of two sessions")


def _shared_limit(one: Any, other: Any, name: str) -> None:
    """Checks that a run that waits there ends with its time limit, and takes nothing of what comes later."""
    x = tf.placeholder(tf.float32, (3,))
    queue = tf.FIFOQueue(9, tf.float32, shapes=[(3,)], shared_name=name)
    add, taken = queue.enqueue(x), tf.negative(queue.dequeue())
    try:
        one.run(taken, options=tf.RunOptions(timeout_in_ms=LIMIT_MILLISECONDS))
    except tf.errors.DeadlineExceededError:
        pass
    else:
        raise CaseFailedError("a run that waits for an empty queue ended before its time limit")
    other.run(add, {x: [1, 2, 3]})
    same(one.run(taken, options=tf.RunOptions(timeout_in_ms=LONGEST_MILLISECONDS)), np.array([-1, -2, -3], F))


def _shared_error(one: Any, other: Any, name: str) -> None:
    """Checks that an error there has its class and names its node; what is shared goes on."""
    x = tf.placeholder(tf.float32)
    accumulator = tf.ConditionalAccumulator(tf.float32, (2,), shared_name=name)
    add = accumulator.apply_grad(x * 1.0, name="adds")
    try:
        one.run(add, {x: [1, 2, 3]})
    except tf.errors.InvalidArgumentError as e:
        if "adds" not in str(e):
            raise CaseFailedError(f"the error says {e}; it must name 'adds'") from e
    else:
        raise CaseFailedError("a gradient of another shape is no error")
    other.run(add, {x: [1, 2]})
    same(one.run(accumulator.num_accumulated()), 1, "the number of gradients after one that was refused")


SHARED: dict[str, Callable[[Any, Any, Any], None]] = {
    "queue": _shared_queue, "accumulator": _shared_accumulator, "time-limit": _shared_limit, "error": _shared_error,
}  # fmt: skip
