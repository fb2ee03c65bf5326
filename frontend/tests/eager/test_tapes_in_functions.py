"""A tape gives the same in a function as in eager execution: what was recorded counts alone, as in TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import timberframe as tf

Program = Callable[[Any], Any]


def target_after_the_block(x: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    return tape.gradient(y * x, x, unconnected_gradients="zero")


def branch_after_the_block(x: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    return tape.gradient(tf.cond(x > 0, lambda: y * x, lambda: x), x, unconnected_gradients="zero")


def values_from_before(x: Any) -> Any:
    y = x * x
    with tf.GradientTape() as tape:
        tape.watch(x)
        z = y * x
    return tape.gradient(z, x)


def values_from_around_a_branch(x: Any) -> Any:
    y = x * x

    def branch() -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            z = y * x
        return tape.gradient(z, x)

    return tf.cond(x > 0, branch, lambda: x)


def values_from_before_they_are_watched(x: Any) -> Any:
    with tf.GradientTape() as tape:
        y = x * x
        tape.watch(x)
        z = y * x
    return tape.gradient(z, x)


def a_pause(x: Any) -> Any:
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        with tape.stop_recording():
            w = y * x
        v = w * x
    return tf.stack([tape.gradient(t, x, unconnected_gradients="zero") for t in (v, w, y)])


def a_tape_that_goes_on(x: Any) -> Any:
    tape = tf.GradientTape(persistent=True)
    with tape:
        tape.watch(x)
        y = x * x
    z = y * x
    with tape:
        w = z * y
    return tape.gradient(w, x)


def something_that_nobody_watches(x: Any) -> Any:
    other = x + 1
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * other
    return tf.stack([tape.gradient(y, [other, x], unconnected_gradients="zero")])


def a_gradient_of_a_tape_whose_block_ended(x: Any) -> Any:
    with tf.GradientTape() as first:
        first.watch(x)
        y = x * x * x
    with tf.GradientTape() as second:
        second.watch(x)
        slope = first.gradient(y, x)
    return second.gradient(slope, x)


def the_source_itself(x: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(x)
    return tape.gradient(x, x)


@pytest.mark.parametrize(
    ("program", "wanted"),
    [
        (target_after_the_block, 0),
        (branch_after_the_block, 0),
        (values_from_before, 9),
        (values_from_around_a_branch, 9),
        (values_from_before_they_are_watched, 9),
        (a_pause, [27, 0, 6]),
        (a_tape_that_goes_on, 162),
        (something_that_nobody_watches, [[0, 4]]),
        (a_gradient_of_a_tape_whose_block_ended, 12),
        (the_source_itself, 1),
    ],
)
def test_tapes_in_functions(eager: None, program: Program, wanted: Any) -> None:
    assert program(tf.constant(3.0)).numpy().tolist() == wanted
    assert tf.function(program)(tf.constant(3.0)).numpy().tolist() == wanted


def test_variables_that_are_not_trained_are_not_watched_in_functions(eager: None) -> None:
    trained, other = tf.Variable(2.0), tf.Variable(3.0, trainable=False)

    @tf.function
    def slopes(x: Any) -> Any:
        with tf.GradientTape() as tape:
            y = x * trained * other
        with tf.GradientTape(watch_accessed_variables=False) as chosen:
            chosen.watch(other)
            z = x * trained * other
        zero = {"unconnected_gradients": "zero"}
        return tape.gradient(y, [trained, other], **zero), chosen.gradient(z, [trained, other], **zero)

    found = slopes(tf.constant(3.0))
    assert [[g.numpy() for g in row] for row in found] == [[9, 0], [0, 6]]
