"""`tf.linalg.*` functions of whole matrices that are made of decompositions and products."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from timberframe.api.arrays import matrix_transpose
from timberframe.api.calls import call_op
from timberframe.api.decompositions import solve, svd
from timberframe.api.framework import name_scope
from timberframe.api.linalg import matmul
from timberframe.api.reduction import reduce_max, reduce_sum
from timberframe.api.selection import cast
from timberframe.api.unary import abs
from timberframe.api.while_loops import while_loop
from timberframe_core.dtypes import DType, int32
from timberframe_core.errors import InvalidTypeError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor

NAMESPACES = {"linalg": ("expm", "matrix_rank", "pinv", "transpose")}

transpose = matrix_transpose

# The numerators of the diagonal Pade approximants of exp, and up to which norm of a matrix they are as precise as the
# dtype (N. J. Higham: The scaling and squaring method for the matrix exponential revisited, 2005, table 2.3).
_PADE = {
    4: ((17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0), 3.925724783138660),
    8: (
        (
            64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
            10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
        ),
        5.371920351148152,
    ),
}  # fmt: skip


def expm(input: Any, name: str | None = None) -> Tensor:
    """Returns the exponentials of square matrices [..., n, n], the sums of their powers over factorials.

    By scaling, a Pade approximant, and squaring, as in TensorFlow.
    """
    with name_scope(name, "matrix_exponential", [input]):
        x = convert_to_tensor(input, name="input")
        real = _real(x, "expm")
        coefficients, most = _PADE[real.size]
        norm = reduce_max(reduce_sum(abs(x), [-2]), [-1])
        size = call_op("Maximum", call_op("Mul", norm, 1 / most), 1.0)
        squarings = call_op("Ceil", call_op("Mul", call_op("Log", size), 1 / math.log(2)))
        factor = call_op("Pow", convert_to_tensor(2, real), call_op("Neg", squarings))
        result = _pade(x * cast(_over_matrices(factor), x.dtype), coefficients)
        counts = cast(_over_matrices(squarings), int32)

        def square(i: Any, y: Tensor) -> tuple[Any, Tensor]:
            return i + 1, apply_op("SelectV2", [apply_op("Less", [i, counts]), matmul(y, y), y])

        most_squarings = cast(reduce_max(squarings), int32)
        made: Tensor = while_loop(lambda i, y: i < most_squarings, square, [convert_to_tensor(0), result])[1]
        made.set_shape(x.shape)
        return made


def _real(x: Tensor, function: str) -> DType:
    """Returns the real dtype of a matrix of 32 or 64 bits."""
    real = x.dtype.real_dtype
    if not real.is_floating or real.size not in _PADE:
        raise InvalidTypeError(
            f"tf.linalg.{function}: dtype is {x.dtype.name}; float32, float64, complex64 or complex128 is required"
        )
    return real


def _over_matrices(x: Tensor) -> Tensor:
    """Returns a value for each matrix as one to compute with the matrices."""
    made: Tensor = apply_op("ExpandDims", [apply_op("ExpandDims", [x, -1]), -1])
    return made


def _pade(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    """(V + U) / (V - U) of the terms of even and odd powers of x."""
    squared = matmul(x, x)
    one = apply_op("MatrixDiag", [apply_op("OnesLike", [apply_op("MatrixDiagPart", [x])])])
    powers = [one]
    while 2 * len(powers) < len(coefficients):
        powers.append(matmul(powers[-1], squared) if len(powers) > 1 else squared)

    def of(terms: tuple[float, ...]) -> Tensor:
        parts = [p * convert_to_tensor(c, x.dtype) for c, p in zip(terms, powers, strict=True)]
        made: Tensor = apply_op("AddN", [parts])
        return made

    even: Any = of(coefficients[::2])
    odd: Any = matmul(x, of(coefficients[1::2]))
    return solve(even - odd, even + odd)


def _tolerance(values: Tensor, x: Tensor, factor: float) -> Any:
    """factor * max(rows, columns) * epsilon, by which singular values count as 0, of the largest."""
    real = values.dtype
    sizes = reduce_max(apply_op("StridedSlice", [apply_op("Shape", [x]), [-2], [0], [1]], {"end_mask": 1}))
    least = convert_to_tensor(factor * np.finfo(real.as_numpy_dtype).eps, real)
    return apply_op("Mul", [cast(sizes, real), least])


def matrix_rank(a: Any, tol: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """Returns how many singular values of each matrix [..., m, n] are above `tol`, as int32.

    tol: by default max(m, n) times the dtype's epsilon and the largest value. validate_args changes nothing.
    """
    with name_scope(name, "matrix_rank", [a]):
        x = convert_to_tensor(a, name="a")
        values = svd(x, compute_uv=False)
        largest = reduce_max(values, [-1], keepdims=True)
        least = _tolerance(values, x, 1.0) * largest if tol is None else convert_to_tensor(tol, values.dtype)
        return reduce_sum(cast(apply_op("Greater", [values, least]), int32), [-1])


def pinv(a: Any, rcond: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """Returns the Moore-Penrose inverses [..., n, m] of matrices [..., m, n].

    rcond: singular values of at most this part of the largest count as 0; by default 10 max(m, n) times the dtype's
    epsilon; a value for each matrix or for all. validate_args changes nothing.
    """
    with name_scope(name, "pinv", [a]):
        x = convert_to_tensor(a, name="a")
        _real(x, "pinv")
        values, u, v = svd(x)
        part = _tolerance(values, x, 10.0) if rcond is None else convert_to_tensor(rcond, values.dtype)
        least = apply_op("Mul", [apply_op("ExpandDims", [part, -1]), reduce_max(values, [-1], keepdims=True)])
        infinite = convert_to_tensor(np.inf, values.dtype)
        divisors = apply_op("SelectV2", [apply_op("Greater", [values, least]), values, infinite])
        return matmul(v / cast(apply_op("ExpandDims", [divisors, -2]), x.dtype), u, adjoint_b=True)
