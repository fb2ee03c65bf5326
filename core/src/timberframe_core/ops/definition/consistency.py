"""What the fields of a definition ask of each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from timberframe_core.dtypes import resource
from timberframe_core.errors import InvalidArgumentError

if TYPE_CHECKING:
    from timberframe_core.ops.definition.opdef import OpDef


def _has_one_result(op: OpDef) -> bool:
    return len(op.outputs) == 1 and not any(arg.is_list for arg in (*op.inputs, *op.outputs))


def _may_reduce(op: OpDef) -> bool:
    return _has_one_result(op) and len(op.inputs) == 2 and op.inputs[1].name in op.shape_inputs


def _names_handles(op: OpDef) -> bool:
    return op.on_host and {arg.name for arg in op.inputs if arg.dtype is resource}.issuperset(op.kinds)


_RULES: dict[str, tuple[Callable[[OpDef], bool], str]] = {
    "elementwise": (_has_one_result, "it must have one output and no lists"),
    "reduction": (_may_reduce, "it must have one output and two inputs, the second a shape input"),
    "refused": (lambda op: op.elementwise, "it must be elementwise"),
    "defined_for": (
        lambda op: all(t in op.attrs for types in op.defined_for for t in types),
        "it must name attrs of the op",
    ),
    "passes_through": (lambda op: len(op.inputs) == len(op.outputs), "it must have as many outputs as inputs"),
    "constant_inputs": (lambda op: {a.name for a in op.inputs}.issuperset(op.constant_inputs), "it must name inputs"),
    "constant_outputs": (
        lambda op: {a.name for a in op.outputs}.issuperset(op.constant_outputs),
        "it must name outputs",
    ),
    "gradient_notes": (lambda op: callable(op.gradient), "it must have a gradient"),
    "resource": (
        lambda op: op.on_host and len(op.outputs) == 1,
        "it must have on_host, and the handle as its one output",
    ),
    "kinds": (_names_handles, "it must have on_host and name handles"),
    "blocks": (lambda op: op.on_host, "it must have on_host"),
    "total_value": (lambda op: op.value is not None, "it must have a value function"),
    "sized_by_values": (lambda op: bool(op.shape_inputs), "it must have shape inputs"),
    "update_op": (lambda op: op.role == "assign_variable", "its role must be assign_variable"),
    "resource_op": (lambda op: op.role == "reference", "its role must be reference"),
}
"""By trait: whether it suits the rest of the definition, and what it asks for."""


def check_consistency(op: OpDef, given: Iterable[str]) -> None:
    """InvalidArgumentError where a field that lists inputs names none, or a trait contradicts other fields.

    given: the fields that the definition sets.
    """
    named = {a.name for a in op.inputs}
    unknown = [n for n in (*op.shape_inputs, *op.launch_inputs, *op.reads, *op.updates) if n not in named]
    if unknown:
        fact = f"{', '.join(unknown)} in shape_inputs, launch_inputs, reads or updates"
        raise InvalidArgumentError(f"op {op.name}: {fact}; it must name an input")
    for trait in given:
        if trait not in _RULES or not getattr(op, trait):
            continue
        fits, rule = _RULES[trait]
        if not fits(op):
            raise InvalidArgumentError(f"op {op.name}: is declared with {trait}={getattr(op, trait)!r}; {rule}")
