"""References compared with arbitrary precision, and the table of functions."""

from __future__ import annotations

import numpy as np
import pytest

from timberframe_conformance.truth import functions
from timberframe_conformance.truth.functions import FUNCTIONS
from timberframe_conformance.truth.precise import as_double, evaluate
from timberframe_conformance.truth.reference import true_outputs
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.accuracy import Pointwise

POINTS = np.array([-2.6, -1.3, -0.7, -1e-3, 1e-9, 1e-3, 0.3, 0.7, 0.99, 1.5, 2.7, 20.5])

# At float64's own precision NumPy's and SciPy's references differ from the truth by less than this away from roots.
CLOSE = 1e-11

UNARY = sorted(name for name in FUNCTIONS if (op := registry.find(name)) is not None and len(op.inputs) == 1)
BINARY = sorted(name for name in FUNCTIONS if (op := registry.find(name)) is not None and len(op.inputs) == 2)


@pytest.mark.parametrize("name", UNARY)
def test_reference_of_unary_function_is_right(name: str) -> None:
    op = registry.get(name)
    attrs = {n: a.default for n, a in op.attrs.items() if not a.required}
    (found,) = true_outputs(op, attrs, [POINTS])
    for x, y in zip(POINTS, found, strict=True):
        truth = evaluate(name, [float(x)], attrs)
        if truth is not None and np.isfinite(y):
            assert y == pytest.approx(as_double(truth), rel=CLOSE)


@pytest.mark.parametrize("name", BINARY)
def test_reference_of_binary_function_is_right(name: str) -> None:
    op = registry.get(name)
    attrs = {n: a.default for n, a in op.attrs.items() if not a.required}
    x, y = POINTS, np.roll(POINTS, 5)
    (found,) = true_outputs(op, attrs, [x, y])
    for a, b, z in zip(x, y, found, strict=True):
        truth = evaluate(name, [float(a), float(b)], attrs)
        if truth is not None and np.isfinite(z):
            assert z == pytest.approx(as_double(truth), rel=CLOSE)


def test_every_function_that_is_not_correctly_rounded_is_in_the_table() -> None:
    ours = [op for op in registry.all_ops() if ">" not in op.name]  # other tests of the process may define Vendor>Op
    limited = [op for op in ours if isinstance(op.accuracy, Pointwise) and len(op.inputs) <= 2]
    missing = [op.name for op in limited if not op.accuracy.correctly_rounded and op.name not in FUNCTIONS]
    assert not missing, "truth/functions.py must have them: their limit in float64 is more than 0.5 ULP"


def test_functions_get_attrs_that_are_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(functions.FUNCTIONS, "Acme>Scale", lambda x, factor, power: factor * x**power)
    truth = evaluate("Acme>Scale", [3.0], {"factor": 0.1, "power": 2, "T": "float32"})
    assert truth == 9 * float(np.float32(0.1))


def test_narrow_floats_are_widened_and_integers_kept() -> None:
    op = registry.get("AddV2")
    (wide,) = true_outputs(op, {}, [np.float16([1]), np.float16([2.0**-20])])
    assert wide.dtype == np.float64
    assert wide[0] == 1 + 2.0**-20
    (whole,) = true_outputs(op, {}, [np.int8([127]), np.int8([1])])
    assert whole.tolist() == [-128]
