"""What the ops of matrix decompositions share: shapes, samples, and how far a decomposition may be off.

The limits are the test ratios of LAPACK: a residual over (matrix norm x size x unit roundoff) stays below 30 for code
in order (LAPACK Users' Guide, 3rd ed., and the thresholds of its own test programs, Working Note 41).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from timberframe_core.ops.definition.opdef import InferenceContext
from timberframe_core.ops.definition.samples import Arg, Sample
from timberframe_core.shapes import Shape, StaticShape, format_shape, merge_dim

TEST_RATIO = 30
SOURCE = "test ratios of LAPACK, see timberframe_ops.linalg.matrices"
TYPES = "T: {double, float, half, complex64, complex128}"
REALS, COMPLEXES = ("float16", "float32", "float64"), ("complex64", "complex128")
SQUARES: tuple[StaticShape, ...] = (
    (1, 1),
    (0, 0),
    (2, 2),
    (5, 5),
    (3, 4, 4),
    (2, 3, 2, 2),
    (0, 3, 3),
    (2, 0, 0),
    (35, 35),
)
"""Shapes of (batches of) square matrices to try: empty, one, small, a batch, and one beyond LAPACK's block size."""


def matrix_shape(c: InferenceContext, i: int = 0) -> Shape:
    """Input i's shape, which must have rank 2 or more."""
    shape = c.shapes[i]
    if shape is not None and len(shape) < 2:
        raise c.error(f"input {i} has shape {format_shape(shape)}; it must have rank 2 or more")
    return shape


def square_shape(c: InferenceContext, i: int = 0) -> Shape:
    """Input i's shape, which must be one of square matrices."""
    shape = matrix_shape(c, i)
    if shape is None:
        return None
    try:
        side = merge_dim(shape[-1], shape[-2])
    except ValueError:
        raise c.error(f"input {i} has shape {format_shape(shape)}; its matrices must be square") from None
    return (*shape[:-2], side, side)


def adjoint(x: Any) -> Any:
    """Returns the conjugate transposes of the matrices."""
    return np.conj(np.swapaxes(x, -1, -2))


def norm(x: Any) -> Any:
    """Returns the Frobenius norm of each matrix."""
    return np.sqrt((np.abs(x) ** 2).sum(axis=(-2, -1)))


def residual(what: str, difference: Any, scale: Any, u: float) -> tuple[str, Any, Any]:
    """Returns a law of `Residual`: the norm of `difference` against what rounding explains for
    matrices of the norm `scale`.
    """
    return what, norm(difference), TEST_RATIO * max(1, *difference.shape[-2:]) * u * scale


def orthonormal(what: str, x: Any, u: float) -> tuple[str, Any, Any]:
    """Returns the law that the columns of x are orthonormal."""
    rows, columns = x.shape[-2:]
    return what, norm(adjoint(x) @ x - np.eye(columns)), np.float64(TEST_RATIO * max(rows, 1) * u)


def random_matrices(shape: StaticShape, complex_: bool = False, seed: int = 0) -> np.ndarray:
    """Returns matrices with elements in [-1, 1]."""
    rng = np.random.default_rng([seed, *shape])
    real: np.ndarray = rng.uniform(-1, 1, shape)
    return real + 1j * rng.uniform(-1, 1, shape) if complex_ else real


def well_conditioned(shape: StaticShape, complex_: bool = False, seed: int = 0) -> np.ndarray:
    """Square matrices that are far from singular: twice the identity and a little more, their rows then exchanged."""
    matrices = random_matrices(shape, complex_, seed) / max(shape[-1], 1) + 2 * np.eye(shape[-1])
    return np.roll(matrices, 1, axis=-2)


def positive_definite(shape: StaticShape, complex_: bool = False) -> np.ndarray:
    """Self-adjoint matrices with eigenvalues above 1."""
    x = random_matrices(shape, complex_)
    product: np.ndarray = x @ adjoint(x) + np.eye(shape[-1])
    return product


def by_type(make: Any, shapes: Any, **attrs: Any) -> Iterator[Sample]:
    """Yields a sample for each shape with real values ``make(shape, False)``, and one with complex ones."""
    for shape in shapes:
        for complex_, types in ((False, REALS), (True, COMPLEXES)):
            yield Sample([Arg(values=make(shape, complex_))], attrs, {"T": types})
