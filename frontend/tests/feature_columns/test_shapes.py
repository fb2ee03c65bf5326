"""Numbers of examples and of elements that do not fit the columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf

fc = tf.feature_column
Layer = Callable[..., Any]
LAYERS = pytest.mark.parametrize("layer", [fc.input_layer, fc.linear_model])


@LAYERS
@pytest.mark.parametrize(("shape", "data"), [(2, (8, 1)), (2, (8,)), (1, (4, 2)), ((2, 3), (6, 2))])
def test_elements_that_do_not_fit_a_column_are_an_error(layer: Layer, shape: Any, data: tuple[int, ...]) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=rf"'z': shape is \(.*feature has shape \({data[0]},"):
        layer({"z": np.zeros(data, np.float32)}, [fc.numeric_column("z", shape)])


@LAYERS
def test_fed_elements_that_do_not_fit_a_column_are_an_error_of_the_run(session: tf.Session, layer: Layer) -> None:
    z = tf.placeholder(tf.float32, [None, None])
    made = layer({"z": z}, [fc.numeric_column("z", 2)])
    session.run(tf.global_variables_initializer())
    assert session.run(made, {z: np.zeros((8, 2))}).shape[0] == 8
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"/z/.*8"):
        session.run(made, {z: np.zeros((8, 1))})


def test_the_number_of_elements_is_known_where_that_of_examples_is_not() -> None:
    made = fc.input_layer({"z": tf.placeholder(tf.float32, [None, 2, 3])}, [fc.numeric_column("z", (2, 3))])
    assert made.shape.as_list() == [None, 6]


@LAYERS
@pytest.mark.parametrize(
    "column", [fc.numeric_column("z"), fc.indicator_column(fc.categorical_column_with_identity("z", 3))]
)
def test_a_scalar_feature_is_an_error(layer: Layer, column: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"feature 'z': has rank 0; \[batch\]"):
        layer({"z": np.array(2)}, [column])


@LAYERS
@pytest.mark.parametrize("examples", [1, 5])
def test_columns_of_different_numbers_of_examples_are_an_error(layer: Layer, examples: int) -> None:
    features = {"a": np.zeros((8, 1)), "b": np.zeros((examples, 1))}
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"different numbers of examples: 'a' 8, 'b' {examples};"):
        layer(features, [fc.numeric_column("a"), fc.numeric_column("b")])


def test_fed_columns_of_different_numbers_of_examples_are_not_added_up(session: tf.Session) -> None:
    features = {key: tf.placeholder(tf.float32, [None, 1]) for key in "ab"}
    made = fc.linear_model(features, [fc.numeric_column(key) for key in "ab"])
    session.run(tf.global_variables_initializer())
    with pytest.raises(tf.errors.InvalidArgumentError):
        session.run(made, {features["a"]: np.zeros((8, 1)), features["b"]: np.zeros((1, 1))})
