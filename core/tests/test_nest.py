"""tf.nest."""

from __future__ import annotations

from typing import NamedTuple

import pytest

import timberframe as tf


class Pair(NamedTuple):
    left: int
    right: object


def test_flatten_goes_left_to_right_and_by_sorted_keys() -> None:
    assert tf.nest.flatten([1, (2, {"b": 4, "a": 3}), Pair(5, [6])]) == [1, 2, 3, 4, 5, 6]


def test_pack_is_the_inverse_of_flatten() -> None:
    structure = [1, (2, {"b": 4, "a": 3}), Pair(5, [6])]
    assert tf.nest.pack_sequence_as(structure, tf.nest.flatten(structure)) == structure


def test_pack_keeps_the_order_of_a_dict() -> None:
    assert list(tf.nest.pack_sequence_as({"b": 0, "a": 0}, [1, 2])) == ["b", "a"]


def test_pack_refuses_another_number_of_leaves() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="has 2 leaves and 1 were given"):
        tf.nest.pack_sequence_as([1, 2], [1])


def test_map_structure_applies_to_corresponding_leaves() -> None:
    assert tf.nest.map_structure(lambda a, b: a + b, {"x": [1]}, {"x": [10]}) == {"x": [11]}


@pytest.mark.parametrize("other", [1, [1], [1, [2]], {"a": 1, "b": 2}])
def test_different_structures_are_refused(other: object) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="differ; they must have one form"):
        tf.nest.assert_same_structure([1, 2], other)


def test_views_of_a_dict_are_sequences_in_their_order() -> None:
    values = {"b": 1, "a": [2, 3]}.values()
    assert tf.nest.flatten(values) == [1, 2, 3]
    assert tf.nest.map_structure(lambda x: 2 * x, values) == [2, [4, 6]]


def test_no_structure_to_map_is_an_error() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="no structure given; one at least is required"):
        tf.nest.map_structure(abs)
