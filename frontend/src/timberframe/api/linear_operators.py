"""`tf.linalg.LinearOperator*`: matrices that know their structure, so that products and solutions cost less."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from timberframe.api.arithmetic import broadcast_dynamic_shape
from timberframe.api.arrays import broadcast_static_shape, concat, expand_dims, shape, squeeze
from timberframe.api.decompositions import adjoint as adjoint_of
from timberframe.api.decompositions import (
    cholesky,
    cholesky_solve,
    matrix_determinant,
    matrix_solve,
    matrix_triangular_solve,
)
from timberframe.api.diagonal import matrix_band_part, matrix_diag_part
from timberframe.api.framework import convert_to_tensor, name_scope
from timberframe.api.linalg import matmul
from timberframe.api.reduction import reduce_prod, reduce_sum
from timberframe.api.unary import abs as magnitude
from timberframe.api.unary import log
from timberframe_core.dtypes import as_dtype, int32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.tensor_shape import TensorShape

NAMESPACES = {
    "linalg": (
        "LinearOperator", "LinearOperatorComposition", "LinearOperatorFullMatrix", "LinearOperatorLowerTriangular",
    ),
}  # fmt: skip


class LinearOperator:
    """Base of linear operators: a batch of matrices [*batch, rows, columns]. A kind defines `_to_dense` and more.

    is_non_singular, is_self_adjoint, is_positive_definite, is_square: what the caller knows, None for unknown; they are
    taken as true and not checked.
    """

    def __init__(
        self,
        dtype: Any,
        graph_parents: Iterable[Any] | None = None,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        self.dtype = as_dtype(dtype)
        self.graph_parents = list(graph_parents or [])
        self.is_non_singular = True if is_positive_definite else is_non_singular
        self.is_self_adjoint, self.is_positive_definite = is_self_adjoint, is_positive_definite
        self._is_square = is_square
        self.name = name or type(self).__name__

    @property
    def is_square(self) -> bool | None:
        """Whether there are as many rows as columns; None where that is not known."""
        rows, columns = self.range_dimension.value, self.domain_dimension.value
        return self._is_square if rows is None or columns is None else bool(rows == columns)

    # Shapes

    @property
    def shape(self) -> TensorShape:
        """[*batch, rows, columns], as far as it is known."""
        return TensorShape(self._shape())

    @property
    def batch_shape(self) -> TensorShape:
        """The shape without rows and columns."""
        batch: TensorShape = self.shape[:-2]
        return batch

    @property
    def tensor_rank(self) -> int | None:
        """The number of sizes in the shape."""
        rank: int | None = self.shape.ndims
        return rank

    @property
    def range_dimension(self) -> Any:
        """The number of rows, a Dimension."""
        return self.shape[-2]

    @property
    def domain_dimension(self) -> Any:
        """The number of columns, a Dimension."""
        return self.shape[-1]

    def shape_tensor(self, name: str = "shape_tensor") -> Any:
        """Returns the shape as a tensor, int32."""
        with self._scope(name):
            known = self.shape
            return convert_to_tensor(known.as_list(), int32) if known.is_fully_defined() else self._shape_tensor()

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Any:
        """Returns the shape without rows and columns, as a tensor."""
        return self.shape_tensor(name)[:-2]

    def range_dimension_tensor(self, name: str = "range_dimension_tensor") -> Any:
        """Returns the number of rows, as a tensor."""
        return self.shape_tensor(name)[-2]

    def domain_dimension_tensor(self, name: str = "domain_dimension_tensor") -> Any:
        """Returns the number of columns, as a tensor."""
        return self.shape_tensor(name)[-1]

    def tensor_rank_tensor(self, name: str = "tensor_rank_tensor") -> Any:
        """Returns the number of sizes in the shape, as a tensor."""
        return shape(self.shape_tensor(name))[0]

    # Products and solutions

    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul") -> Any:
        """Returns the product with matrices x [*batch, columns, n], or of adjoints; of an operator a composition."""
        if isinstance(x, LinearOperator):
            if adjoint or adjoint_arg:
                raise InvalidArgumentError(f"{self.name}: matmul of two operators takes none of them as its adjoint")
            return LinearOperatorComposition([self, x])
        with self._scope(name):
            given = convert_to_tensor(x, self.dtype)
            return self._matmul(adjoint_of(given) if adjoint_arg else given, adjoint)

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Any:
        """Returns the product with vectors x [*batch, columns]."""
        with self._scope(name):
            return squeeze(self.matmul(expand_dims(convert_to_tensor(x, self.dtype), -1), adjoint), [-1])

    def solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve") -> Any:
        """Returns the x whose product is rhs [*batch, rows, n]."""
        self._require_square("solve")
        with self._scope(name):
            given = convert_to_tensor(rhs, self.dtype)
            return self._solve(adjoint_of(given) if adjoint_arg else given, adjoint)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solvevec") -> Any:
        """Returns the vectors whose product is rhs [*batch, rows]."""
        with self._scope(name):
            return squeeze(self.solve(expand_dims(convert_to_tensor(rhs, self.dtype), -1), adjoint), [-1])

    # Statistics

    def to_dense(self, name: str = "to_dense") -> Any:
        """Returns the matrices as a tensor."""
        with self._scope(name):
            return self._to_dense()

    def determinant(self, name: str = "det") -> Any:
        """Returns the determinants [*batch]."""
        self._require_square("determinant")
        with self._scope(name):
            return self._determinant()

    def log_abs_determinant(self, name: str = "log_abs_det") -> Any:
        """Returns the log of the determinants' magnitudes [*batch]."""
        self._require_square("log_abs_determinant")
        with self._scope(name):
            return self._log_abs_determinant()

    def diag_part(self, name: str = "diag_part") -> Any:
        """Returns the diagonals [*batch, the lesser of rows and columns]."""
        with self._scope(name):
            return self._diag_part()

    def trace(self, name: str = "trace") -> Any:
        """Returns the sums of the diagonals [*batch]."""
        with self._scope(name):
            return reduce_sum(self._diag_part(), -1)

    def add_to_tensor(self, x: Any, name: str = "add_to_tensor") -> Any:
        """Returns the sum with matrices x."""
        with self._scope(name):
            return self._to_dense() + convert_to_tensor(x, self.dtype)

    # What kinds define

    @abstractmethod
    def _shape(self) -> Any:
        """Returns the static shape."""
        raise NotImplementedError(f"{type(self).__name__}: shape is not implemented")

    def _shape_tensor(self) -> Any:
        return shape(self._to_dense())

    @abstractmethod
    def _to_dense(self) -> Any:
        """Returns the matrices as a tensor."""
        raise NotImplementedError(f"{type(self).__name__}: to_dense is not implemented")

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        return matmul(self._to_dense(), x, adjoint_a=adjoint)

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        return matrix_solve(self._to_dense(), rhs, adjoint=adjoint)

    def _determinant(self) -> Any:
        return matrix_determinant(self._to_dense())

    def _log_abs_determinant(self) -> Any:
        return log(magnitude(self._determinant()))

    def _diag_part(self) -> Any:
        return matrix_diag_part(self._to_dense())

    def _require_square(self, what: str) -> None:
        if self.is_square is False:
            raise InvalidArgumentError(f"{self.name}: {what} of matrices of shape {self.shape}; they must be square")

    def _scope(self, name: str) -> Any:
        return name_scope(f"{self.name}/{name}")


