"""Every op says how it is differentiated, or why it is not."""

from __future__ import annotations

from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import NotDifferentiable


def test_every_op_has_a_gradient_or_a_reason() -> None:
    own = [op for op in registry.all_ops() if ">" not in op.name]
    assert [op.name for op in own if op.gradient is None] == []


def test_reasons_are_given() -> None:
    reasons = [op.gradient.reason for op in registry.all_ops() if isinstance(op.gradient, NotDifferentiable)]
    assert reasons
    assert all(len(r) > 10 for r in reasons)
