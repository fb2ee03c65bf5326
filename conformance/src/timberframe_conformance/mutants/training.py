"""Mutants of the ops that update variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_conformance.mutants.base import Call, mutant


@mutant("adam-epsilon", "ResourceApplyAdam", "epsilon is left out", ("float32",))
def _(c: Call) -> Any:
    inputs = list(c.inputs)
    inputs[8] = np.zeros_like(inputs[8])
    return c.reference(*inputs)


@mutant("momentum-nesterov", "ResourceApplyMomentum", "use_nesterov is ignored", ("float64",))
def _(c: Call) -> Any:
    return c.reference(*c.inputs, use_nesterov=False)


@mutant("ftrl-power", "ResourceApplyFtrl", "the power of the learning rate is always -0.5", ("float32",))
def _(c: Call) -> Any:
    inputs = list(c.inputs)
    inputs[7] = np.full_like(inputs[7], -0.5)
    return c.reference(*inputs)


@mutant("sparse-twice", "ResourceSparseApplyAdagrad", "a row that is named twice changes once", {"T": ("float32",)})
def _(c: Call) -> Any:
    var, accumulator, rate, gradient, indices = c.inputs
    unique, first = np.unique(indices, return_index=True)
    return c.reference(var, accumulator, rate, gradient[first], unique)


@mutant("scatter-last", "ResourceScatterAdd", "of two updates of one row the last wins", {"dtype": ("int8", "float64")})
def _(c: Call) -> Any:
    var, indices, updates = c.inputs
    result = var.copy()
    if updates.ndim:
        result[indices] = var[indices] + updates
    else:
        result[indices] += updates
    return [result]