class OfTensor(LinearOperator):
    """Base of the operators that one tensor makes up. known: what `LinearOperator` takes as known of them."""

    def __init__(self, tensor: Any, name: str, **known: Any) -> None:
        super().__init__(tensor.dtype, [tensor], name=name, **known)


class LinearOperatorFullMatrix(OfTensor):
    """The operator of matrices without a structure."""

    def __init__(
        self,
        matrix: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorFullMatrix",
    ) -> None:
        self._matrix = convert_to_tensor(matrix)
        super().__init__(
            self._matrix, name, is_non_singular=is_non_singular, is_self_adjoint=is_self_adjoint,
            is_positive_definite=is_positive_definite, is_square=is_square,
        )  # fmt: skip

    def _shape(self) -> Any:
        return self._matrix.shape

    def _to_dense(self) -> Any:
        return self._matrix

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        if self.is_positive_definite and self.is_self_adjoint:
            return cholesky_solve(cholesky(self._matrix), rhs)
        return super()._solve(rhs, adjoint)


class LinearOperatorLowerTriangular(OfTensor):
    """The operator of lower triangular matrices; what tril has above the diagonal is not read."""

    def __init__(
        self,
        tril: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorLowerTriangular",
    ) -> None:
        self._tril = matrix_band_part(convert_to_tensor(tril), -1, 0)
        super().__init__(
            self._tril, name, is_non_singular=is_non_singular, is_self_adjoint=is_self_adjoint,
            is_positive_definite=is_positive_definite, is_square=True if is_square is None else is_square,
        )  # fmt: skip

    def _shape(self) -> Any:
        return self._tril.shape

    def _to_dense(self) -> Any:
        return self._tril

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        return matrix_triangular_solve(self._tril, rhs, lower=True, adjoint=adjoint)

    def _determinant(self) -> Any:
        return reduce_prod(self._diag_part(), -1)

    def _log_abs_determinant(self) -> Any:
        return reduce_sum(log(magnitude(self._diag_part())), -1)


class LinearOperatorComposition(LinearOperator):
    """The operator of a product of operators, the last of which is applied first."""

    def __init__(
        self,
        operators: Iterable[LinearOperator],
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        self.operators = list(operators)
        if not self.operators:
            raise InvalidArgumentError("LinearOperatorComposition: operators is empty; one at least is required")
        super().__init__(
            self.operators[0].dtype, [t for o in self.operators for t in o.graph_parents], is_non_singular,
            is_self_adjoint, is_positive_definite, is_square, name or "_o_".join(o.name for o in self.operators),
        )  # fmt: skip

    def _shape(self) -> Any:
        batch = self.operators[0].batch_shape
        for operator in self.operators[1:]:
            batch = broadcast_static_shape(batch, operator.batch_shape)
        ends = [self.operators[0].range_dimension, self.operators[-1].domain_dimension]
        return TensorShape(batch).concatenate(ends)

    def _shape_tensor(self) -> Any:
        batch = self.operators[0].batch_shape_tensor()
        for operator in self.operators[1:]:
            batch = broadcast_dynamic_shape(batch, operator.batch_shape_tensor())
        rows, columns = self.operators[0].shape_tensor()[-2:-1], self.operators[-1].shape_tensor()[-1:]
        return concat([batch, rows, columns], 0)

    def _to_dense(self) -> Any:
        product = self.operators[-1].to_dense()
        for operator in reversed(self.operators[:-1]):
            product = operator.matmul(product)
        return product

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        for operator in self.operators if adjoint else reversed(self.operators):
            x = operator.matmul(x, adjoint)
        return x

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        for operator in reversed(self.operators) if adjoint else self.operators:
            rhs = operator.solve(rhs, adjoint)
        return rhs

    def _determinant(self) -> Any:
        result = self.operators[0].determinant()
        for operator in self.operators[1:]:
            result = result * operator.determinant()
        return result

    def _log_abs_determinant(self) -> Any:
        result = self.operators[0].log_abs_determinant()
        for operator in self.operators[1:]:
            result = result + operator.log_abs_determinant()
        return result
