"""`tf.*` functions of matrices and vectors: products, einsum, norms, and diagonal tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe.api.diagonal import matrix_diag_part
from timberframe.api.framework import name_scope
from timberframe.api.reduction import reduce_max, reduce_sum, reduction_axes, renamed
from timberframe_core.arguments import instance
from timberframe_core.errors import InvalidArgumentError, UnimplementedError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor
from timberframe_ops.linalg.einsum import ELLIPSIS, split_equation

__all__ = ["cross", "diag", "diag_part", "einsum", "matmul", "norm", "trace"]

NAMESPACES = {
    "linalg": (
        "cross", "einsum", "matmul", "matvec", "norm", "normalize", "tensor_diag",
        "tensor_diag_part", "trace",
    ),
}  # fmt: skip


def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    output_type: Any = None,
    grad_a: bool = False,
    grad_b: bool = False,
    name: str | None = None,
) -> Tensor:
    """Returns the product of matrices, or of batches of them (last two dimensions; the others broadcast).

    transpose_* and adjoint_* (not both) take the transposed or adjoint operand. output_type: another dtype for products
    of small integers. a_is_sparse, b_is_sparse: accepted, and change nothing. grad_a, grad_b become attrs.
    """
    for letter, transposed, adjoint in (("a", transpose_a, adjoint_a), ("b", transpose_b, adjoint_b)):
        if transposed and adjoint:
            raise InvalidArgumentError(f"matmul: transpose_{letter} and adjoint_{letter} are both set; one may be")
    x = convert_to_tensor(a)
    y = convert_to_tensor(b, None if output_type is not None else x.dtype.base_dtype)
    ranks = [None if t.static_shape is None else len(t.static_shape) for t in (x, y)]
    result: Tensor
    if output_type is None and ranks == [2, 2]:
        x = _conjugate(x) if adjoint_a else x
        y = _conjugate(y) if adjoint_b else y
        attrs = {"transpose_a": transpose_a or adjoint_a, "transpose_b": transpose_b or adjoint_b}
        result = apply_op("MatMul", [x, y], {**attrs, "grad_a": grad_a, "grad_b": grad_b}, name)
        return result
    # The batched ops know the adjoint only: a transpose is the adjoint of the conjugate.
    x = _conjugate(x) if transpose_a else x
    y = _conjugate(y) if transpose_b else y
    attrs = {"adj_x": transpose_a or adjoint_a, "adj_y": transpose_b or adjoint_b, "grad_x": grad_a, "grad_y": grad_b}
    op = "BatchMatMulV2"
    if output_type is not None:
        op, attrs["Tout"] = "BatchMatMulV3", output_type
    result = apply_op(op, [x, y], attrs, name or "MatMul")
    return result


def _conjugate(x: Tensor) -> Tensor:
    return apply_op("Conj", [x]) if x.dtype.is_complex else x


def einsum(equation: str, *inputs: Any, **options: Any) -> Tensor:
    """Returns the sum of products that an equation such as ``ij,jk->ik`` describes.

    Without ``->`` the output has the labels that occur once, in alphabetical order. More than two inputs are multiplied
    from the left, two at a time. Options: `name`, and `optimize`, which changes nothing.
    """
    name = options.pop("name", None)
    options.pop("optimize", None)
    if options:
        raise InvalidArgumentError(f"einsum: unknown arguments {', '.join(options)}; name and optimize are known")
    given = inputs[0] if len(inputs) == 1 and isinstance(inputs[0], list | tuple) else inputs
    tensors = [convert_to_tensor(x) for x in given]
    text = instance(equation, str, "einsum: equation", "a str").replace(" ", "")
    if "->" not in text:
        labels = text.replace(ELLIPSIS, "").replace(",", "")
        once = sorted(x for x in set(labels) if labels.count(x) == 1)
        text += "->" + (ELLIPSIS if ELLIPSIS in text else "") + "".join(once)
    try:
        terms, output = split_equation(text)
    except ValueError as e:
        raise InvalidArgumentError(f"einsum: {e}") from None
    if len(terms) != len(tensors):
        raise InvalidArgumentError(
            f"einsum: equation {equation!r} has {len(terms)} terms for {len(tensors)} inputs; each input needs one"
        )
    while len(terms) > 2:
        needed = set("".join([*terms[2:], output]).replace(ELLIPSIS, ""))
        both = dict.fromkeys((terms[0] + terms[1]).replace(ELLIPSIS, ""))
        dots = ELLIPSIS if ELLIPSIS in terms[0] + terms[1] else ""
        joined = dots + "".join(x for x in both if x in needed)
        tensors[:2] = [apply_op("Einsum", [tensors[:2]], {"equation": f"{terms[0]},{terms[1]}->{joined}"})]
        terms[:2] = [joined]
    result: Tensor = apply_op("Einsum", [tensors], {"equation": f"{','.join(terms)}->{output}"}, name)
    return result


def tensor_diag(diagonal: Any, name: str | None = None) -> Tensor:
    """Returns the tensor of twice the rank with the input where both halves of the index are equal."""
    result: Tensor = apply_op("Diag", [diagonal], None, name)
    return result


def tensor_diag_part(input: Any, name: str | None = None) -> Tensor:
    """Returns the elements of a tensor where both halves of the index are equal."""
    result: Tensor = apply_op("DiagPart", [input], None, name)
    return result


diag = tensor_diag
diag_part = tensor_diag_part


def trace(x: Any, name: str | None = None) -> Tensor:
    """Returns the sums of the main diagonals of matrices."""
    return reduce_sum(matrix_diag_part(x), [-1], name=name)


def cross(a: Any, b: Any, name: str | None = None) -> Tensor:
    """Returns the cross products of vectors of three elements, along the last dimension."""
    result: Tensor = apply_op("Cross", [a, b], None, name)
    return result


def norm(
    tensor: Any,
    ord: Any = "euclidean",
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Returns the norm of vectors (axis an int, or None for all elements) or matrices (axis a pair).

    ord: euclidean (or fro for matrices), 1, inf, and for vectors any positive number p.
    """
    keep = bool(renamed("keepdims", keepdims, "keep_dims", keep_dims))
    x = convert_to_tensor(tensor)
    pair = isinstance(axis, list | tuple) and len(axis) == 2
    magnitude = _magnitude(x)
    result: Tensor
    if ord in ("euclidean", "fro", 2) and not (pair and ord == 2):
        result = _euclidean_norm(x, axis, keep, name)
    elif pair:
        result = _matrix_norm(magnitude, ord, axis, keep, name)
    elif ord == np.inf:
        result = reduce_max(magnitude, axis, keep, name)
    elif ord == 1:
        result = reduce_sum(magnitude, axis, keep, name)
    elif isinstance(ord, int | float) and ord > 0:
        power = convert_to_tensor(ord, magnitude.dtype.base_dtype)
        total = reduce_sum(apply_op("Pow", [magnitude, power]), axis, keep)
        result = apply_op("Pow", [total, convert_to_tensor(1.0 / ord, magnitude.dtype.base_dtype)], name=name or "norm")
    else:
        raise InvalidArgumentError(f"norm: ord {ord!r}; it must be 'euclidean', 'fro', inf or a positive number")
    return result


