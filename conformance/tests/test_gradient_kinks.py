"""Declared gradients at zeros, ties and limits: which the suite refuses, and which it accepts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mpmath  # type: ignore[import-untyped]  # mpmath ships no types
import numpy as np
import pytest

from timberframe_conformance.judge import judge_case
from timberframe_conformance.suites.gradient_kinks import kink_cases
from timberframe_conformance.suites.gradient_limits import limit_cases
from timberframe_conformance.target import Target
from timberframe_conformance.truth.one_sided import precise_side, side
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.gradients import apply_op, broadcast_gradients, constant

TYPES = {"T": "float64", "Tidx": "int32", "Tindices": "int32"}


def verdicts(target: Target, name: str) -> dict[str, str]:
    """Returns verdicts by the kind of points and the order, with the messages of failures."""
    op = registry.get(name)
    types = tuple((t, TYPES[t]) for t in op.attrs if t in TYPES)
    results = [judge_case(c, target) for cases in (kink_cases, limit_cases) for c in cases(op, types)]
    return {r.id.split("/")[3]: r.verdict if r.verdict == "pass" else f"{r.verdict}: {r.message}" for r in results}


@contextmanager
def gradient_of(name: str, gradient: Callable[..., Any], **fields: Any) -> Iterator[None]:
    """Replaces the gradient of an op within the block."""
    old = registry.substitute(dataclasses.replace(registry.get(name), gradient=gradient, **fields))
    try:
        yield
    finally:
        registry.substitute(old)


@pytest.mark.parametrize("name", ["Abs", "Sqrt", "Maximum", "Max", "Cumprod", "SegmentMax", "TopKV2", "FloorMod"])
def test_right_gradients_pass(target: Target, name: str) -> None:
    found = verdicts(target, name)
    assert found
    assert set(found.values()) == {"pass"}


def test_nan_at_a_zero_is_noticed(target: Target) -> None:
    with gradient_of("Square", lambda op, grad: [2 * grad * apply_op("Square", [op.inputs[0]]) / op.inputs[0]]):
        found = verdicts(target, "Square")
    assert "gives element 0 the slope nan" in found["zeros-first"]
    assert "at [0.0] is nan; differences give" in found["limits-first"]


def test_any_subgradient_of_a_kink_passes(target: Target) -> None:
    def at_zero(slope: float) -> Callable[..., Any]:
        def gradient(op: Any, grad: Any) -> list[Any]:
            sign = apply_op("Sign", [op.inputs[0]])
            kink = apply_op("Cast", [apply_op("Equal", [sign, constant(0, sign.dtype)])], {"DstT": sign.dtype})
            return [grad * (sign + slope * kink)]

        return gradient

    for slope, verdict in ((0.5, "pass"), (-1.0, "pass"), (1.5, "fail")):
        with gradient_of("Abs", at_zero(slope)):
            assert verdicts(target, "Abs")["zeros-first"].startswith(verdict), slope


def test_shares_of_a_tie_that_add_up_to_more_are_noticed(target: Target) -> None:
    with gradient_of("Maximum", lambda op, grad: broadcast_gradients(op, grad, grad)):
        assert "as all of it moves" in verdicts(target, "Maximum")["ties-first"]


def test_missing_term_of_a_second_derivative_at_two_zeros_is_noticed(target: Target) -> None:
    right = registry.get("Cumprod").gradient
    assert callable(right)

    def wrong(op: Any, grad: Any) -> list[Any]:
        gradient = right(op, grad)[0]
        zero = apply_op("Equal", [op.inputs[0], apply_op("ZerosLike", [op.inputs[0]])])
        return [apply_op("SelectV2", [zero, apply_op("StopGradient", [gradient]), gradient]), None]

    with gradient_of("Cumprod", wrong):
        found = verdicts(target, "Cumprod")
    assert found["zeros-first"] == "pass"
    assert found["zeros-second"].startswith("fail")


def test_formula_that_overflows_far_out_is_noticed(target: Target) -> None:
    def wrong(op: Any, grad: Any) -> list[Any]:
        power = apply_op("Exp", [op.inputs[0]])
        return [grad * power / (power + 1)]

    with gradient_of("Softplus", wrong):
        assert "at [800.0] is nan; differences give 1" in verdicts(target, "Softplus")["limits-first"]


def test_sides_of_a_kink_and_a_jump() -> None:
    def f(t: float) -> np.ndarray:
        return np.array([abs(t), np.floor(t) + t, np.exp(t), 1 / t])

    right, left = side(f, 1), side(f, -1)
    np.testing.assert_allclose(right.slopes, [1, 1, 1, np.nan], rtol=1e-7)
    np.testing.assert_allclose(left.slopes, [-1, 1, 1, np.nan], rtol=1e-7)
    np.testing.assert_allclose(right.limits[:3] - left.limits[:3], [0, 1, 0], atol=1e-9)


def test_slope_of_a_saturated_function_in_arbitrary_precision() -> None:
    with mpmath.workprec(512):
        found = precise_side(lambda t: 1 / (1 + mpmath.exp(-40 - t)), 1, mpmath.mpf(2) ** -40)
    assert found == pytest.approx(np.exp(-40.0), rel=1e-9)
