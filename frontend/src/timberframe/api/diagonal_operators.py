"""Linear operators that are a diagonal, or a multiple of the identity."""

from __future__ import annotations

from typing import Any

from timberframe.api.arrays import concat, expand_dims, shape
from timberframe.api.constants import fill, ones
from timberframe.api.diagonal import matrix_diag, matrix_diag_part, matrix_set_diag
from timberframe.api.framework import convert_to_tensor, get_static_value
from timberframe.api.linear_operators import OfTensor
from timberframe.api.reduction import reduce_prod, reduce_sum
from timberframe.api.unary import abs as magnitude
from timberframe.api.unary import conj, log
from timberframe_core.dtypes import DType, as_dtype, float32, int32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.tensor_shape import TensorShape

NAMESPACES = {"linalg": ("LinearOperatorDiag", "LinearOperatorIdentity", "LinearOperatorScaledIdentity")}


def _checked_square(name: str, is_square: bool | None) -> bool:
    """Returns True; raises InvalidArgumentError, which is a ValueError, where the caller says otherwise."""
    if is_square is False:
        raise InvalidArgumentError(f"{name}: is_square is False; matrices of a diagonal are square, True is required")
    return True


def _checked_self_adjoint(name: str, is_self_adjoint: bool | None, dtype: DType) -> bool | None:
    """Returns what is known of self-adjointness: real diagonals have it, and to say otherwise is an error."""
    if dtype.is_complex:
        return is_self_adjoint
    if is_self_adjoint is False:
        raise InvalidArgumentError(
            f"{name}: is_self_adjoint is False; matrices of a real diagonal are self-adjoint, True is required"
        )
    return True


class LinearOperatorDiag(OfTensor):
    """The operator of square matrices that are zero off the diagonal diag [*batch, n]."""

    def __init__(
        self,
        diag: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorDiag",
    ) -> None:
        self.diag = convert_to_tensor(diag)
        super().__init__(
            self.diag, name, is_non_singular=is_non_singular, is_square=_checked_square(name, is_square),
            is_self_adjoint=_checked_self_adjoint(name, is_self_adjoint, self.diag.dtype),
            is_positive_definite=is_positive_definite,
        )  # fmt: skip

    def _shape(self) -> Any:
        return TensorShape(self.diag.shape).concatenate(self.diag.shape[-1:])

    def _to_dense(self) -> Any:
        return matrix_diag(self.diag)

    def _factors(self, adjoint: bool) -> Any:
        """Returns the diagonal as columns."""
        return expand_dims(conj(self.diag) if adjoint and self.dtype.is_complex else self.diag, -1)

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        return self._factors(adjoint) * x

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        return rhs / self._factors(adjoint)

    def _determinant(self) -> Any:
        return reduce_prod(self.diag, -1)

    def _log_abs_determinant(self) -> Any:
        return reduce_sum(log(magnitude(self.diag)), -1)

    def _diag_part(self) -> Any:
        return self.diag

    def add_to_tensor(self, x: Any, name: str = "add_to_tensor") -> Any:
        """Returns the sum with matrices x."""
        with self._scope(name):
            given = convert_to_tensor(x, self.dtype)
            diagonal: Any = matrix_diag_part(given)
            return matrix_set_diag(given, diagonal + self.diag)


class LinearOperatorScaledIdentity(OfTensor):
    """The operator of identity matrices times multiplier [*batch].

    assert_proper_shapes: there is nothing to check, since wrong shapes are errors of the products themselves.
    """

    def __init__(
        self,
        num_rows: Any,
        multiplier: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorScaledIdentity",
    ) -> None:
        self.multiplier = convert_to_tensor(multiplier)
        self._rows = num_rows
        super().__init__(
            self.multiplier, name, is_non_singular=is_non_singular, is_square=_checked_square(name, is_square),
            is_self_adjoint=_checked_self_adjoint(name, is_self_adjoint, self.multiplier.dtype),
            is_positive_definite=is_positive_definite,
        )  # fmt: skip

    def _shape(self) -> Any:
        rows = get_static_value(self._rows) if hasattr(self._rows, "dtype") else self._rows
        size = None if rows is None else int(rows)
        return TensorShape(self.multiplier.shape).concatenate([size, size])

    def _shape_tensor(self) -> Any:
        rows = convert_to_tensor([self._rows, self._rows], int32)
        return concat([shape(self.multiplier), rows], 0)

    def _diag_part(self) -> Any:
        multiplier: Any = expand_dims(self.multiplier, -1)
        return multiplier * ones([self._rows], self.dtype)

    def _to_dense(self) -> Any:
        return matrix_diag(self._diag_part())

    def _factor(self, adjoint: bool) -> Any:
        return expand_dims(expand_dims(conj(self.multiplier) if adjoint else self.multiplier, -1), -1)

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        return self._factor(adjoint) * x

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        return rhs / self._factor(adjoint)

    def _determinant(self) -> Any:
        return reduce_prod(self._diag_part(), -1)

    def _log_abs_determinant(self) -> Any:
        return reduce_sum(log(magnitude(self._diag_part())), -1)


class LinearOperatorIdentity(LinearOperatorScaledIdentity):
    """The operator of identity matrices, which gives back what it gets."""

    def __init__(
        self,
        num_rows: Any,
        batch_shape: Any = None,
        dtype: Any = None,
        is_non_singular: bool | None = True,
        is_self_adjoint: bool | None = True,
        is_positive_definite: bool | None = True,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorIdentity",
    ) -> None:
        one = fill([] if batch_shape is None else batch_shape, convert_to_tensor(1, as_dtype(dtype or float32)))
        super().__init__(
            num_rows, one, is_non_singular, is_self_adjoint, is_positive_definite, is_square, assert_proper_shapes, name
        )
