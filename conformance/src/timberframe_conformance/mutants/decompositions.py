"""Bugs in decompositions of matrices, whose results are judged by what must hold of them, and in array gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_conformance.mutants.base import Call, mutant

FLOATS = ("float32", "float64")


@mutant("qr-sign", "Qr", "the first column of q has the other sign, and r has not", FLOATS)
def _(c: Call) -> Any:
    q, r = (x.copy() for x in c.true)
    q[..., :1] *= -1
    return [q, r]


@mutant("cholesky-upper", "Cholesky", "the factor is the upper one", FLOATS)
def _(c: Call) -> Any:
    return np.swapaxes(c.true[0], -1, -2)


@mutant("eigenvalues-fall", "SelfAdjointEigV2", "eigenvalues come in falling order", FLOATS)
def _(c: Call) -> Any:
    values, vectors = c.true
    return [values[..., ::-1], vectors[..., ::-1] if c.attrs["compute_v"] else vectors]


@mutant("svd-least", "Svd", "the least singular value is missing", FLOATS)
def _(c: Call) -> Any:
    s, *vectors = (x.copy() for x in c.true)
    s[..., -1:] = 0
    return [s, *vectors]


@mutant("inverse-adjoint", "MatrixInverse", "adjoint is ignored", FLOATS)
def _(c: Call) -> Any:
    return c.reference(*c.inputs, adjoint=False)


@mutant("triangle-whole", "MatrixTriangularSolve", "both triangles are read", FLOATS)
def _(c: Call) -> Any:
    matrix, rhs = (x.astype(np.float64) for x in c.inputs)
    matrix = np.swapaxes(matrix, -1, -2) if c.attrs["adjoint"] else matrix
    if 0 in matrix.shape or 0 in rhs.shape:
        return c.true
    return np.linalg.solve(matrix, rhs).astype(c.true[0].dtype)


@mutant("mirror-grad-edge", "MirrorPadGrad", "what lies before the first element is left out", FLOATS)
def _(c: Call) -> Any:
    x, paddings = c.inputs
    x = x.copy()
    if x.ndim:
        x[: int(paddings[0, 0])] = 0
    return c.reference(x, paddings)
