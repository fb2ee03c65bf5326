"""`tf.contrib.framework.nest`: `tf.nest`, and structures whose upper levels alone have one form, and paths of leaves.

A path is the keys, positions and names of fields that lead to a leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.nest import assert_same_structure as assert_same_structure
from timberframe_core.nest import flatten as flatten
from timberframe_core.nest import is_nested as is_nested
from timberframe_core.nest import is_sequence as is_sequence
from timberframe_core.nest import map_structure as map_structure
from timberframe_core.nest import pack_sequence_as as pack_sequence_as

__all__ = [
    "assert_same_structure", "assert_shallow_structure", "flatten", "flatten_dict_items", "flatten_up_to",
    "flatten_with_joined_string_paths", "flatten_with_tuple_paths", "get_traverse_shallow_structure", "is_nested",
    "is_sequence", "map_structure", "map_structure_up_to", "map_structure_with_paths",
    "map_structure_with_tuple_paths", "pack_sequence_as",
]  # fmt: skip


def _items(structure: Any) -> list[tuple[Any, Any]]:
    """Keys, positions or names of fields, each with what is there, in the order of `flatten`."""
    if isinstance(structure, Mapping):
        return [(key, structure[key]) for key in sorted(structure)]
    return list(zip(getattr(structure, "_fields", range(len(structure))), structure, strict=True))


def _with(structure: Any, children: Sequence[Any]) -> Any:
    """Returns the structure with other children."""
    if isinstance(structure, Mapping):
        by_key = dict(zip(sorted(structure), children, strict=True))
        kind: Any = type(structure)
        return kind((key, by_key[key]) for key in structure)
    return type(structure)(*children) if hasattr(structure, "_fields") else type(structure)(children)


def assert_shallow_structure(shallow_tree: Any, input_tree: Any, check_types: bool = True) -> None:
    """Raises where the upper levels of input_tree do not have the form of shallow_tree.

    InvalidTypeError where one has no structure or, with check_types, another type; InvalidArgumentError where lengths
    or keys differ.
    """
    if not is_nested(shallow_tree):
        return
    kinds = f"the shallow structure is a {type(shallow_tree).__name__} and the input a {type(input_tree).__name__}"
    if not is_nested(input_tree):
        raise InvalidTypeError(f"{kinds}; a structure is required where the shallow structure has one")
    if check_types and not _same_kind(shallow_tree, input_tree):
        raise InvalidTypeError(f"{kinds}; they must be of one type, or check_types=False must be given")
    if len(shallow_tree) != len(input_tree):
        raise InvalidArgumentError(
            f"the shallow structure has {len(shallow_tree)} parts and the input {len(input_tree)}; as many are required"
        )
    if isinstance(shallow_tree, Mapping) and (absent := set(shallow_tree) - set(input_tree)):
        raise InvalidArgumentError(
            f"the shallow structure has the keys {sorted(absent)} and the input has not; equal keys are required"
        )
    for (_, shallow), (_, given) in zip(_items(shallow_tree), _items(input_tree), strict=True):
        assert_shallow_structure(shallow, given, check_types)


def _same_kind(shallow: Any, given: Any) -> bool:
    if isinstance(shallow, Mapping) or isinstance(given, Mapping):
        return isinstance(shallow, Mapping) and isinstance(given, Mapping)
    names = [(type(x).__name__, getattr(x, "_fields", None)) for x in (shallow, given)]
    return isinstance(given, type(shallow)) or (names[0][1] is not None and names[0] == names[1])


def flatten_up_to(shallow_tree: Any, input_tree: Any, check_types: bool = True) -> list[Any]:
    """Returns what input_tree has at the leaves of shallow_tree, from left to right;
    `assert_shallow_structure` says errors.
    """
    assert_shallow_structure(shallow_tree, input_tree, check_types)
    return list(_up_to(shallow_tree, input_tree))


def _up_to(shallow: Any, given: Any) -> Iterator[Any]:
    if not is_nested(shallow):
        yield given
        return
    for (_, inner), (_, part) in zip(_items(shallow), _items(given), strict=True):
        yield from _up_to(inner, part)


def map_structure_up_to(shallow_tree: Any, func: Callable[..., Any], *inputs: Any, check_types: bool = True) -> Any:
    """Applies `func` to what the inputs have at the leaves of shallow_tree; results have the form of shallow_tree."""
    if not inputs:
        raise InvalidArgumentError("map_structure_up_to: no inputs; one at least is required")
    columns = zip(*(flatten_up_to(shallow_tree, x, check_types) for x in inputs), strict=True)
    return pack_sequence_as(shallow_tree, [func(*leaves) for leaves in columns])


def flatten_dict_items(dictionary: Mapping[Any, Any]) -> dict[Any, Any]:
    """Returns a dict of leaves: keys that are structures are divided, with their values, which must have the same form.

    Raises InvalidTypeError for anything but a dict, InvalidArgumentError where forms differ or a key comes twice.
    """
    if not isinstance(dictionary, Mapping):
        raise InvalidTypeError(f"flatten_dict_items: got {type(dictionary).__name__}; a dict is required")
    flat: dict[Any, Any] = {}
    for keys, values in dictionary.items():
        assert_same_structure(keys, values)
        for key, value in zip(flatten(keys), flatten(values), strict=True):
            if key in flat:
                raise InvalidArgumentError(f"flatten_dict_items: {key!r} comes twice; keys must be unique")
            flat[key] = value
    return flat


def flatten_with_tuple_paths(structure: Any) -> list[tuple[tuple[Any, ...], Any]]:
    """Returns pairs of path and leaf, from left to right; paths are tuples."""
    if not is_nested(structure):
        return [((), structure)]
    return [((key, *path), leaf) for key, part in _items(structure) for path, leaf in flatten_with_tuple_paths(part)]


def flatten_with_joined_string_paths(structure: Any, separator: str = "/") -> list[tuple[str, Any]]:
    """Returns pairs of path and leaf, from left to right; paths are texts."""
    return [(separator.join(map(str, path)), leaf) for path, leaf in flatten_with_tuple_paths(structure)]


def map_structure_with_tuple_paths(func: Callable[..., Any], *structure: Any, check_types: bool = True) -> Any:
    """As `map_structure`, with the path, a tuple, as the first argument of `func`."""
    paths = pack_sequence_as(structure[0], [_Path(path) for path, _ in flatten_with_tuple_paths(structure[0])])
    return map_structure(lambda path, *leaves: func(path.keys, *leaves), paths, *structure, check_types=check_types)


def map_structure_with_paths(
    func: Callable[..., Any], *structure: Any, separator: str = "/", check_types: bool = True
) -> Any:
    """As `map_structure`, with the path, a text, as the first argument of `func`."""
    return map_structure_with_tuple_paths(
        lambda path, *leaves: func(separator.join(map(str, path)), *leaves), *structure, check_types=check_types
    )


class _Path:
    """A path as a leaf: a tuple would be a structure."""

    def __init__(self, keys: tuple[Any, ...]) -> None:
        self.keys = keys


def get_traverse_shallow_structure(traverse_fn: Callable[[Any], Any], structure: Any) -> Any:
    """Returns the upper levels of a structure that traverse_fn chooses, with True at leaves and False where it stops.

    traverse_fn: gets a part of the structure and returns a bool, or a structure of bools for the part's own parts.
    """
    chosen = traverse_fn(structure)
    if not is_nested(structure) or not chosen:
        if not isinstance(chosen, bool):
            raise InvalidTypeError(f"traverse_fn returned {chosen!r} for {structure!r}; a bool is required")
        return chosen
    parts = [part for _, part in _items(structure)]
    if isinstance(chosen, bool):
        return _with(structure, [get_traverse_shallow_structure(traverse_fn, part) for part in parts])
    assert_shallow_structure(chosen, structure)
    wanted = [bool(flag) for _, flag in _items(chosen)]
    return _with(
        structure,
        [flag and get_traverse_shallow_structure(traverse_fn, p) for flag, p in zip(wanted, parts, strict=True)],
    )
