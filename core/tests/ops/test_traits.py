"""What definitions say that ops are like, held against the rest of the definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import define_op
from timberframe_core.ops.definition.value_checks import RefusedIntegers


def _define(**traits: Any) -> None:
    given = {"inputs": ["x: T"], "outputs": ["y: T"], "attrs": ["T: type", "N: int = 2"], **traits}
    define_op("Acme>Contradiction", doc="", shape=lambda c: [None], **given)


@pytest.mark.parametrize(
    ("traits", "rule"),
    [
        ({"elementwise": True, "outputs": ["y: T", "z: T"]}, "one output and no lists"),
        ({"elementwise": True, "inputs": ["x: N * T"]}, "one output and no lists"),
        ({"reduction": "sum"}, "two inputs, the second a shape input"),
        ({"refused": RefusedIntegers(np.isnan, "")}, "it must be elementwise"),
        ({"defined_for": ({"Tout": ("float32",)},)}, "it must name attrs of the op"),
        ({"passes_through": True, "outputs": []}, "as many outputs as inputs"),
        ({"constant_inputs": ("y",)}, "name inputs"),
        ({"constant_outputs": ("x",)}, "name outputs"),
        ({"gradient_notes": ("free_phases",)}, "it must have a gradient"),
        ({"total_value": True}, "a value function"),
        ({"sized_by_values": True}, "it must have shape inputs"),
        ({"update_op": "Mul"}, "role must be assign_variable"),
        ({"resource_op": "Acme>ResourceX"}, "role must be reference"),
    ],
)
def test_a_trait_that_contradicts_the_signature_is_an_error(traits: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"op Acme>Contradiction: is declared with .*; .*{rule}"):
        _define(**traits)
    assert registry.find("Acme>Contradiction") is None


@pytest.mark.parametrize("op", [op.name for op in registry.all_ops() if op.update_op or op.resource_op])
def test_the_op_that_replaces_another_is_registered(op: str) -> None:
    found = registry.get(op)
    assert registry.find(found.update_op or found.resource_op) is not None


@pytest.mark.parametrize("op", [op.name for op in registry.all_ops() if op.passes_through and len(op.attrs) == 1])
def test_what_passes_through_has_the_reference_of_a_copy(op: str) -> None:
    x = np.arange(3.0)
    found = registry.get(op).reference
    assert found is not None
    result = found({"T": None}, x)
    assert np.array_equal(result[0] if isinstance(result, tuple) else result, x)
