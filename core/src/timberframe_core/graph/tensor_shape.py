"""TensorShape: the shape of a tensor as users see it."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from timberframe_core import shapes
from timberframe_core.arguments import shown
from timberframe_core.errors import InvalidArgumentError, InvalidIndexError, InvalidTypeError
from timberframe_core.graph.dimension import Dimension
from timberframe_core.shapes import MAX_ELEMENTS, Shape, format_shape


class TensorShape:
    """Sizes of a tensor, some or all of which may be unknown.

    Behaves as a sequence of Dimensions when the rank is known; iterating over an unknown rank raises
    InvalidArgumentError.
    """

    __slots__ = ("_dims",)

    def __init__(self, dims: Any = None) -> None:
        self._dims = as_shape(dims)

    @property
    def rank(self) -> int | None:
        """The number of dimensions, or None where it is unknown."""
        return None if self._dims is None else len(self._dims)

    ndims = rank

    @property
    def dims(self) -> list[Dimension] | None:
        """The sizes, or None for an unknown rank."""
        return None if self._dims is None else list(self)

    def as_list(self) -> list[int | None]:
        """Returns the sizes; raises InvalidArgumentError for an unknown rank."""
        return list(self._known())

    def as_tuple(self) -> Shape:
        """Returns the plain form that shape functions work on."""
        return self._dims

    def num_elements(self) -> int | None:
        """Returns the number of elements, or None where a size is unknown."""
        if self._dims is None:
            return None
        sizes = [d for d in self._dims if d is not None]
        return shapes.num_elements(tuple(sizes)) if len(sizes) == len(self._dims) else None

    def is_fully_defined(self) -> bool:
        """Returns whether every size is known."""
        return shapes.is_static(self._dims)

    def assert_is_fully_defined(self) -> None:
        """Raises InvalidArgumentError where a size is unknown."""
        if not self.is_fully_defined():
            raise InvalidArgumentError(f"shape {self} is not fully defined; every size must be known")

    def is_compatible_with(self, other: Any) -> bool:
        """Returns whether one tensor could have both shapes."""
        return shapes.compatible(self._dims, as_shape(other))

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raises InvalidArgumentError unless one tensor could have both shapes."""
        if not self.is_compatible_with(other):
            raise InvalidArgumentError(
                f"shapes {self} and {TensorShape(other)} are incompatible; known sizes must agree"
            )

    def merge_with(self, other: Any) -> TensorShape:
        """Returns what is known when both describe one tensor; raises InvalidArgumentError where they contradict."""
        wanted = as_shape(other)
        try:
            return TensorShape(shapes.merge(self._dims, wanted))
        except ValueError as e:
            raise InvalidArgumentError(f"{e}; known sizes must agree") from None

    def with_rank(self, rank: int) -> TensorShape:
        """This shape, which must have (or may have) the given rank."""
        return self.merge_with((None,) * rank)

    def assert_has_rank(self, rank: int) -> None:
        """Raises InvalidArgumentError where the rank is known and another one."""
        if self._dims is not None and len(self._dims) != rank:
            raise InvalidArgumentError(f"shape {self} has rank {len(self._dims)}; it must have rank {rank}")

    def assert_same_rank(self, other: Any) -> None:
        """Raises InvalidArgumentError where both ranks are known and differ."""
        wanted = as_shape(other)
        if wanted is not None:
            self.assert_has_rank(len(wanted))

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """This shape; raises InvalidArgumentError where its rank is known and larger."""
        if self._dims is not None and len(self._dims) > rank:
            raise InvalidArgumentError(f"shape {self} has rank {len(self._dims)}; it must have rank at most {rank}")
        return self

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        """Returns the sizes in which both agree; unknown where they do not."""
        wanted = as_shape(other)
        if self._dims is None or wanted is None or len(self._dims) != len(wanted):
            return TensorShape(None)
        return TensorShape([a if a == b else None for a, b in zip(self._dims, wanted, strict=True)])

    if TYPE_CHECKING:  # it comes with timberframe_core.graphdef

        def as_proto(self) -> Any: ...

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """This shape; raises InvalidArgumentError where its rank is known and smaller."""
        if self._dims is not None and len(self._dims) < rank:
            raise InvalidArgumentError(f"shape {self} has rank {len(self._dims)}; it must have rank at least {rank}")
        return self

    def concatenate(self, other: Any) -> TensorShape:
        """Returns the sizes of both, one after the other."""
        tail = as_shape(other)
        return TensorShape(None if self._dims is None or tail is None else self._dims + tail)

    def _known(self) -> tuple[int | None, ...]:
        if self._dims is None:
            raise InvalidArgumentError("shape has an unknown rank; a known rank is required")
        return self._dims

    def __len__(self) -> int:
        return len(self._known())

    def __iter__(self) -> Iterator[Dimension]:
        return iter([Dimension(d) for d in self._known()])

    def __getitem__(self, key: int | slice) -> Any:
        if self._dims is None:
            return TensorShape(None) if isinstance(key, slice) else Dimension(None)
        try:
            return TensorShape(self._dims[key]) if isinstance(key, slice) else Dimension(self._dims[key])
        except IndexError:
            raise InvalidIndexError(f"shape {self} has no size {key}; it has {len(self._dims)} sizes") from None
        except TypeError:
            raise InvalidTypeError(f"shape {self} is indexed with {key!r}; an integer or a slice is required") from None

    def __bool__(self) -> bool:
        return self._dims is not None

    def __eq__(self, other: object) -> bool:
        try:
            return self._dims == as_shape(other)
        except (InvalidArgumentError, TypeError, ValueError):
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self._dims)

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return TensorShape(other).concatenate(self)

    def __repr__(self) -> str:
        return f"TensorShape({None if self._dims is None else list(self._dims)})"

    def __str__(self) -> str:
        return format_shape(self._dims)


def _size(value: Any) -> int | None:
    size = None if value is None else value.value if isinstance(value, Dimension) else operator.index(value)
    return None if size == -1 else size


def as_shape(value: Any) -> Shape:
    """Returns the plain shape for a TensorShape, a sequence of sizes (None or -1: unknown), one size, or None."""
    if value is None:
        return None
    if isinstance(value, TensorShape):
        return value.as_tuple()
    if isinstance(value, int) or not hasattr(value, "__iter__"):
        value = (value,)
    try:
        sizes = tuple([_size(d) for d in value])
    except TypeError:
        raise InvalidTypeError(f"shape {shown(value)} given; sizes are integers, or None for unknown") from None
    if any(d is not None and d > MAX_ELEMENTS for d in sizes):
        raise InvalidArgumentError(f"shape {format_shape(sizes)} has a size over 2^63 - 1; sizes must fit 63 bits")
    if any(d is not None and d < 0 for d in sizes):
        raise InvalidArgumentError(
            f"shape {format_shape(sizes)} has a negative size; sizes are zero or more, or -1 for unknown"
        )
    return sizes
