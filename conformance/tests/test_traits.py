"""Traits of our own ops, held against their references on the values that conformance tries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from timberframe_conformance.cases.trials import Trial, fits, samples_of
from timberframe_conformance.cases.types import combinations
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef

REDUCERS = {
    "sum": np.sum, "mean": np.mean, "product": np.prod, "max": np.max, "min": np.min, "all": np.all, "any": np.any,
}  # fmt: skip


def _trials(op: OpDef) -> list[Trial]:
    """Returns some samples in the first dtype that all of them take."""
    groups = combinations(op)
    key = next((k for k in ("float32", "int32", "bool", "complex64") if k in groups), next(iter(groups)))
    found = [[Trial(op, t, s, i) for i, s in enumerate(samples_of(op)) if fits(op, s, t)] for t in groups[key]]
    return next(trials for trials in found if trials)[:8]


def _reference(op: OpDef, trial: Trial, arrays: list[Any]) -> np.ndarray:
    assert op.reference is not None
    with np.errstate(all="ignore"):
        return np.asarray(op.reference(trial.attrs(arrays), *arrays))


@pytest.mark.parametrize("op", [op.name for op in registry.all_ops() if op.elementwise and op.name != "Select"])
def test_an_element_depends_on_the_elements_at_its_index_alone(op: str) -> None:
    definition, tried = registry.get(op), 0
    for trial in _trials(definition):
        arrays: list[Any] = trial.arrays("traits")
        whole = _reference(definition, trial, arrays)
        if not 0 < whole.size < 1000:
            continue
        wide = [np.broadcast_to(x, whole.shape).reshape(-1) for x in arrays]
        for i in (0, whole.size // 2, whole.size - 1):
            alone = _reference(definition, trial, [x[i : i + 1] for x in wide])
            np.testing.assert_array_equal(alone, whole.reshape(-1)[i : i + 1])
        tried += 1
    assert tried


@pytest.mark.parametrize("op", [op.name for op in registry.all_ops() if op.reduction])
def test_a_reduction_combines_elements_as_it_says(op: str) -> None:
    definition = registry.get(op)
    x: Any = np.array([[1, 3, 2], [4, 0, 2]], bool if op in ("All", "Any") else np.float32)
    assert definition.reduction is not None
    assert definition.reference is not None
    attrs = {"keep_dims": False, "T": None}
    found = definition.reference(attrs, x, np.array([1], np.int32))
    np.testing.assert_allclose(found, REDUCERS[definition.reduction](x, axis=1), rtol=1e-6)
