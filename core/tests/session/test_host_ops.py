"""Host ops that another package registers: what the executor hands them, and what it does with what they give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.errors import AlreadyExistsError, OutOfRangeError, UnimplementedError, UnknownError
from timberframe_core.graph.apply import apply_op
from timberframe_core.ops.definition.opdef import define_op
from timberframe_core.plugin.host_ops import HostCall, host_op
from timberframe_sdk.testing.loaded import temporary_ops

NAME = "Acme>Look"
Define = Callable[..., None]


@pytest.fixture
def define() -> Iterator[Define]:
    """Defines the op, and registers a function for it where one is given."""
    with temporary_ops():

        def define(run: Any = None, output: str = "y: float", on_host: bool = True, **settings: Any) -> None:
            define_op(
                NAME,
                inputs=["x: float"],
                outputs=[output],
                attrs=["by: int = 2"],
                doc="What the test says.",
                shape=lambda c: [c.shapes[0]],
                on_host=on_host,
            )
            if run is not None:
                host_op(NAME, **settings)(run)

        yield define


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        yield session


FED = {"given:0": 3.0}


def look() -> Any:
    """Returns the op on what a device computes of a feed of 3."""
    return apply_op(NAME, [tf.placeholder(tf.float32, [], name="given") * 1.0], name="look")


def test_inputs_come_as_arrays_of_the_host(session: tf.Session, define: Define) -> None:
    define(lambda call: [call.inputs[0] * call.attrs["by"]])
    assert session.run(look(), FED) == 6.0


def test_located_inputs_come_with_their_device(session: tf.Session, define: Define) -> None:
    found = []

    def run(call: HostCall) -> Any:
        found.append(call.inputs[0])
        return call.inputs

    define(run, located=["x"])
    session.run(look() * 2.0, FED)
    assert found[0][1] is session.list_devices()[0]


def test_what_a_located_input_gives_may_stay_on_its_device(session: tf.Session, define: Define) -> None:
    define(lambda call: call.inputs, located=["x"])
    assert session.run(look() + 1.0, FED) == 4.0


def test_op_in_a_loop_runs_in_each_iteration(session: tf.Session, define: Define) -> None:
    define(lambda call: [call.inputs[0] + np.float32(1)])
    assert session.run(tf.while_loop(lambda x: x < 10.0, lambda x: apply_op(NAME, [x]), [0.5])) == 10.5


def test_missing_implementation_is_named_before_anything_runs(session: tf.Session, define: Define) -> None:
    define()
    variable = tf.Variable(1.0)
    assign, y = tf.assign(variable, 2.0), look()
    session.run(variable.initializer)
    with pytest.raises(
        UnimplementedError, match=f"^{NAME} 'look': no host op is registered for {NAME}; import.*test_host_ops"
    ):
        session.run([assign, y], FED)
    assert session.run(variable) == 1.0


def test_error_of_the_op_gets_its_name_and_the_users_line(session: tf.Session, define: Define) -> None:
    def run(call: HostCall) -> Any:
        raise OutOfRangeError("nothing is left; something is required")

    define(run)
    with pytest.raises(OutOfRangeError, match=rf"^{NAME} 'look': nothing is left; .*test_host_ops.py:\d+"):
        session.run(look(), FED)


def test_exception_of_the_op_becomes_an_error_with_its_cause(session: tf.Session, define: Define) -> None:
    define(lambda call: [1 / 0])
    with pytest.raises(UnknownError, match=f"^{NAME} 'look': ZeroDivisionError") as caught:
        session.run(look(), FED)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ([np.float64(1)], "gave output 0 as float64; float32 is required"),
        ([], "gave 0 outputs; a list of 1 outputs is required"),
        (None, "gave None; a list of 1 outputs is required"),
        (np.ones(1, np.float32), r"gave ndarray array\(\[1\.\], dtype=float32\); a list of 1 outputs is required"),
        (2.5, "gave float 2.5; a list of 1 outputs is required"),
    ],
)
def test_outputs_that_do_not_suit_are_errors(session: tf.Session, define: Define, made: Any, message: str) -> None:
    def run(call: HostCall) -> Any:
        return made

    define(run)
    with pytest.raises(tf.errors.InternalError, match=f"^{NAME} 'look': host op .*run {message}.*test_host_ops.py"):
        session.run(look(), FED)


def test_missing_kernel_of_an_op_with_a_host_op_is_explained(session: tf.Session, define: Define) -> None:
    define(lambda call: call.inputs, on_host=False)
    with pytest.raises(tf.errors.NoKernelError, match=r"a host op is registered for it; .* on_host=True"):
        session.run(look(), FED)


def test_second_function_for_an_op_is_refused(define: Define) -> None:
    define(lambda call: call.inputs)
    with pytest.raises(AlreadyExistsError, match=f"host op {NAME}: registered by"):
        host_op(NAME)(test_second_function_for_an_op_is_refused)  # type: ignore[type-var]  # refused before it is called


def test_explain_names_the_function(session: tf.Session, define: Define) -> None:
    def scaled(call: HostCall) -> Any:
        return call.inputs

    define(scaled)
    found = [k.kernel for k in session.explain(look(), FED).kernels if k.op == NAME]
    assert found == [f"host op {scaled.__module__}.{scaled.__qualname__}"]


def test_explain_says_that_the_executor_carries_the_op_out(session: tf.Session, define: Define) -> None:
    define(lambda call: call.inputs)
    found = [p.reason for p in session.explain(look(), FED).placements if p.op == NAME]
    assert found == ["the executor carries it out on the host"]


def test_trace_shows_the_call(session: tf.Session, define: Define) -> None:
    define(lambda call: call.inputs)
    metadata = tf.RunMetadata()
    session.run(look(), FED, tf.RunOptions(trace=True), metadata)
    assert f"{NAME} look" in [e["name"] for e in metadata.trace["traceEvents"]]


def test_state_of_a_session_is_kept_from_run_to_run(session: tf.Session, define: Define) -> None:
    def run(call: HostCall) -> Any:
        kept: list[int] = call.resources.get_or_make(f"count {call.path}", list)
        kept.append(1)
        return [np.float32(len(kept))]

    define(run)
    count = look()
    assert [session.run(count, FED) for _ in range(3)] == [1, 2, 3]


def test_closing_the_session_closes_resources_last_first(define: Define) -> None:
    closed = []

    class Kept:
        def __init__(self, name: str) -> None:
            self.name = name

        def close(self) -> None:
            closed.append(self.name)

    def run(call: HostCall) -> Any:
        call.resources.get_or_make("kept first", lambda: Kept("first"))
        call.resources.get_or_make("kept second", lambda: Kept("second"))
        return call.inputs

    define(run)
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        session.run(look(), FED)
    assert closed == ["second", "first"]


def test_resource_that_fails_to_close_leaves_the_others_closed(define: Define) -> None:
    closed = []

    class Kept:
        def close(self) -> None:
            closed.append(1)
            raise ValueError("no")

    def run(call: HostCall) -> Any:
        call.resources.get_or_make("kept a", Kept)
        call.resources.get_or_make("kept b", Kept)
        return call.inputs

    define(run)
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        session.run(look(), FED)
    assert len(closed) == 2
