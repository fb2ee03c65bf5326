"""tf.gradients on graphs that TensorFlow built gives the gradients that TensorFlow's own gives."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

Compare = Callable[..., None]
REAL = ("float64", "float32")
ANY = ("float64", "complex128")

UNARY: dict[str, tuple[float, float, tuple[str, ...]]] = {
    "Abs": (-2, 2, REAL), "Neg": (-2, 2, ANY), "Square": (-2, 2, ANY), "Sqrt": (0.1, 3, ANY), "Rsqrt": (0.1, 3, ANY),
    "Reciprocal": (0.3, 2, ANY), "Inv": (0.3, 2, ANY), "Exp": (-2, 2, ANY), "Expm1": (-2, 2, ANY),
    "Log": (0.1, 3, ANY), "Log1p": (-0.5, 3, ANY), "Sin": (-3, 3, ANY), "Cos": (-3, 3, ANY), "Tan": (-1, 1, ANY),
    "Asin": (-0.9, 0.9, ANY), "Acos": (-0.9, 0.9, ANY), "Atan": (-3, 3, ANY), "Sinh": (-2, 2, ANY),
    "Cosh": (-2, 2, ANY), "Tanh": (-2, 2, ANY), "Asinh": (-2, 2, ANY), "Acosh": (1.1, 3, ANY),
    "Atanh": (-0.9, 0.9, ANY), "Sigmoid": (-3, 3, ANY), "Erf": (-2, 2, REAL), "Erfc": (-2, 2, REAL),
    "Erfinv": (-0.9, 0.9, REAL), "Ndtri": (0.1, 0.9, REAL), "Lgamma": (0.3, 4, REAL), "Sign": (-2, 2, ANY),
    "Relu": (-2, 2, REAL), "Relu6": (-2, 8, REAL), "Elu": (-2, 2, REAL), "Selu": (-2, 2, REAL),
    "Softplus": (-3, 3, REAL), "Softsign": (-3, 3, REAL), "LeakyRelu": (-2, 2, REAL), "L2Loss": (-2, 2, REAL),
    "Conj": (-2, 2, ("complex128",)), "Real": (-2, 2, ("complex64",)), "Imag": (-2, 2, ("complex64",)),
    "Angle": (-2, 2, ("complex64",)), "ComplexAbs": (-2, 2, ("complex64",)),
}  # fmt: skip
BINARY: dict[str, tuple[str, ...]] = {
    "Add": ANY, "AddV2": ANY, "Sub": ANY, "Mul": ANY, "Div": ANY, "RealDiv": ANY, "DivNoNan": ANY, "Pow": ANY,
    "SquaredDifference": REAL, "Maximum": REAL, "Minimum": REAL, "Atan2": REAL, "FloorMod": REAL, "Xlogy": REAL,
    "Xlog1py": REAL, "Xdivy": REAL, "MulNoNan": REAL, "FloorDiv": REAL, "NextAfter": REAL,
}  # fmt: skip
GRADIENT_OPS = ("TanhGrad", "SigmoidGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad")


def numbers(shape: tuple[int, ...], dtype: str, low: float = 0.2, high: float = 2.0, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.uniform(low, high, shape)
    return np.asarray(x + 1j * rng.uniform(low, high, shape) if dtype.startswith("c") else x, dtype)


def cases(table: Mapping[str, Any]) -> list[Any]:
    return [
        pytest.param(op, dtype, id=f"{op}-{dtype}")
        for op, entry in table.items()
        for dtype in (entry[-1] if isinstance(entry[-1], tuple) else entry)
    ]


@pytest.mark.parametrize(("op", "dtype"), cases(UNARY))
def test_function_of_one_operand(compare: Compare, tensorflow: Any, op: str, dtype: str) -> None:
    low, high, _ = UNARY[op]
    argument = next(iter(inspect.signature(getattr(tensorflow.raw_ops, op)).parameters))
    compare(op, {argument: numbers((3, 4), dtype, low, high)}, unknown=op < "L")


@pytest.mark.parametrize(("op", "dtype"), cases(BINARY))
@pytest.mark.parametrize("unknown", [False, True], ids=["known", "unknown"])
def test_broadcasting_operands(compare: Compare, tensorflow: Any, op: str, dtype: str, unknown: bool) -> None:
    first, second = list(inspect.signature(getattr(tensorflow.raw_ops, op)).parameters)[:2]
    inputs = {first: numbers((2, 1, 3), dtype), second: numbers((4, 1), dtype, seed=1)}
    compare(op, inputs, unknown=unknown)


def test_derivatives_of_log_gamma(compare: Compare) -> None:
    x = numbers((5,), "float64")
    compare("Digamma", {"x": x})
    compare("Polygamma", {"a": np.array([1.0, 2, 3, 1, 1]), "x": x})
    compare("Zeta", {"x": np.array(2.5), "q": x})


def test_power_of_negative_base_with_integer_exponent(compare: Compare) -> None:
    x, y = np.array([-2.0, -1.0, 0.0, 3.0]), np.array([3.0, 2.0, 2.0, 0.0])
    compare("Pow", {"x": x, "y": y})


@pytest.mark.parametrize("op", GRADIENT_OPS)
@pytest.mark.parametrize("dtype", ANY)
def test_second_order_of_functions(compare: Compare, op: str, dtype: str) -> None:
    compare(op, {"y": numbers((5,), dtype), "dy": numbers((5,), dtype, seed=1)})


@pytest.mark.parametrize("op", ["ReluGrad", "Relu6Grad", "EluGrad", "SeluGrad", "SoftplusGrad", "LeakyReluGrad"])
def test_second_order_of_activations(compare: Compare, op: str) -> None:
    second = "outputs" if op in ("EluGrad", "SeluGrad") else "features"
    compare(op, {"gradients": numbers((5,), "float64"), second: numbers((5,), "float64", -0.9, 2)})


@pytest.mark.parametrize("op", ["Sum", "Mean", "Prod", "Max", "Min", "EuclideanNorm"])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("unknown", [False, True], ids=["known", "unknown"])
def test_reduction(compare: Compare, op: str, keep: bool, unknown: bool) -> None:
    inputs = {"input": numbers((2, 3, 4), "float64"), "axis": np.array([0, -1], np.int32)}
    compare(op, inputs, {"keep_dims": keep}, unknown)


def test_equal_extremes_share_the_gradient(compare: Compare) -> None:
    x = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
    compare("Max", {"input": x, "axis": np.array(1, np.int32)})
    compare("Maximum", {"x": x, "y": x[:, ::-1].copy()})
    compare("Minimum", {"x": x, "y": x[:, ::-1].copy()})


def test_product_with_zeros(compare: Compare) -> None:
    x = np.array([[1.0, 0.0, 3.0], [0.0, 0.0, 2.0]])
    compare("Prod", {"input": x, "axis": np.array([1], np.int32)})


@pytest.mark.parametrize("op", ["Cumsum", "Cumprod", "CumulativeLogsumexp"])
@pytest.mark.parametrize("exclusive", [False, True])
def test_scan(compare: Compare, op: str, exclusive: bool) -> None:
    for reverse in (False, True):
        inputs = {"x": numbers((3, 4), "float64"), "axis": np.array(1, np.int32)}
        compare(op, inputs, {"exclusive": exclusive, "reverse": reverse})


@pytest.mark.parametrize("dtype", ANY)
@pytest.mark.parametrize(("a", "b"), [(False, False), (False, True), (True, False), (True, True)])
def test_product_of_matrices(compare: Compare, dtype: str, a: bool, b: bool) -> None:
    x, y = numbers((4, 3) if a else (3, 4), dtype), numbers((2, 4) if b else (4, 2), dtype)
    compare("MatMul", {"a": x, "b": y}, {"transpose_a": a, "transpose_b": b})
    batches = {"x": np.stack([x, 2 * x])[:, None], "y": np.stack([y, y + 1, y - 1])}
    compare("BatchMatMulV2", batches, {"adj_x": a, "adj_y": b})


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]), ("bij,bkj->bik", [(2, 3, 4), (2, 5, 4)]), ("ii->i", [(3, 3)]),
        ("ij->", [(2, 3)]), ("ij,kl->j", [(2, 3), (2, 2)]), ("...ij,jk->...ik", [(2, 3, 4), (4, 2)]),
        ("...i,...i->...", [(3, 1, 4), (2, 4)]), ("abc->ca", [(2, 3, 4)]),
    ],
)  # fmt: skip
def test_einsum(compare: Compare, equation: str, shapes: list[tuple[int, ...]]) -> None:
    inputs = [numbers(s, "float64", seed=i) for i, s in enumerate(shapes)]
    compare("Einsum", {"inputs": inputs}, {"equation": equation})


def test_choices(compare: Compare) -> None:
    condition = np.array([True, False, True])
    t, e = numbers((3,), "float64"), numbers((3,), "float64", seed=1)
    compare("Select", {"condition": condition, "x": t, "y": e})
    compare("SelectV2", {"condition": condition, "t": t.reshape(3, 1), "e": e[0]})
    bounds = {"clip_value_min": np.array(0.5), "clip_value_max": np.array(1.5)}
    compare("ClipByValue", {"t": numbers((7,), "float64"), **bounds})
    compare("AddN", {"inputs": [t, e, t]})
    compare("Cross", {"a": t, "b": e})


@pytest.mark.parametrize(
    ("source", "target"), [("float32", "float64"), ("complex128", "float64"), ("float64", "int32")]
)
def test_cast(compare: Compare, tensorflow: Any, source: str, target: str) -> None:
    compare("Cast", {"x": numbers((3,), source)}, {"DstT": tensorflow.as_dtype(target)})


def test_complex_of_parts(compare: Compare) -> None:
    compare("Complex", {"real": numbers((2, 3), "float32"), "imag": numbers((3,), "float32", seed=1)})
