from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from timberframe_core.dtypes import as_dtype
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.accuracy import Bound, Pointwise
from timberframe_cpu.kernels.unary import KERNELS
from timberframe_cpu.native import available_isas, call, native
from timberframe_cpu.testing import run_op

WIDER = {"float16": "f8", "bfloat16": "f8", "float32": "f8", "complex64": "c16"}
EDGES = (
    np.nan,
    np.inf,
    -np.inf,
    0.0,
    -0.0,
    1.0,
    -1.0,
    1e-40,
    -1e-40,
    0.5,
    -0.5,
    1.5,
    2.5,
    9.5,
    88.9,
    -104.5,
    3e38,
    1e5,
    3e7,
)
CLAIMS = sorted({(k.op, t) for k in KERNELS for t in k.types.get("T", ("bool",))})


def _input(dtype: str) -> np.ndarray:
    rng = np.random.default_rng(7)
    numpy = as_dtype(dtype).numpy
    if dtype == "bool":
        return rng.integers(0, 2, 131).astype(bool)
    if numpy.kind in "iu":
        info = np.iinfo(numpy)
        return np.concatenate([rng.integers(-100 if info.min else 0, 100, 127), [0, 1, 6, 7]]).astype(numpy)
    reals = np.concatenate(
        [rng.uniform(-1, 1, 300), rng.uniform(-6, 6, 300), rng.uniform(-90, 90, 100), 10 ** rng.uniform(-30, 30, 100)]
    )
    if numpy.kind == "c":
        return (reals[:600] + 1j * np.roll(reals[:600], 250)).astype(numpy)
    with np.errstate(all="ignore"):
        return np.concatenate([reals, EDGES]).astype(numpy)


def _attrs(op: str, dtype: str) -> dict[str, object]:
    attrs: dict[str, object] = {name: a.default for name, a in registry.get(op).attrs.items() if not a.required}
    if "T" in registry.get(op).attrs:
        attrs["T"] = as_dtype(dtype)
    if op in ("Real", "Imag", "ComplexAbs", "Angle"):
        attrs["Tout"] = as_dtype("float32" if dtype == "complex64" else "float64")
    return attrs


def _ulp(exact: np.ndarray, dtype: np.dtype) -> np.ndarray:
    info = ml_dtypes.finfo(dtype)
    digits = info.nmant + 1
    _, exponent = np.frexp(np.minimum(np.where(np.isfinite(exact), np.abs(exact), 1), float(info.max)))
    return np.ldexp(1.0, np.maximum(exponent - digits, int(info.minexp) - digits + 1))


def _worst(got: np.ndarray, exact: np.ndarray) -> float:
    """Returns the largest error in ULP; an overflow must be one, a NaN a NaN."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(got.dtype)
        wide = got.astype(exact.dtype)
        same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
        error = np.where(same, 0, np.abs(wide - exact) / _ulp(exact, got.real.dtype))
        near_overflow = np.isinf(got) & (np.abs(exact) >= float(ml_dtypes.finfo(got.real.dtype).max) * (1 - 2.0**-20))
        if np.iscomplexobj(got):
            near_overflow |= ~np.isfinite(rounded) & ~np.isfinite(got)
        error = np.where(near_overflow, 0, np.where(np.isnan(error), np.inf, error))
    return float(error.max())


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize(("op", "dtype"), CLAIMS)
def test_result_is_within_the_declared_limit(op: str, dtype: str, isa: str) -> None:
    x, attrs, op_def = _input(dtype), _attrs(op, dtype), registry.get(op)
    if op == "Lgamma":
        x = x[~np.signbit(x)]  # the reference loses digits at the roots there; conformance knows better
    inputs = [x, np.roll(x, 17)][: len(op_def.inputs)]
    [got] = run_op(op, attrs, inputs, isa)
    assert op_def.reference is not None
    with np.errstate(all="ignore"):
        exact = op_def.reference(attrs, *(v.astype(WIDER.get(dtype, v.dtype)) for v in inputs))
    if isinstance(op_def.accuracy, Bound):
        pytest.skip("its bound depends on the input; conformance judges it")
    if not isinstance(op_def.accuracy, Pointwise) or got.dtype.kind in "iub":
        np.testing.assert_array_equal(got.astype(exact.dtype), exact.astype(got.dtype).astype(exact.dtype))
        return
    limits = op_def.accuracy
    half = got.dtype.itemsize == 2
    limit = limits.float16 if half else limits.float32 if got.real.dtype.itemsize == 4 else limits.float64
    if got.dtype.kind == "c" and limits.complex is not None:
        limit = limits.complex
    reference_error = 1.0 if WIDER.get(dtype) is None else 0.0  # the reference errs too where it is no wider
    assert _worst(got, exact) <= limit + reference_error


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("size", [0, 1, 3, 15, 16, 17, 33, 513, 40_001])
@pytest.mark.parametrize("op", ["Tanh", "Sin", "Floor", "Relu"])
def test_every_size_gives_the_same_elements(op: str, size: int, isa: str) -> None:
    x = np.linspace(-70_000, 70_000, 40_001, dtype=np.float32)
    [all_of_them] = run_op(op, {}, [x], isa)
    [some] = run_op(op, {}, [x[:size].copy()], isa, threads=2)
    np.testing.assert_array_equal(some, all_of_them[:size])


@pytest.mark.parametrize("kernel", ["tanh_float32", "sin_float32", "log_float16", "exp_float64", "sqrt_complex64"])
def test_kernel_may_run_in_place(kernel: str) -> None:
    x = np.linspace(1, 60_000, 1_000).astype(kernel.split("_")[1])
    apart = np.empty_like(x)
    call(native(kernel), [x], [apart])
    call(native(kernel), [x], [x])
    np.testing.assert_array_equal(x, apart)


def test_negative_zero_keeps_its_sign() -> None:
    x = np.full(5, -0.0, np.float32)
    for op in (
        "Sin",
        "Tan",
        "Asin",
        "Atan",
        "Sinh",
        "Tanh",
        "Asinh",
        "Atanh",
        "Expm1",
        "Log1p",
        "Sqrt",
        "Ceil",
        "Round",
    ):
        assert np.signbit(run_op(op, {}, [x])[0]).all(), op


def test_sine_of_a_huge_number_is_reduced_exactly() -> None:
    [y] = run_op("Sin", {}, [np.array([1e30], np.float32)])
    assert y[0] == np.float32(np.sin(np.float64(np.float32(1e30))))


def test_round_goes_to_even() -> None:
    [y] = run_op("Round", {}, [np.array([0.5, 1.5, 2.5, -0.5, -2.5], np.float32)])
    np.testing.assert_array_equal(y, [0, 2, 2, 0, -2])


def test_lowest_integer_has_itself_as_modulus() -> None:
    [y] = run_op("Abs", {}, [np.array([-128, -127], np.int8)])
    np.testing.assert_array_equal(y, [-128, 127])
