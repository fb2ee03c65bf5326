"""ULP, limits and comparison."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from timberframe_conformance.case import CaseFailedError, Measured
from timberframe_conformance.profile import Profile
from timberframe_conformance.tolerance.compare import check
from timberframe_conformance.tolerance.declared import in_force
from timberframe_core.dtypes import as_dtype
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.accuracy import Accumulation, Pointwise
from timberframe_core.ops.definition.formats import FORMATS, ulp
from timberframe_core.ops.definition.opdef import OpDef

F32 = np.dtype(np.float32)


def judge(op: OpDef, inputs: list[np.ndarray], got: np.ndarray, **rest: Any) -> Measured:
    return check(op, {}, inputs, [got], [got.dtype], **rest)


def pointwise(limit: float, reference: Any) -> OpDef:
    return dataclasses.replace(
        registry.get("Neg"), name="Custom", reference=reference, accuracy=Pointwise(limit, limit)
    )


def test_ulp_is_the_spacing_above_a_number() -> None:
    x = np.array([1.0, 1.5, 2.0, 0.0, 1e-45, 3e38])
    expected = [np.spacing(np.float32(v)) for v in (1, 1.5, 2, 0, 1e-45, 3e38)]
    assert ulp(x, FORMATS["float32"]).tolist() == [float(e) for e in expected]


def test_exact_op_passes_with_equal_bits() -> None:
    x = np.array([1.5, -2.0, np.nan, np.inf], np.float32)
    assert judge(registry.get("Neg"), [x], -x).max_ulp == 0


def test_exact_op_fails_on_the_sign_of_zero() -> None:
    x = np.array([0.0, 1.0], np.float32)
    with pytest.raises(CaseFailedError, match=r"1 of 2 elements differ; at \[0\]"):
        judge(registry.get("Neg"), [x], np.array([0.0, -1.0], np.float32))


ZEROS = np.array([-0.0, 0.0, -0.0, 0.0]), np.array([0.0, -0.0, -0.0, 0.0])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("op", ["Maximum", "Minimum"])
def test_of_equal_zeros_a_maximum_may_give_either(op: str, dtype: str) -> None:
    x, y = (z.astype(as_dtype(dtype).numpy) for z in ZEROS)
    for zeros in (x, y):
        assert judge(registry.get(op), [x, y], zeros).max_ulp == 0
    wrong = x.copy()
    wrong[1] = 1e-3
    with pytest.raises(CaseFailedError, match=r"1 of 4 elements differ.*; at \[1\]"):
        judge(registry.get(op), [x, y], wrong)


def test_a_relu_of_minus_zero_may_give_either_zero() -> None:
    x = np.array([-0.0, 0.0], np.float16)
    for zeros in (x, -x):
        assert judge(registry.get("Relu"), [x], zeros).max_ulp == 0
    with pytest.raises(CaseFailedError, match=r"1 of 2 elements differ.*; at \[0\]"):
        judge(registry.get("Relu"), [x], np.array([-1e-3, 0.0], np.float16))


@pytest.mark.parametrize(("op", "right"), [("Maximum", [0.0, 0.0, -0.0, 0.0]), ("Minimum", [-0.0, -0.0, -0.0, 0.0])])
def test_a_device_that_promises_to_order_zeros_must(op: str, right: list[float]) -> None:
    x, y = ZEROS
    with in_force(Profile(orders_zeros=True)):
        judge(registry.get(op), [x, y], np.array(right))
        with pytest.raises(CaseFailedError, match="expected"):
            judge(registry.get(op), [x, y], x)


def test_nan_matches_only_nan() -> None:
    x = np.array([np.nan], np.float32)
    with pytest.raises(CaseFailedError):
        judge(registry.get("Neg"), [x], np.array([0.0], np.float32))


def test_pointwise_limit_is_kept_and_reported() -> None:
    op = pointwise(2.0, lambda attrs, x: x * 1.0)
    x = np.ones(3, np.float32)
    off = x.copy()
    off[1] += 2 * np.spacing(np.float32(1))
    measured = judge(op, [x], off)
    assert (measured.max_ulp, measured.limit) == (2.0, 2.0)
    assert measured.worst == "input 1.0"


def test_error_beyond_the_limit_fails_with_the_input() -> None:
    op = pointwise(2.0, lambda attrs, x: x * 1.0)
    x = np.full(3, 4.0, np.float32)
    off = x.copy()
    off[2] += 3 * np.spacing(np.float32(4))
    with pytest.raises(CaseFailedError, match=r"error 3 ULP, limit 2 ULP\), for input 4.0"):
        judge(op, [x], off)


def test_overflow_within_the_limit_may_be_infinite_or_largest() -> None:
    op = pointwise(2.0, lambda attrs, x: x * (1 + 2.0**-25))
    largest = np.array([np.finfo(np.float32).max])
    for got in (largest.astype(np.float32), np.array([np.inf], np.float32)):
        assert judge(op, [largest.astype(np.float32)], got).limit == 2.0


def test_lost_infinity_fails() -> None:
    op = pointwise(2.0, lambda attrs, x: x * 1.0)
    x = np.array([np.inf], np.float32)
    with pytest.raises(CaseFailedError):
        judge(op, [x], np.array([3e38], np.float32))


def test_flushed_subnormal_passes_only_where_declared() -> None:
    op = pointwise(1.0, lambda attrs, x: x * 1.0)
    x = np.array([1e-40, 1.0], np.float32)
    got = np.array([0.0, 1.0], np.float32)
    judge(op, [x], got, flushes_subnormals=True)
    with pytest.raises(CaseFailedError):
        judge(op, [x], got)


def test_results_of_flushed_subnormal_inputs_pass_only_where_declared() -> None:
    x, y = np.array([1e-40, 2.0], np.float32), np.array([3e38, 1.0], np.float32)
    got = np.array([0.0, 2.0], np.float32)
    judge(registry.get("Mul"), [x, y], got, flushes_subnormals=True)
    with pytest.raises(CaseFailedError, match="1 of 2 elements differ"):
        judge(registry.get("Mul"), [x, y], got)


def test_other_errors_fail_beside_flushed_subnormals() -> None:
    x, y = np.array([1e-40, 2.0], np.float32), np.array([3e38, 1.0], np.float32)
    with pytest.raises(CaseFailedError, match="1 of 2 elements differ"):
        judge(registry.get("Mul"), [x, y], np.array([0.0, 2.5], np.float32), flushes_subnormals=True)


def test_where_subnormals_may_be_flushed_the_message_is_of_what_the_device_did_with_them() -> None:
    """One that keeps them is right about three of four elements: to call those wrong, as zeros would be, misleads."""
    x, y = np.array([1e-40, 1e-40, 1e-40, 2.0], np.float32), np.array([3e38, 3e38, 3e38, 1.0], np.float32)
    got = x * y
    got[3] = 2.5
    with pytest.raises(CaseFailedError, match="1 of 4 elements differ"):
        judge(registry.get("Mul"), [x, y], got, flushes_subnormals=True)


def test_accumulated_error_is_bounded_by_terms_and_magnitude() -> None:
    op = dataclasses.replace(
        registry.get("Neg"),
        name="Custom",
        reference=lambda attrs, x: x.sum(),
        accuracy=Accumulation(lambda attrs, x: x.size),
    )
    x = np.array([1e4, -1e4, 1.0], np.float32)
    judge(op, [x], np.array(1.001, np.float32))
    with pytest.raises(CaseFailedError):
        judge(op, [x], np.array(1.1, np.float32))


def test_wrong_shape_and_dtype_are_named() -> None:
    x = np.ones((2, 3), np.float32)
    with pytest.raises(CaseFailedError, match=r"shape \[3, 2\]; it must be \[2, 3\]"):
        judge(registry.get("Neg"), [x], -x.T)
    with pytest.raises(CaseFailedError, match="dtype float64; it must be float32"):
        check(registry.get("Neg"), {}, [x], [-x.astype(np.float64)], [F32])


def test_float64_is_judged_by_mpmath_where_the_reference_errs() -> None:
    """A reference that is off by 100 ULP must not fail a right result, nor pass one that shares its error."""
    from timberframe_conformance.truth.functions import FUNCTIONS

    assert "Tanh" in FUNCTIONS
    op = dataclasses.replace(
        registry.get("Neg"),
        name="Tanh",
        reference=lambda attrs, x: np.tanh(x) * (1 + 100 * 2.0**-52),
        accuracy=Pointwise(5, 5),
    )
    x = np.linspace(-1, 1, 9)
    assert (judge(op, [x], np.tanh(x)).max_ulp or 0) < 5
    with pytest.raises(CaseFailedError):
        judge(op, [x], np.tanh(x) * (1 + 100 * 2.0**-52))


def test_decomposition_is_judged_by_what_must_hold_of_it() -> None:
    matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    q, r = np.linalg.qr(matrix)
    op, attrs, dtypes = registry.get("Qr"), {"full_matrices": False}, [np.dtype(np.float64)] * 2
    check(op, attrs, [matrix], [-q, -r], dtypes)
    with pytest.raises(CaseFailedError, match=r"input - q r is .* in 1 of 1"):
        check(op, attrs, [matrix], [-q, r], dtypes)


def tanh_gradient(y: np.ndarray, dy: np.ndarray, slope: np.ndarray) -> Measured:
    return judge(registry.get("TanhGrad"), [y, dy], (dy * slope).astype(y.dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_textbook_gradient_of_tanh_passes_near_one(dtype: Any) -> None:
    """1 - y * y loses what the product rounds: many ULP where y is nearly 1."""
    y = np.tanh(np.linspace(-9, 9, 1001)).astype(dtype)
    dy = np.linspace(-2, 2, 1001).astype(dtype)
    measured = tanh_gradient(y, dy, 1 - y * y)
    assert measured.max_ulp is not None
    assert measured.max_ulp >= 2


def test_a_gradient_of_tanh_that_is_wrong_elsewhere_fails() -> None:
    y = np.full(5, 0.5, np.float32)
    slope = 1 - y * y
    with pytest.raises(CaseFailedError):
        tanh_gradient(y, np.ones(5, np.float32), slope + 8 * np.spacing(slope))
