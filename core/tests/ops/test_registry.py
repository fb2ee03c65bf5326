"""The registry of ops knows which module defines each."""

from __future__ import annotations

import pytest

from timberframe_core.errors import AlreadyExistsError
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import define_op
from timberframe_core.ops.definition.shape_functions import unchanged


@pytest.mark.parametrize(
    ("op", "module"),
    [
        ("Tanh", "timberframe_core.ops.math.unary_math"),  # by a function of another module
        ("Relu", "timberframe_core.ops.nn.activations"),
        ("Identity", "timberframe_core.ops.array.identity"),
    ],
)
def test_an_op_is_of_the_module_that_defines_it(op: str, module: str) -> None:
    assert registry.module_of(op) == module


def test_a_second_definition_is_an_error_that_names_the_first() -> None:
    with pytest.raises(AlreadyExistsError, match=r"op Tanh: defined by timberframe_core\.ops\.math\.unary_math and"):
        define_op("Tanh", inputs=["x: float"], outputs=["y: float"], doc="x.", shape=unchanged)
