"""What the function of a shared op sees of its call in the worker that has its resource."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from timberframe_core.dtypes import float32
from timberframe_core.errors import FailedPreconditionError, UnimplementedError
from timberframe_core.graphdef import messages
from timberframe_core.graphdef.attributes import encode_attr
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import NotDifferentiable, define_op
from timberframe_core.plugin.host_ops import HostCall, host_op, unregister
from timberframe_core.plugin.waiting import CancelToken
from timberframe_core.runtime.resources import ResourceStore
from timberframe_core.runtime.session import Session
from timberframe_core.runtime.shared_resources import carry_out


@pytest.fixture
def ask() -> Iterator[Callable[[Callable[[HostCall], Any]], np.ndarray]]:
    """Carries out, as a worker does, an op that returns what a function says of its call."""
    define_op(
        "Test>Ask", inputs=["store: resource"], outputs=["answer: string"], attrs=["level: int = 3"],
        doc="What the call has.", shape=lambda c: [()], gradient=NotDifferentiable("a text"), on_host=True,
        stateful=True,
    )  # fmt: skip

    def carried_out(question: Callable[[HostCall], Any]) -> np.ndarray:
        unregister("Test>Ask")
        host_op("Test>Ask", shared=True)(lambda call: [np.array(str(question(call)).encode(), object)])
        node = messages.NodeDef(op="Test>Ask", name="outer/ask")
        hidden = {
            "level": (7, "int"), "_handles": (["store shelf"], "list(string)"), "_made": ("", "string"),
            "_container": ("box", "string"), "_where": ("program.py:12", "string"),
        }  # fmt: skip
        for key, (value, kind) in hidden.items():
            node.attr[key].CopyFrom(encode_attr(value, kind))
        node.attr["_dtypes"].list.type.append(7)
        stores: dict[str, ResourceStore] = {}
        store = lambda name: stores.setdefault(name, ResourceStore())  # noqa: E731 - used once
        with Session() as session:
            device = session.runtime.devices.host
            assert device is not None
            return carry_out(node.SerializeToString(), [], store, device, CancelToken())[0]

    yield carried_out
    unregister("Test>Ask")
    registry.unregister("Test>Ask")


def test_node_and_line_are_those_of_the_program(ask: Callable[[Callable[[HostCall], Any]], np.ndarray]) -> None:
    answer = ask(lambda call: (call.op, call.name, call.where, call.attrs["level"], call.handle()))
    assert answer == b"('Test>Ask', 'outer/ask', 'program.py:12', 7, 'store shelf')"


def test_arrays_are_joined(ask: Callable[[Callable[[HostCall], Any]], np.ndarray]) -> None:
    ones = (np.ones(2, np.float32), None)
    assert ask(lambda call: call.joins.concat([ones, ones], float32)[0].shape) == b"(4,)"


def test_a_variable_without_a_value(ask: Callable[[Callable[[HostCall], Any]], np.ndarray]) -> None:
    def question(call: HostCall) -> None:
        raise call.uninitialized()

    with pytest.raises(FailedPreconditionError, match="Test>Ask 'outer/ask': variable 'store shelf' has no value"):
        ask(question)


@pytest.mark.parametrize(("what", "question"), [
    ("the run", lambda call: call.run_state), ("the graph", lambda call: call.function()),
])  # fmt: skip
def test_what_a_worker_does_not_have(
    what: str, question: Callable[[HostCall], Any], ask: Callable[[Callable[[HostCall], Any]], np.ndarray]
) -> None:
    with pytest.raises(UnimplementedError, match=f"knows nothing of {what}; an op that needs more than its resource"):
        ask(question)
