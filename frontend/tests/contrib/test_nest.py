"""tf.contrib.framework.nest: structures whose upper levels have one form, and paths of leaves."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import pytest

import timberframe as tf

nest = tf.contrib.framework.nest
Pair = namedtuple("Pair", "u v")
Tree = {"b": [1, {"x": 2}], "a": (3,)}


def test_parts_below_the_leaves_of_a_shallow_structure_stay_whole() -> None:
    assert nest.flatten_up_to([0, {"k": 0}], [[1, 2], {"k": (3, 4)}]) == [[1, 2], (3, 4)]
    assert nest.flatten_up_to(0, [1, 2]) == [[1, 2]]
    assert nest.map_structure_up_to(Pair(0, 0), lambda a, b: a + b, Pair([1], [2]), Pair([3], [4])) == Pair(
        [1, 3], [2, 4]
    )


@pytest.mark.parametrize(
    ("shallow", "given", "error"),
    [
        ([1, 2], (3, 4), TypeError), ([1], 5, TypeError), ([1, 2], [1], ValueError),
        ({"a": 1}, {"a": 1, "b": 2}, ValueError), ({"a": 1}, {"b": 1}, ValueError), ([[1]], [2], TypeError),
    ],
)  # fmt: skip
def test_upper_levels_that_differ_are_an_error(shallow: Any, given: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        nest.assert_shallow_structure(shallow, given)


def test_types_of_upper_levels_may_differ_on_request() -> None:
    assert nest.flatten_up_to([1, 2], (3, 4), check_types=False) == [3, 4]


def test_leaves_have_paths() -> None:
    assert nest.flatten_with_joined_string_paths(Tree) == [("a/0", 3), ("b/0", 1), ("b/1/x", 2)]
    assert nest.flatten_with_tuple_paths(Pair(1, [2])) == [(("u",), 1), (("v", 0), 2)]
    assert nest.map_structure_with_paths(lambda path, x: (path, x), Tree)["b"] == [("b/0", 1), {"x": ("b/1/x", 2)}]
    assert nest.map_structure_with_tuple_paths(lambda path, x: path, Tree)["a"] == (("a", 0),)


def test_keys_that_are_structures_are_divided() -> None:
    assert nest.flatten_dict_items({(4, (5, 6)): ("a", ("b", "c")), 7: "d"}) == {4: "a", 5: "b", 6: "c", 7: "d"}
    with pytest.raises(ValueError, match="4 comes twice"):
        nest.flatten_dict_items({(4, 5): (1, 2), 4: 3})


def test_a_function_chooses_the_upper_levels() -> None:
    found = nest.get_traverse_shallow_structure(lambda part: not isinstance(part, tuple), Tree)
    assert found == {"a": False, "b": [True, {"x": True}]}
    assert nest.get_traverse_shallow_structure(lambda s: [True, False] if s == [1, [2]] else True, [1, [2]]) == [
        True, False,
    ]  # fmt: skip
