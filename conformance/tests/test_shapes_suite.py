"""The suite of shape and value functions: our own ops pass it, and mistakes that vendors make do not."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from timberframe_conformance.judge import judge_case
from timberframe_conformance.suites import shapes
from timberframe_conformance.suites.forward import is_callable
from timberframe_conformance.target import Target
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import InferenceContext, OpDef
from timberframe_core.shapes import Shape


def failures(target: Target, op: OpDef) -> dict[str, str]:
    """Returns what the failing cases of an op say, by the names of the checks."""
    results = [judge_case(case, target) for case in shapes.collect(target, [op])]
    assert results
    return {r.id.rsplit("/", 1)[1]: r.message for r in results if r.verdict != "pass"}


def half_of_last(x: Shape) -> Shape:
    return None if x is None else (*x[:-1], None if x[-1] is None else (x[-1] + 1) // 2)


@pytest.mark.parametrize("op", [op for op in registry.all_ops() if is_callable(op)], ids=lambda op: op.name)
def test_our_own_ops_pass(target: Target, op: OpDef) -> None:
    assert failures(target, op) == {}


def test_a_shape_that_is_guessed_while_the_size_is_not_known_fails(target: Target) -> None:
    def guess(c: InferenceContext) -> list[Shape]:
        x = c.shapes[0]
        return [(3,) if x is None or None in x else x]

    found = failures(target, dataclasses.replace(registry.get("Neg"), shape=guess))
    assert found["inference"].startswith(
        "for inputs of shapes <unknown> output 0 is said to have shape (3,); for inputs"
    )


def test_a_shape_that_is_guessed_while_that_of_the_variable_is_not_known_fails(target: Target) -> None:
    right = registry.get("ResourceGather").shape

    def guess(c: InferenceContext) -> Any:
        handle = c.handles[0]
        return right(c) if handle is not None and handle[1] is not None else [(3,)]

    found = failures(target, dataclasses.replace(registry.get("ResourceGather"), shape=guess))
    assert " output 0 is said to have shape (3,); for inputs of shapes " in found["inference"]


def test_a_shape_function_that_takes_ranks_for_known_fails(target: Target) -> None:
    def careless(c: InferenceContext) -> Any:
        return [tuple(d for d in c.shapes[0])]  # type: ignore[union-attr]  # this is the mistake

    found = failures(target, dataclasses.replace(registry.get("Neg"), shape=careless))
    assert (
        "raised TypeError: 'NoneType' object is not iterable for inputs of shapes <unknown>; it" in found["inference"]
    )


def test_a_shape_function_that_fails_by_a_wrong_call_fails(target: Target) -> None:
    right = registry.get("MatMul").shape

    def careless(c: InferenceContext) -> Any:
        try:
            return right(c)
        except ValueError as e:
            raise KeyError("inner size") from e

    found = failures(target, dataclasses.replace(registry.get("MatMul"), shape=careless))
    assert found.keys() == {"wrong-calls"}
    assert "raised KeyError: 'inner size' for inputs of shapes " in found["wrong-calls"]


def test_a_value_that_the_reference_does_not_give_fails(target: Target) -> None:
    found = failures(target, dataclasses.replace(registry.get("Neg"), value=lambda c: list(c.values)))
    assert " output 0 is said to be " in found["inference"]


def test_an_elementwise_op_that_shrinks_its_input_fails(target: Target) -> None:
    def half(attrs: Any, x: np.ndarray) -> np.ndarray:
        return x[..., ::2] if x.ndim else x

    shrinking = dataclasses.replace(
        registry.get("Cos"), reference=half, shape=lambda c: [half_of_last(c.shapes[0]) if c.shapes[0] else None]
    )
    found = failures(target, shrinking)
    assert found.keys() == {"broadcast"}
    assert found["broadcast"].startswith("the op is declared as elementwise, and makes (")
