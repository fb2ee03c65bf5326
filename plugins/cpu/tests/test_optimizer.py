"""Kernels that update variables: every rule in every variant, by rows, and with threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_cpu.native import available_isas, find
from timberframe_cpu.testing import run_op
from timberframe_ops.training.updates import UPDATE_OPS

UPDATES = [op for op in registry.all_ops() if op.updates and "Apply" in op.name and op.name.startswith("Resource")]


def arguments(op: OpDef, number: int, dtype: str) -> tuple[list[np.ndarray], dict[str, Any]]:
    """Inputs and attrs of one of the op's own samples."""
    sample = list(op.samples())[number]
    rng = np.random.default_rng(number)
    inputs = []
    for arg, spec in zip(op.inputs, sample.inputs, strict=True):
        x = rng.uniform(spec.low or 0, spec.high or 1, spec.shape) if spec.values is None else spec.values
        inputs.append(np.asarray(x).astype({"indices": "int32", "global_step": "int64"}.get(arg.name, dtype)))
    return inputs, {name: op.attrs[name].default for name in op.attrs if not op.attrs[name].required} | dict(
        sample.attrs
    )


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("op", UPDATES, ids=lambda op: op.name)
def test_an_update_follows_its_rule(op: OpDef, isa: str) -> None:
    inputs, attrs = arguments(op, 0, "float64")
    assert op.reference is not None
    for got, want in zip(run_op(op.name, attrs, inputs, isa), op.reference(attrs, *inputs), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-13)  # a rule has some ten roundings


@pytest.mark.parametrize("op", UPDATE_OPS)
def test_the_build_has_a_rule_for_all_dtypes_of_its_op(op: str) -> None:
    update = UPDATE_OPS[op]
    assert all(find(f"{update.rule}_{dtype}", "scalar") for dtype in update.dtypes)


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("size", [0, 1, 17, 255, 256, 257, 1000])
def test_half_precision_is_computed_in_single_precision(size: int, isa: str) -> None:
    rng = np.random.default_rng(size)
    states = [rng.uniform(0.5, 1, size).astype(np.float16) for _ in range(2)]
    gradient = rng.uniform(-1, 1, size).astype(np.float16)
    rate, momentum = np.float16(0.1), np.float16(0.9)
    found = run_op("ResourceApplyMomentum", {}, [*states, rate, gradient, momentum], isa)
    wide = [x.astype(np.float32) for x in (*states, rate, gradient, momentum)]
    accumulator = wide[1] * wide[4] + wide[3]
    np.testing.assert_array_equal(found[1], accumulator.astype(np.float16))
    np.testing.assert_array_equal(found[0], (wide[0] - accumulator * wide[2]).astype(np.float16))


def test_the_number_of_threads_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    table, accumulator = rng.uniform(0.5, 1, (40, 3000)), rng.uniform(0.5, 1, (40, 3000))
    rows, gradient = np.array([7, 0, 7, 39], np.int32), rng.normal(size=(4, 3000))
    inputs = [table, accumulator, np.float64(0.1), gradient, rows]
    one, three = (run_op("ResourceSparseApplyAdagrad", {}, inputs, threads=n) for n in (1, 3))
    for a, b in zip(one, three, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("kind", "wanted"), [("Add", [1, 8, 3]), ("Sub", [1, -4, 3]), ("Mul", [1, 16, 3]), ("Div", [1, 0, 3])]
)
def test_a_row_named_twice_changes_twice(kind: str, wanted: list[int]) -> None:
    x, rows, updates = np.array([1, 2, 3], np.int32), np.array([1, 1], np.int32), np.array([4, 2], np.int32)
    np.testing.assert_array_equal(run_op(f"ResourceScatter{kind}", {}, [x, rows, updates])[0], wanted)


def test_quotients_of_integers_are_truncated_and_wrap() -> None:
    x, rows = np.array([-7, -128], np.int8), np.array([0, 1], np.int32)
    found = run_op("ResourceScatterDiv", {}, [x, rows, np.array([2, -1], np.int8)])[0]
    np.testing.assert_array_equal(found, np.array([-3, -128], np.int8))


def test_a_scalar_changes_each_named_row() -> None:
    x = np.zeros((3, 2), np.float32)
    found = run_op("ResourceScatterUpdate", {}, [x, np.array([2, 0], np.int32), np.float32(5)])[0]
    np.testing.assert_array_equal(found, [[5, 5], [0, 0], [5, 5]])


def test_a_zero_divisor_is_reported() -> None:
    x = np.ones(3, np.int32)
    with pytest.raises(InvalidArgumentError, match="update 1 is 0"):
        run_op("ResourceScatterDiv", {}, [x, np.array([0, 1], np.int32), np.array([1, 0], np.int32)])
