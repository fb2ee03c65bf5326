"""References compared with arbitrary precision, and the table of functions."""

from __future__ import annotations

import numpy as np
import pytest

from timberframe_conformance.truth.functions import FUNCTIONS
from timberframe_conformance.truth.precise import as_double, evaluate
from timberframe_conformance.truth.reference import true_outputs
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.accuracy import Pointwise

POINTS = np.array([-2.6, -1.3, -0.7, -1e-3, 1e-9, 1e-3, 0.3, 0.7, 0.99, 1.5, 2.7, 20.5])

# At float64's own precision NumPy's and SciPy's references differ from the truth by less than this away from roots.
CLOSE = 1e-11

CORRECTLY_ROUNDED = {"LeakyRelu", "LeakyReluGrad", "MulNoNan", "Max", "Min"}

UNARY = sorted(name for name in FUNCTIONS if (op := registry.find(name)) is not None and len(op.inputs) == 1)
BINARY = sorted(name for name in FUNCTIONS if (op := registry.find(name)) is not None and len(op.inputs) == 2)


@pytest.mark.parametrize("name", UNARY)
def test_reference_of_unary_function_is_right(name: str) -> None:
    op = registry.get(name)
    attrs = {n: a.default for n, a in op.attrs.items() if not a.required}
    (found,) = true_outputs(op, attrs, [POINTS])
    for x, y in zip(POINTS, found, strict=True):
        truth = evaluate(name, [float(x)])
        if truth is not None and np.isfinite(y):
            assert y == pytest.approx(as_double(truth), rel=CLOSE)


@pytest.mark.parametrize("name", BINARY)
def test_reference_of_binary_function_is_right(name: str) -> None:
    op = registry.get(name)
    attrs = {n: a.default for n, a in op.attrs.items() if not a.required}
    x, y = POINTS, np.roll(POINTS, 5)
    (found,) = true_outputs(op, attrs, [x, y])
    for a, b, z in zip(x, y, found, strict=True):
        truth = evaluate(name, [float(a), float(b)])
        if truth is not None and np.isfinite(z):
            assert z == pytest.approx(as_double(truth), rel=CLOSE)


def test_every_function_with_a_limit_in_ulp_is_in_the_table() -> None:
    ours = [op for op in registry.all_ops() if ">" not in op.name]  # other tests of the process may define Vendor>Op
    limited = [op.name for op in ours if isinstance(op.accuracy, Pointwise) and len(op.inputs) <= 2]
    missing = [n for n in limited if n not in FUNCTIONS and n not in CORRECTLY_ROUNDED]
    assert not missing


def test_narrow_floats_are_widened_and_integers_kept() -> None:
    op = registry.get("AddV2")
    (wide,) = true_outputs(op, {}, [np.float16([1]), np.float16([2.0**-20])])
    assert wide.dtype == np.float64
    assert wide[0] == 1 + 2.0**-20
    (whole,) = true_outputs(op, {}, [np.int8([127]), np.int8([1])])
    assert whole.tolist() == [-128]
