"""Shapes as plain tuples, the form that shape functions and the compiler work on.

A `Shape` is a tuple of sizes in which None stands for an unknown size; None in place of the tuple is an unknown rank.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from timberframe_core.errors import InvalidArgumentError, ResourceExhaustedError

Shape = tuple[int | None, ...] | None
StaticShape = tuple[int, ...]

MAX_RANK = 8  # of TensorFlow's kernels; native ones hold their loop counters in arrays of this size
MAX_SHAPE_RANK = 254  # of TensorFlow's shapes
MAX_ARRAY_RANK = 64  # of a tensor in a run, where NumPy must be able to hold it
MAX_ELEMENTS = 2**63 - 1


def is_static(shape: Shape) -> bool:
    """Returns whether rank and all sizes are known."""
    return shape is not None and None not in shape


def format_shape(shape: Shape) -> str:
    """`(2, ?, 3)`, `(4,)`, or `<unknown>`: the way that shapes are printed, as TensorFlow 1 prints them."""
    if shape is None:
        return "<unknown>"
    sizes = ["?" if d is None else str(d) for d in shape]
    return f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(sizes)})"


def num_elements(shape: StaticShape) -> int:
    """Returns the product of the sizes; 1 for a scalar."""
    return math.prod(shape)


def merge(a: Shape, b: Shape) -> Shape:
    """Returns what is known when both describe one tensor; raises ValueError where they contradict each other."""
    if a is None or b is None:
        return b if a is None else a
    if len(a) != len(b):
        raise ValueError(f"shapes {format_shape(a)} and {format_shape(b)} have different ranks")
    return tuple(merge_dim(x, y) for x, y in zip(a, b, strict=True))


def merge_dim(x: int | None, y: int | None) -> int | None:
    """Returns what is known when both describe one size; raises ValueError where they differ."""
    if x is None or y is None:
        return y if x is None else x
    if x != y:
        raise ValueError(f"sizes {x} and {y} differ")
    return x


def rank_of_sparse(indices: Shape, shape: Shape = None) -> int | None:
    """Returns the rank of a sparse tensor by the shapes of its indices and of its shape."""
    columns = None if indices is None else indices[1]
    return columns if columns is not None or shape is None else shape[0]


def in_common(shapes: Iterable[Shape]) -> Shape:
    """Returns what all the shapes have in common, which a tensor that may have any of them is known to have."""
    first, *others = shapes
    for other in others:
        if first is None or other is None or len(first) != len(other):
            return None
        first = tuple(a if a == b else None for a, b in zip(first, other, strict=True))
    return first


def compatible(a: Shape, b: Shape) -> bool:
    """Returns whether one tensor could have both shapes."""
    if a is None or b is None or a == b:
        return True
    if len(a) != len(b):
        return False
    for x, y in zip(a, b, strict=True):  # noqa: SIM110 - twice as fast as all() of a generator; each fed array gets here
        if x is not None and y is not None and x != y:
            return False
    return True


def broadcast(a: Shape, b: Shape) -> Shape:
    """Returns the shape that two operands broadcast to (NumPy's rule); raises ValueError where they cannot."""
    if a == b and a is not None and None not in a:
        return a
    if a is None or b is None:
        return None
    rank = max(len(a), len(b))
    pairs = zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True)
    try:
        return tuple(broadcast_dim(x, y) for x, y in pairs)
    except ValueError:
        raise ValueError(f"shapes {format_shape(a)} and {format_shape(b)} do not broadcast") from None


def broadcast_dim(x: int | None, y: int | None) -> int | None:
    """Returns the size that two sizes broadcast to; raises ValueError where they cannot."""
    if x == y or y == 1:
        return x
    if x == 1:
        return y
    if x is None or y is None:
        return y if x is None else x  # the known size is above 1, so the other is that size or 1
    raise ValueError(f"sizes {x} and {y} do not broadcast")


def check_size(shape: Sequence[int]) -> StaticShape:
    """Returns the sizes as a tuple; raises InvalidArgumentError for a negative size or more than 2^63 - 1 elements."""
    sizes = tuple(int(d) for d in shape)
    if any(d < 0 for d in sizes):
        raise InvalidArgumentError(f"shape {format_shape(sizes)} has a negative size; sizes are zero or more")
    if math.prod(d for d in sizes if d) > MAX_ELEMENTS:
        raise InvalidArgumentError(
            f"shape {format_shape(sizes)} has over 2^63 - 1 elements; the product of sizes must fit 63 bits"
        )
    return sizes


def check_array(shape: Sequence[int], itemsize: int = 1) -> StaticShape:
    """Returns the sizes as a tuple; raises InvalidArgumentError where no array can have them.

    itemsize: bytes of an element. Raises ResourceExhaustedError where all of them need more than 2^63 - 1 bytes.
    """
    if len(shape) > MAX_ARRAY_RANK:
        raise InvalidArgumentError(f"shape has {len(shape)} dimensions; a tensor has at most {MAX_ARRAY_RANK} in a run")
    sizes = check_size(shape)
    nbytes = math.prod(sizes) * itemsize
    if nbytes > MAX_ELEMENTS:
        raise ResourceExhaustedError(
            f"shape {format_shape(sizes)} needs {nbytes} bytes; no device can address more than 2^63 - 1"
        )
    return sizes


def row_major_strides(shape: StaticShape) -> StaticShape:
    """Strides in elements of a dense row-major tensor."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))
