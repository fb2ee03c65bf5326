"""Shape functions and shape samples that several families share.

A shape function takes the InferenceContext and returns one shape for each output.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

from timberframe_core.dtypes import DType
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.opdef import InferenceContext, ShapeFunction
from timberframe_core.shapes import Shape, broadcast, format_shape, merge

BROADCAST_RULE = "sizes must be equal or 1, counted from the last dimension"

UNARY_SHAPES: tuple[tuple[int, ...], ...] = (
    (),
    (1,),
    (0,),
    (3, 0, 2),
    (17,),
    (7, 13),
    (2, 3, 5, 7),
    (65_537,),
    (1, 1, 2, 1, 3, 1, 2, 1),
)
"""What an elementwise op of one input is tried with: 0-d, one, empty, primes, a dimension above 65,535, rank 8."""

BROADCAST_PAIRS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((), ()),  # two scalars
    ((7, 13), (7, 13)),  # nothing to broadcast, and a remainder for every vector width
    ((131,), ()),  # a scalar on each side
    ((), (67,)),
    ((1,), (29,)),
    ((5, 17), (17,)),  # a row against a matrix, on each side
    ((17,), (5, 17)),
    ((11, 19), (11, 1)),  # a column against a matrix, on each side
    ((11, 1), (11, 19)),
    ((13, 1), (1, 23)),  # an outer product
    ((3, 1, 7), (3, 5, 7)),  # a dimension of one in the middle
    ((3, 5, 7), (5, 1)),
    ((2, 1, 3, 1, 5), (1, 4, 1, 2, 1)),  # alternating: nothing merges
    ((2, 1, 3, 1, 2, 1, 3, 1), (1, 2, 1, 3, 1, 2, 1, 3)),  # rank 8 with nothing to merge
    ((0,), (1,)),  # empty with broadcasting
    ((3, 0, 2), (1, 2)),
    ((0, 1), (1, 5)),
    ((65_537,), (1,)),  # above 65,535, along the row and down the column
    ((65_539, 1), (1, 2)),
    ((3, 65_537), (3, 1)),
)
"""Shapes of two operands that between them reach every way in which a kernel may walk a broadcast."""

ERROR_PAIRS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((2, 3), (2, 4)),
    ((3,), (2,)),
    ((4, 0), (3, 1)),
    ((2, 3, 1), (4, 5, 6)),
)
"""Shapes of two operands that do not broadcast."""


def late_errors(shape: ShapeFunction) -> ShapeFunction:
    """Returns the same shape function, for an op for which TensorFlow's own looks at less than this one.

    TensorFlow imports nodes that this one finds wrong, and refuses them when they run; so the errors are late ones.
    """

    @functools.wraps(shape)
    def checked(c: InferenceContext) -> Sequence[Shape]:
        try:
            return shape(c)
        except InvalidArgumentError as error:
            error.late = True
            raise
        except ValueError as error:  # of shape arithmetic
            raise c.late_error(str(error)) from None

    return checked


def unchanged(c: InferenceContext) -> list[Shape]:
    """Returns the shapes: the one output has the first input's shape."""
    return [c.shapes[0]]


def scalar(c: InferenceContext) -> list[Shape]:
    """Returns the shapes of outputs that are all 0-d."""
    return [()] * len(c.op.outputs)


def broadcast_all(c: InferenceContext) -> list[Shape]:
    """Returns the shapes: the one output has the shape to which all inputs broadcast."""
    result: Shape = ()
    for i, shape in enumerate(c.shapes):
        result = shape if i == 0 else broadcast_pair(c, result, shape)
    return [result]


def broadcast_pair(c: InferenceContext, a: Shape, b: Shape) -> Shape:
    """Returns the shape to which two shapes of this op's operands broadcast, or the op's error."""
    try:
        return broadcast(a, b)
    except ValueError:
        raise c.error(f"shapes {format_shape(a)} and {format_shape(b)} do not broadcast; {BROADCAST_RULE}") from None


def all_equal(c: InferenceContext) -> list[Shape]:
    """Returns the shapes: all inputs have one shape, which the one output has too; what is known of any of
    them is known of the result.
    """
    return [merge_inputs(c, range(len(c.shapes)))]


def merge_inputs(c: InferenceContext, indices: Iterable[int]) -> Shape:
    """Returns the one shape that all these inputs must have."""
    result: Shape = None
    first = None
    for i in indices:
        first = i if first is None else first
        result = merge_shapes(c, result, c.shapes[i], f"inputs {first} and {i}")
    return result


def merge_shapes(c: InferenceContext, a: Shape, b: Shape, what: str) -> Shape:
    """Returns what is known when a and b describe one shape; `what` names them in the error: ``inputs 0 and 1``."""
    try:
        return merge(a, b)
    except ValueError:
        raise shapes_differ(c, a, b, what) from None


def shapes_differ(c: InferenceContext, a: Shape, b: Shape, what: str) -> InvalidArgumentError:
    """Returns the error for two shapes that must be equal and are not."""
    return c.error(f"{what} have shapes {format_shape(a)} and {format_shape(b)}; they must be equal")


def variable_shape_of(c: InferenceContext, i: int, dtype: DType) -> Shape:
    """Returns the shape of the variable of input i, which must be a 0-d handle of a variable of this dtype."""
    c.require_rank(i, 0)
    found = c.handles[i] if i < len(c.handles) else None
    if found is None:
        return None
    if found[0] is not None and found[0] is not dtype:
        raise c.error(f"variable of input {i} has dtype {found[0]}; it must be {dtype}")
    return found[1]
