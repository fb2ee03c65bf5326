"""tf.estimator.inputs: batches of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf


def taken(input_fn: Callable[[], Any]) -> list[Any]:
    """Returns what an input function gives, batch after batch."""
    with tf.Graph().as_default():
        element = input_fn().make_one_shot_iterator().get_next()
        found = []
        with tf.Session() as session:
            while True:
                try:
                    found.append(session.run(element))
                except tf.errors.OutOfRangeError:
                    return found


def test_rows_come_in_order_and_the_last_batch_is_smaller() -> None:
    rows = np.arange(10)
    found = taken(tf.estimator.inputs.numpy_input_fn(rows, batch_size=4, num_epochs=2, shuffle=False))
    assert [batch.tolist() for batch in found] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1], [2, 3, 4, 5], [6, 7, 8, 9]]


def test_rows_come_in_random_order_with_their_labels() -> None:
    rows = np.arange(100)
    input_fn = tf.estimator.inputs.numpy_input_fn({"a": rows}, 2 * rows, batch_size=10, shuffle=True)
    found = taken(input_fn)
    assert all((labels == 2 * features["a"]).all() for features, labels in found)
    order = np.concatenate([features["a"] for features, _ in found])
    assert sorted(order) == rows.tolist() != order.tolist()


def test_arrays_of_other_lengths_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"x\['a'\] has 3, y has 2 rows; all must have as many"):
        tf.estimator.inputs.numpy_input_fn({"a": np.zeros(3)}, np.zeros(2), shuffle=False)


def test_an_order_must_be_chosen() -> None:
    with pytest.raises(ValueError, match="shuffle is None; True"):
        tf.estimator.inputs.numpy_input_fn(np.zeros(3))
