"""The table of elementwise sources against the ops' definitions."""

from __future__ import annotations

import pytest

from timberframe_core.ops.definition import registry
from timberframe_sdk import define_source
from timberframe_sdk.elementwise.sources import SOURCES

OURS = [op for op in SOURCES if ">" not in op]


@pytest.mark.parametrize("op", OURS)
def test_a_source_has_the_result_that_the_op_defines(op: str) -> None:
    defined = registry.get(op)
    (output,) = defined.outputs
    last = defined.inputs[-1]
    same = output.type_attr is not None and output.type_attr == last.type_attr
    assert SOURCES[op].result == ("" if same or output.dtype == last.dtype else output.dtype and output.dtype.name)


@pytest.mark.parametrize("op", OURS)
def test_an_op_with_a_source_is_elementwise(op: str) -> None:
    assert registry.get(op).elementwise


@pytest.mark.parametrize("op", [op for op in OURS if SOURCES[op].checked])
def test_an_op_whose_source_is_checked_says_what_it_refuses(op: str) -> None:
    assert registry.get(op).refused is not None


@pytest.mark.parametrize("op", [op for op in OURS if SOURCES[op].attr_types()])
def test_a_source_knows_which_attrs_are_integers(op: str) -> None:
    kinds = {name: registry.get(op).attrs[name].kind for name in SOURCES[op].attr_types()}
    wanted = {name: "double" if kind == "float" else "int64_t" for name, kind in kinds.items()}
    assert SOURCES[op].attr_types() == wanted


def test_a_second_source_of_an_op_is_refused() -> None:
    with pytest.raises(ValueError, match=r"source of Neg: .* is defined; a second one must be the same"):
        define_source("Neg", floats="+{0}")
