"""Resources of a session, by the example of one that another package could have: a box that waits to be filled."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op
from timberframe_core.ops.definition.opdef import define_op
from timberframe_core.plugin.host_ops import HostCall, host_op
from timberframe_sdk.testing.loaded import temporary_ops


class Box:
    """Holds numbers; a thread of its own sleeps until it is closed."""

    def __init__(self) -> None:
        self.filled = threading.Condition()
        self.items: list[Any] = []
        self.waiting = threading.Event()
        self._end = threading.Event()
        self.thread = threading.Thread(target=self._end.wait, name="box", daemon=True)
        self.thread.start()

    def close(self) -> None:
        self._end.set()
        self.thread.join()


def _make(call: HostCall) -> list[Any]:
    call.resources.get_or_make(call.made, Box)
    return []


def _put(call: HostCall) -> list[Any]:
    box = call.resources.find(call.handle())
    with box.filled:
        box.items.append(call.inputs[0])
        box.filled.notify_all()
    return []


def _take(call: HostCall) -> list[Any]:
    box = call.resources.find(call.handle())
    with box.filled:
        box.waiting.set()
        call.cancel.wait_for(box.filled, lambda: bool(box.items))
        return [box.items.pop(0)]


@pytest.fixture(autouse=True)
def _ops() -> Iterator[None]:
    with temporary_ops():
        define_op(
            "Acme>Box",
            outputs=["handle: resource"],
            attrs=["container: string = ''", "shared_name: string = ''"],
            doc="A box.",
            shape=lambda c: [()],
            on_host=True,
            resource="box",
            stateful=True,
        )
        for name, inputs, outputs in (
            ("Put", ["box: resource", "x: float"], []),
            ("Take", ["box: resource"], ["x: float"]),
        ):
            define_op(
                f"Acme>{name}",
                inputs=inputs,
                outputs=outputs,
                doc="Puts or takes.",
                shape=lambda c: [()] * len(c.op.outputs),
                on_host=True,
                kinds={"box": "box"},
                stateful=True,
            )
        for name, run in (("Box", _make), ("Put", _put), ("Take", _take)):
            host_op(f"Acme>{name}")(run)
        yield


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        yield session


def box(name: str = "box") -> Any:
    return apply_op("Acme>Box", attrs={"shared_name": name})


def put(handle: Any, x: Any) -> Any:
    return apply_op("Acme>Put", [handle, x])


def take(handle: Any) -> Any:
    return apply_op("Acme>Take", [handle])


def box_of(session: tf.Session, name: str = "box") -> Box:
    found = session.runtime.resources.find(f"box {name}")
    assert isinstance(found, Box)
    return found


def in_a_thread(work: Callable[[], Any]) -> tuple[threading.Thread, list[BaseException]]:
    """Starts the work in a thread, whose error it gives."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as e:
            errors.append(e)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, errors


def chosen() -> Any:
    """Returns what a condition that is fed chooses: the handle of one box or of another, and a number."""
    choose = tf.placeholder(tf.bool, [], name="choose")
    return tf.cond(choose, lambda: [box("a"), 1.0], lambda: [box("b"), 2.0], name="chosen")


def test_handle_that_a_condition_chooses_is_an_error(session: tf.Session) -> None:
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"If 'chosen': makes a resource .* \[.*test_resources.py:\d+\]"
    ):
        session.run(take(chosen()[0]), {"choose:0": True})


def test_condition_that_chooses_a_handle_gives_its_other_outputs(session: tf.Session) -> None:
    assert session.run(chosen()[1], {"choose:0": False}) == 2.0


@pytest.mark.parametrize("in_a_body", [False, True])
def test_handle_of_a_variable_where_a_resource_is_required_is_an_error(session: tf.Session, in_a_body: bool) -> None:
    variable = tf.Variable(1.0, name="v")
    wrong = tf.case([(tf.placeholder(tf.bool, [], "p"), lambda: take(variable.handle))], default=lambda: 1.0)
    message = r"^Acme>Take '.*': input box is a handle of .*'v'; one of a resource of kind 'box' is required  \["
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(wrong if in_a_body else take(variable.handle), {"p:0": True} if in_a_body else {})


def test_handle_of_another_kind_of_resource_is_an_error(session: tf.Session) -> None:
    queue = tf.FIFOQueue(1, tf.float32, name="q")
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"input box is a handle of 'queue q'; .* kind 'box'"):
        session.run(take(queue.queue_ref))


