"""`tf.nest`: nested lists, tuples, named tuples and dicts, flattened and put together again.

Everything else is a leaf. Dicts are gone through in the order of their sorted keys; their views, such as `d.values()`,
are sequences in the order that they have, and are put together as lists.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from functools import wraps
from typing import Any, TypeVar, cast

from timberframe_core.errors import InvalidArgumentError, InvalidTypeError

__all__ = ["assert_same_structure", "flatten", "is_nested", "map_structure", "pack_sequence_as"]


_VIEWS = (ItemsView, KeysView, ValuesView)

Function = TypeVar("Function", bound=Callable[..., Any])


def _checks_depth(function: Function) -> Function:
    """Raises InvalidArgumentError for a structure nested deeper than Python can recurse, or that contains itself."""

    @wraps(function)
    def checked(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except RecursionError:
            raise InvalidArgumentError(
                f"a structure is nested deeper than the recursion limit of {sys.getrecursionlimit()} allows; "
                "a flatter one is required"
            ) from None

    return cast(Function, checked)


def is_nested(seq: Any) -> bool:
    """Returns whether `seq` is a structure rather than a leaf."""
    return isinstance(seq, (list, tuple, Mapping, *_VIEWS))


is_sequence = is_nested


def _children(structure: Any) -> Sequence[Any]:
    if isinstance(structure, _VIEWS):
        return list(structure)
    return [structure[key] for key in sorted(structure)] if isinstance(structure, Mapping) else structure


@_checks_depth
def flatten(structure: Any) -> list[Any]:
    """The leaves from left to right."""
    return _flatten(structure)


def _flatten(structure: Any) -> list[Any]:
    if not is_nested(structure):
        return [structure]
    return [leaf for child in _children(structure) for leaf in _flatten(child)]


@_checks_depth
def pack_sequence_as(structure: Any, flat_sequence: Sequence[Any]) -> Any:
    """The structure with other leaves; raises InvalidArgumentError where their number differs."""
    wanted = len(flatten(structure))
    if wanted != len(flat_sequence):
        raise InvalidArgumentError(
            f"structure has {wanted} leaves and {len(flat_sequence)} were given; both must agree"
        )
    return _pack(structure, iter(flat_sequence))


def _pack(structure: Any, leaves: Iterator[Any]) -> Any:
    if not is_nested(structure):
        return next(leaves)
    packed = [_pack(child, leaves) for child in _children(structure)]
    if isinstance(structure, Mapping):
        by_key = dict(zip(sorted(structure), packed, strict=True))
        kind: Any = type(structure)  # made of pairs, as dict and its subclasses are
        return kind((key, by_key[key]) for key in structure)
    if isinstance(structure, _VIEWS):
        return packed
    return type(structure)(*packed) if hasattr(structure, "_fields") else type(structure)(packed)


def map_structure(func: Callable[..., Any], *structure: Any, check_types: bool = True) -> Any:
    """Applies `func` to the leaves of structures of one form, and returns the results in that form.

    check_types: see `assert_same_structure`.
    """
    if not structure:
        raise InvalidArgumentError("map_structure: no structure given; one at least is required")
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types)
    columns = zip(*map(flatten, structure), strict=True)
    return pack_sequence_as(structure[0], [func(*leaves) for leaves in columns])


@_checks_depth
def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True) -> None:
    """Raises InvalidTypeError unless both have the same form.

    check_types: whether a list and a tuple differ, and named tuples of other names; mappings never do by their types.
    """
    _assert_same(nest1, nest2, check_types)


def _assert_same(nest1: Any, nest2: Any, check_types: bool) -> None:
    if is_nested(nest1) != is_nested(nest2) or (is_nested(nest1) and not _same_keys(nest1, nest2)):
        raise InvalidTypeError(f"structures {_outline(nest1)} and {_outline(nest2)} differ; they must have one form")
    if is_nested(nest1):
        for a, b in zip(_children(nest1), _children(nest2), strict=True):
            _assert_same(a, b, check_types)
        if check_types and not _same_type(nest1, nest2):
            raise InvalidTypeError(
                f"structures are {type(nest1).__name__} and {type(nest2).__name__}; they must be of one type, or "
                "check_types=False must be given"
            )


def _same_type(a: Any, b: Any) -> bool:
    if type(a) is type(b) or isinstance(a, Mapping):
        return True
    names = [(type(x).__name__, getattr(x, "_fields", None)) for x in (a, b)]
    return names[0][1] is not None and names[0] == names[1]


def _same_keys(a: Any, b: Any) -> bool:
    if isinstance(a, Mapping) or isinstance(b, Mapping):
        return isinstance(a, Mapping) and isinstance(b, Mapping) and a.keys() == b.keys()
    return len(a) == len(b)


def _outline(structure: Any) -> str:
    if isinstance(structure, Mapping):
        return "{" + ", ".join(f"{key!r}: {_outline(structure[key])}" for key in sorted(structure)) + "}"
    if is_nested(structure):
        return "[" + ", ".join(map(_outline, structure)) + "]"
    return "."
