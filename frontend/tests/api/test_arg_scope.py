"""tf.contrib.framework: defaults of arguments, and variables by scopes."""

from __future__ import annotations

from typing import Any

import pytest

import timberframe as tf

framework = tf.contrib.framework


@framework.add_arg_scope
def layer(x: int, size: int = 1, activation: Any = None) -> tuple[int, int, Any]:
    return x, size, activation


def test_defaults_hold_inside() -> None:
    with framework.arg_scope([layer], size=3):
        assert layer(1) == (1, 3, None)
        assert layer(1, size=4) == (1, 4, None)
        with framework.arg_scope([layer], activation="relu"):
            assert layer(1) == (1, 3, "relu")
        assert layer(1) == (1, 3, None)
    assert layer(1) == (1, 1, None)


def test_a_scope_is_opened_again() -> None:
    with framework.arg_scope([layer], size=3) as scope:
        pass
    with framework.arg_scope(scope):
        assert layer(1) == (1, 3, None)


def test_wrong_scopes() -> None:
    def other() -> None: ...

    assert framework.has_arg_scope(layer)
    assert not framework.has_arg_scope(other)
    with pytest.raises(tf.errors.InvalidArgumentError, match="other takes no defaults"), framework.arg_scope([other]):
        pass
    with pytest.raises(tf.errors.InvalidArgumentError, match="layer has no argument 'width'"):  # noqa: SIM117 - what raises
        with framework.arg_scope([layer], width=3):
            pass


def test_variables_by_scope_and_name() -> None:
    with tf.Graph().as_default():
        with tf.variable_scope("a"):
            weights = framework.model_variable("weights", [2], initializer=tf.zeros_initializer())
        with tf.variable_scope("b"):
            other = framework.variable("weights", [2], trainable=False)
        assert framework.get_variables("a") == [weights]
        assert framework.get_variables_by_name("weights") == [weights, other]
        assert framework.get_model_variables() == [weights]
        assert framework.get_trainable_variables() == [weights]
        assert framework.get_variables_to_restore(exclude=["a"]) == [other]
