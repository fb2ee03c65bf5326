"""Gradients that arrive as IndexedSlices: every differentiable op passes back what it does for the dense tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import timberframe
from timberframe_conformance.case import Types
from timberframe_conformance.cases.smooth import smooth_samples
from timberframe_conformance.cases.trials import Trial
from timberframe_conformance.cases.types import combinations
from timberframe_conformance.suites.forward import is_callable
from timberframe_core.dtypes import resource, variant
from timberframe_core.errors import NotFoundError, UnimplementedError
from timberframe_core.gradients.reverse import is_differentiable
from timberframe_core.graph.apply import apply_op
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import MissingGradient, NotDifferentiable, OpDef

tf: Any = timberframe
SAMPLES = 12
"""Number of samples of an op that are searched for one with rows."""


def is_candidate(op: OpDef) -> bool:
    handles = any(a.dtype in (resource, variant) for a in (*op.inputs, *op.outputs))
    differentiable = op.gradient is not None and not isinstance(op.gradient, MissingGradient | NotDifferentiable)
    return differentiable and is_callable(op) and not op.stateful and not handles and ">" not in op.name


def floating_types(op: OpDef) -> Types:
    found = [t for group in combinations(op).values() for t in group]
    return max(found, key=lambda types: sum(d == "float64" for _, d in types) + sum(d == "float32" for _, d in types))


def add_node(op: OpDef, trial: Trial) -> tuple[list[Any], list[Any]]:
    """Adds a node; its floating inputs and outputs."""
    arrays = trial.arrays(op.name)
    given = [[tf.constant(x) for x in a] if isinstance(a, list) else tf.constant(a) for a in arrays]
    made = apply_op(op.name, given, trial.attrs(arrays))
    flat = [x for a in given for x in (a if isinstance(a, list) else [a])]
    results = made if isinstance(made, list | tuple) else [made]
    return [x for x in flat if is_differentiable(x)], [y for y in results if is_differentiable(y)]


def rows_of(y: Any, rng: np.random.Generator) -> tuple[Any, np.ndarray] | None:
    """Returns a gradient of y as slices, two of them of the same row, and the same as a dense tensor."""
    shape = y.static_shape
    if not shape or None in shape or 0 in shape:
        return None
    indices = np.array([shape[0] - 1, 0, 0], np.int64)
    values = rng.uniform(0.5, 1, (3, *shape[1:])).astype(y.dtype.numpy)
    whole = np.zeros(shape, y.dtype.numpy)
    np.add.at(whole, indices, values)
    return tf.IndexedSlices(tf.constant(values), tf.constant(indices), tf.constant(np.array(shape))), whole


def run_both(op: OpDef, trial: Trial) -> Sequence[Any] | None:
    """Returns the gradients of the inputs for slices, and for the whole tensors; None where no output has rows."""
    with tf.Graph().as_default() as graph, np.errstate(all="ignore"):
        xs, ys = add_node(op, trial)
        seeds = [rows_of(y, np.random.default_rng(i)) for i, y in enumerate(ys)]
        if not xs or not ys or None in seeds:
            return None
        sparse, dense = (tf.gradients(ys, xs, grad_ys=[s[i] for s in seeds if s]) for i in range(2))
        kept = [i for i, g in enumerate(dense) if g is not None]
        assert kept == [i for i, g in enumerate(sparse) if g is not None]
        with tf.Session(graph=graph) as session:
            return session.run([[tf.convert_to_tensor(g[i]) for i in kept] for g in (sparse, dense)])


@pytest.mark.parametrize("op", [op for op in registry.all_ops() if is_candidate(op)], ids=lambda op: op.name)
def test_slices_and_whole_tensor_give_the_same_gradients(op: OpDef) -> None:
    types = floating_types(op)
    for number, sample in smooth_samples(op, types, SAMPLES):
        try:
            found = run_both(op, Trial(op, types, sample, number))
        except (UnimplementedError, NotFoundError):  # the gradient is refused for these attrs
            continue
        if found is not None:
            for got, want in zip(*found, strict=True):
                np.testing.assert_allclose(got, want, 1e-4, 1e-4)
            return
    pytest.skip("no sample has rows")
