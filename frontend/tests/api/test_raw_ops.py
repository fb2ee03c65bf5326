"""tf.raw_ops: every op as a function of named arguments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import define_op
from timberframe_sdk.testing.loaded import temporary_ops

pytestmark = pytest.mark.usefixtures("graph")


def run(fetches: Any) -> Any:
    with tf.Session() as session:
        return session.run(fetches)


def test_every_registered_op_is_reachable() -> None:
    assert [op.name for op in registry.all_ops() if getattr(tf.raw_ops, op.name).__doc__.split("\n")[0] == ""] == []


def test_names_of_all_ops_are_listed() -> None:
    assert dir(tf.raw_ops) == sorted(op.name.replace(">", "_") for op in registry.all_ops())


def test_op_is_called_with_named_inputs_and_attrs() -> None:
    assert run(tf.raw_ops.ConcatV2(values=[[1, 2], [3]], axis=0, name="joined")).tolist() == [1, 2, 3]


def test_name_becomes_the_operations(graph: Any) -> None:
    assert tf.raw_ops.Neg(x=1.0, name="minus").name == "minus:0"


def test_several_outputs_have_names() -> None:
    found = tf.raw_ops.TopKV2(input=[3.0, 1.0, 2.0], k=2)
    assert [v.tolist() for v in run((found.values, found.indices))] == [[3, 2], [0, 2]]


def test_op_without_outputs_gives_the_operation() -> None:
    assert tf.raw_ops.NoOp().type == "NoOp"


def test_list_output_is_a_list() -> None:
    parts = tf.raw_ops.Split(axis=0, value=[1, 2, 3, 4], num_split=2)
    assert [v.tolist() for v in run(parts)] == [[1, 2], [3, 4]]


@pytest.fixture
def own_ops() -> Iterator[None]:
    with temporary_ops():
        yield


@pytest.mark.usefixtures("own_ops")
def test_op_of_a_vendor_is_called_with_an_underscore() -> None:
    define_op(
        "Acme>Half",
        inputs=["x: T"],
        outputs=["y: T"],
        attrs=["T: {float}"],
        doc="Half of x.",
        shape=lambda c: [c.shapes[0]],
        reference=lambda attrs, x: np.asarray(x / 2),
        on_host=True,
    )
    assert run(tf.raw_ops.Acme_Half(x=3.0)) == 1.5


def test_float_attr_has_the_value_of_a_float32() -> None:
    y = tf.raw_ops.LeakyRelu(features=[1.0], alpha=0.1)
    assert y.op.get_attr("alpha") == float(np.float32(0.1))
    assert tf.raw_ops.LeakyRelu(features=[1.0]).op.get_attr("alpha") == float(np.float32(0.2))


@pytest.mark.usefixtures("own_ops")
def test_attr_with_the_name_of_a_keyword_gets_an_underscore() -> None:
    define_op(
        "Acme>Shrink",
        inputs=["x: T"],
        outputs=["y: T"],
        attrs=["lambda: float = 0.5", "T: {float}"],
        doc="lambda x.",
        shape=lambda c: [c.shapes[0]],
        reference=lambda attrs, x: np.asarray(x * np.float32(attrs["lambda"])),
        on_host=True,
    )
    assert run(tf.raw_ops.Acme_Shrink(x=3.0, lambda_=0.25)) == 0.75


def test_signature_omits_what_follows_from_the_inputs() -> None:
    assert str(inspect.signature(tf.raw_ops.Cumsum)) == "(*, x, axis, exclusive=False, reverse=False, name=None)"


@pytest.mark.parametrize(
    ("arguments", "named", "message"),
    [
        ((1.0,), {}, "Neg: 1 arguments without names; only x, name may be given"),
        ((), {}, "Neg: missing a required .*argument: 'x'; its arguments are x, name"),
        ((), {"x": 1.0, "T": tf.float32}, "Neg: got an unexpected keyword argument 'T'"),
    ],
)
def test_wrong_arguments_are_type_errors(arguments: tuple[Any, ...], named: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        tf.raw_ops.Neg(*arguments, **named)


def test_unknown_op_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=re.escape("tf.raw_ops has no op 'Frobnicate'")):
        tf.raw_ops.Frobnicate  # noqa: B018 - the look-up is what is tested