def test_kinds_name_inputs_that_are_handles() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"op Acme>Odd: is declared with kinds=.*name handles"):
        define_op("Acme>Odd", inputs=["x: float"], doc="?", shape=lambda c: [], on_host=True, kinds={"x": "box"})


def test_handles_with_one_shared_name_mean_one_resource(session: tf.Session) -> None:
    session.run(put(box(), 1.0))
    assert session.run(take(box())) == 1.0


def test_resource_in_a_container_is_another_one(session: tf.Session) -> None:
    session.run(put(box(), 1.0))
    session.run(apply_op("Acme>Box", attrs={"shared_name": "box", "container": "mine"}).op)
    assert session.runtime.resources.find("box mine:box").items == []


def test_resource_and_variable_of_one_name_are_two(session: tf.Session) -> None:
    variable = tf.Variable(2.0, name="box")
    session.run([variable.initializer, put(box(), 1.0)])
    assert session.run([variable, take(box())]) == [2.0, 1.0]


def test_sessions_have_resources_of_their_own(session: tf.Session) -> None:
    session.run(put(box(), 1.0))
    with tf.Session(graph=session.graph) as other:
        other.run(box().op)
        assert box_of(other).items == []


def test_resource_is_used_in_the_body_of_a_loop(session: tf.Session) -> None:
    handle = box()
    filled = tf.group(*(put(handle, float(i)) for i in range(4)))
    session.run(filled)
    assert session.run(tf.while_loop(lambda x: x < 5.0, lambda x: x + take(handle), [0.0])) == 6.0


def test_what_depends_on_a_host_op_of_known_shape_is_planned_once(session: tf.Session) -> None:
    handle = box()
    runner = session._runner(take(handle) * tf.ones([2]), {})
    assert runner.plan.schedule.static


def test_output_of_another_shape_than_the_graph_says_is_an_error(session: tf.Session) -> None:
    handle = box()
    session.run(tf.group(put(handle, tf.ones([2]))))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"output 0 has shape \(2,\); the graph says \(\)"):
        session.run(take(handle) + 1.0)


def test_timeout_ends_an_op_that_waits(session: tf.Session) -> None:
    start = time.monotonic()
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(take(box()), options=tf.RunOptions(timeout_in_ms=100))
    assert time.monotonic() - start < 5


def test_run_that_was_cancelled_takes_nothing(session: tf.Session) -> None:
    handle = box()
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(take(handle), options=tf.RunOptions(timeout_in_ms=50))
    session.run(put(handle, 3.0))
    assert session.run(take(handle)) == 3.0


def test_closing_the_session_ends_an_op_that_waits_in_another_thread(session: tf.Session) -> None:
    y = take(box())
    session.run(y.op.inputs[0].op)
    thread, errors = in_a_thread(lambda: session.run(y))
    assert box_of(session).waiting.wait(10)
    session.close()
    thread.join(10)
    assert [type(e) for e in errors] == [tf.errors.CancelledError]


def test_interrupt_ends_an_op_that_waits(session: tf.Session) -> None:
    y = take(box())
    session.run(y.op.inputs[0].op)
    waiting = box_of(session).waiting

    def interrupt() -> None:
        waiting.wait(10)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    thread, _ = in_a_thread(interrupt)
    with pytest.raises(KeyboardInterrupt):
        session.run(y)
    thread.join(10)


def test_waiting_op_goes_on_when_another_run_gives_what_it_needs(session: tf.Session) -> None:
    handle = box()
    y, fill = take(handle), put(handle, 4.0)
    session.run(handle.op)
    found: list[Any] = []
    thread, errors = in_a_thread(lambda: found.append(session.run(y)))
    assert box_of(session).waiting.wait(10)
    session.run(fill)
    thread.join(10)
    assert (found, errors) == ([np.float32(4)], [])


def test_closing_the_session_ends_the_threads_of_its_resources() -> None:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        session.run(box().op)
        thread = box_of(session).thread
    assert not thread.is_alive()


def test_destroyed_resource_is_closed(session: tf.Session) -> None:
    handle = box()
    session.run(handle.op)
    thread = box_of(session).thread
    session.run(tf.raw_ops.DestroyResourceOp(resource=handle))
    assert not thread.is_alive()


def test_reset_closes_the_sessions_of_the_process(session: tf.Session) -> None:
    tf.Session.reset("")
    with pytest.raises(tf.errors.FailedPreconditionError, match="session is closed"):
        session.run(tf.constant(1.0))