def _euclidean_norm(x: Tensor, axis: Any, keep: bool, name: str | None) -> Tensor:
    """Squares without a modulus, which has no slope at 0 and would lose that element's second derivative."""
    squares = apply_op("Mul", [x, _conjugate(x)])  # a square's derivative, 2 x, may overflow where x does not
    total = apply_op("Sum", [squares, reduction_axes(x, axis)], {"keep_dims": keep})
    if x.dtype.is_complex:
        total = apply_op("Real", [total], {"Tout": x.dtype.real_dtype})
    root: Tensor = apply_op("Sqrt", [total], name=name or "norm")
    return root


def _magnitude(x: Tensor) -> Tensor:
    if x.dtype.is_complex:
        result: Tensor = apply_op("ComplexAbs", [x], {"Tout": x.dtype.real_dtype})
    else:
        result = apply_op("Abs", [x])
    return result


def _matrix_norm(magnitude: Tensor, ord: Any, axis: Sequence[int], keep: bool, name: str | None) -> Tensor:
    if ord not in (1, np.inf):
        raise UnimplementedError(f"norm: ord {ord!r} of matrices; 'euclidean', 'fro', 1 and inf are there")
    summed, largest = (axis[0], axis[1]) if ord == 1 else (axis[1], axis[0])
    result = reduce_max(reduce_sum(magnitude, [summed], True), [largest], True, name if keep else None)
    if not keep:
        result = apply_op("Squeeze", [result], {"squeeze_dims": tuple(axis)}, name)
    return result


def matvec(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Products of matrices [..., m, n] and vectors [..., n]: [..., m]; see `matmul` for the other arguments."""
    with name_scope(name, "MatVec", [a, b]) as scope:
        column = apply_op("ExpandDims", [convert_to_tensor(b), -1])
        made = matmul(a, column, transpose_a, adjoint_a=adjoint_a, a_is_sparse=a_is_sparse, b_is_sparse=b_is_sparse)
        result: Tensor = apply_op("Squeeze", [made], {"squeeze_dims": [-1]}, scope)
        return result


def normalize(tensor: Any, ord: Any = "euclidean", axis: Any = None, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Returns the tensor divided by its norm along axes, and that norm, with the axes kept; see `norm`."""
    with name_scope(name, "normalize", [tensor]) as scope:
        x = convert_to_tensor(tensor)
        length = norm(x, ord, axis, keepdims=True)
        if length.dtype is not x.dtype:
            length = apply_op("Cast", [length], {"DstT": x.dtype})
        result: Tensor = apply_op("RealDiv", [x, length], None, scope)
        return result, length
