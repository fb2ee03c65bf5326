"""tf.function: when it is traced, what its calls compute, and how they are differentiated."""

from __future__ import annotations

import gc
import sys
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import timberframe as tf


class Traced:
    """A function that counts its traces."""

    def __init__(self, function: Any, **options: Any) -> None:
        self.traces = 0

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.traces += 1
            return function(*args, **kwargs)

        self.call = tf.function(counted, **options)


def test_a_call_computes_what_the_python_function_does() -> None:
    f = tf.function(lambda x, y: x * y + 1.0)
    assert f(tf.constant([1.0, 2.0]), tf.constant(3.0)).numpy().tolist() == [4, 7]


def test_a_call_gives_the_structure_of_the_result() -> None:
    f = tf.function(lambda x: {"twice": x * 2, "rest": (x, None, 5)})
    found = f(tf.constant(1))
    assert int(found["twice"]) == 2
    assert [found["rest"][1], int(found["rest"][2])] == [None, 5]


def test_it_is_traced_once_for_equal_shapes_and_dtypes() -> None:
    f = Traced(lambda x: x + 1)
    for value in ([1.0, 2.0], [3.0, 4.0]):
        f.call(tf.constant(value))
    f.call(np.array([5.0, 6.0], np.float32))
    assert f.traces == 1


@pytest.mark.parametrize("other", [[1.0, 2.0, 3.0], [1, 2], [[1.0, 2.0]]])
def test_it_is_traced_again_for_another_shape_or_dtype(other: Any) -> None:
    f = Traced(lambda x: x + x)
    f.call(tf.constant([1.0, 2.0]))
    f.call(tf.constant(other))
    assert f.traces == 2


def test_it_is_traced_again_for_other_values_of_python_arguments() -> None:
    f = Traced(lambda x, n: x * n)
    found = [float(f.call(tf.constant(2.0), n)) for n in (2, 3, 2)]
    assert (found, f.traces) == ([4, 6, 4], 2)


def test_how_an_argument_is_given_makes_no_difference() -> None:
    traces = []

    @tf.function
    def f(x: Any, n: int = 2) -> Any:
        traces.append(n)
        return x * n

    assert [int(f(tf.constant(1))), int(f(tf.constant(1), 2)), int(f(n=2, x=tf.constant(1)))] == [2, 2, 2]
    assert traces == [2]


def test_an_input_signature_gives_one_trace() -> None:
    f = Traced(lambda x: tf.reduce_sum(x), input_signature=[tf.TensorSpec([None], tf.float32)])
    assert [float(f.call(v)) for v in ([1.0], [1.0, 2.0], tf.constant([3.0]))] == [1, 3, 3]
    assert f.traces == 1


def test_an_argument_that_does_not_suit_the_signature_is_refused() -> None:
    f = tf.function(lambda x: x, input_signature=[tf.TensorSpec([2], tf.float32)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="input_signature requires TensorSpec"):
        f(tf.constant([1.0, 2.0, 3.0]))


def test_an_argument_that_cannot_be_a_key_is_refused() -> None:
    with pytest.raises(TypeError, match="key of a dict"):
        tf.function(lambda x: x)({1, 2})


def test_python_runs_only_while_it_is_traced() -> None:
    seen: list[bool] = []

    @tf.function
    def f(x: Any) -> Any:
        seen.append(tf.executing_eagerly())
        return x

    f(tf.constant(1))
    f(tf.constant(1))
    assert seen == [False]


def test_captured_tensors_keep_their_value() -> None:
    bias = tf.constant(10.0)
    assert float(tf.function(lambda x: x + bias)(tf.constant(1.0))) == 11


def test_variables_are_read_in_each_call() -> None:
    v = tf.Variable(1.0)
    f = tf.function(lambda: v + 1.0)
    first = float(f())
    v.assign(5.0)
    assert (first, float(f())) == (2, 6)


def test_assignments_happen_in_each_call_in_order() -> None:
    v = tf.Variable(1.0)

    @tf.function
    def f() -> Any:
        v.assign_add(1.0)
        before = v.read_value()
        v.assign(before * 10.0)
        return before

    assert [float(f()), float(v), float(f()), float(v)] == [2, 20, 21, 210]


def test_a_variable_is_made_in_the_first_call() -> None:
    class Counter:
        v: Any = None

        @tf.function
        def step(self) -> Any:
            if self.v is None:
                self.v = tf.Variable(0)
            return self.v.assign_add(1)

    counter, other = Counter(), Counter()
    assert [int(counter.step()), int(counter.step()), int(other.step())] == [1, 2, 1]


def test_methods_of_objects_without_a_hash_are_functions() -> None:
    @dataclass
    class Model:
        factor: float

        @tf.function
        def scaled(self, x: Any) -> Any:
            return x * self.factor

    models = [Model(2.0), Model(3.0)]
    assert [float(m.scaled(tf.constant(1.0))) for m in models * 2] == [2, 3, 2, 3]


def test_a_variable_in_a_later_call_is_refused() -> None:
    f = tf.function(lambda x: tf.Variable(1.0) * x)
    f(tf.constant(1.0))
    with pytest.raises(ValueError, match="in another call than the first"):
        f(tf.constant([1.0]))


def test_a_layer_makes_its_variables_in_the_first_call() -> None:
    layer = tf.layers.Dense(3)
    f = tf.function(lambda x: layer(x))
    x = tf.ones([2, 4])
    np.testing.assert_allclose(f(x).numpy(), layer(x).numpy(), rtol=1e-6)


def test_python_control_flow_on_tensors_names_what_to_use() -> None:
    def f(x: Any) -> Any:
        return x if x > 0 else -x

    with pytest.raises(TypeError, match=r"tf\.cond, tf\.while_loop"):
        tf.function(f)(tf.constant(1.0))


def test_cond_and_while_loop_run_in_the_graph() -> None:
    @tf.function
    def f(x: Any) -> Any:
        y = tf.cond(x > 0.0, lambda: x, lambda: -x)
        return tf.while_loop(lambda a: a < 100.0, lambda a: a * y, [y])

    assert [float(f(tf.constant(v))) for v in (3.0, -5.0)] == [243, 125]


def test_random_numbers_go_on_from_call_to_call() -> None:
    f = tf.function(lambda: tf.random_uniform([3], seed=1))
    assert not np.array_equal(f().numpy(), f().numpy())


def test_two_functions_draw_equal_numbers_from_equal_seeds() -> None:
    tf.set_random_seed(3)
    first, second = (tf.function(lambda: tf.random_uniform([3], seed=1))() for _ in range(2))
    np.testing.assert_array_equal(first.numpy(), second.numpy())


def test_a_function_called_in_another_becomes_part_of_it() -> None:
    inner = tf.function(lambda x: x * 2)
    assert int(tf.function(lambda x: inner(x) + 1)(tf.constant(3))) == 7


def test_a_function_called_in_a_graph_adds_to_it() -> None:
    f = tf.function(lambda x: x * 2)
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(f(tf.constant(3))) == 6


def test_a_concrete_function_is_the_trace() -> None:
    f = tf.function(lambda x, n: x * n)
    concrete = f.get_concrete_function(tf.TensorSpec([2], tf.float32), 3)
    assert concrete(tf.constant([1.0, 2.0])).numpy().tolist() == [3, 6]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\(2,\) is required"):
        concrete(tf.constant([1.0]))


def test_a_concrete_function_knows_its_variables() -> None:
    v, w = tf.Variable(1.0), tf.Variable(2.0, trainable=False)
    concrete = tf.function(lambda: v * w).get_concrete_function()
    assert concrete.variables == (v, w)
    assert concrete.trainable_variables == (v,)


def test_an_error_names_the_line_in_the_function() -> None:
    line = sys._getframe().f_lineno + 4

    @tf.function
    def f(x: Any, i: Any) -> Any:
        return tf.gather(x, i)

    with pytest.raises(tf.errors.InvalidArgumentError, match=f"test_functions.py:{line}"):
        f(tf.constant([1.0, 2.0]), tf.constant([5]))


def test_what_a_function_uses_goes_with_it() -> None:
    def used() -> Any:
        captured = tf.constant([1.0, 2.0])
        tf.function(lambda x: x + captured)(tf.constant(1.0))
        return weakref.ref(captured)

    gone = used()
    gc.collect()
    assert gone() is None


def test_defun_is_a_function() -> None:
    assert int(tf.contrib.eager.defun(lambda x: x + 1)(tf.constant(1))) == 2


# Gradients


def test_a_tape_differentiates_a_call() -> None:
    v = tf.Variable(3.0)
    f = tf.function(lambda x: x * x * v)
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert [float(g) for g in tape.gradient(y, [x, v])] == [12, 4]


def test_the_gradient_is_that_at_the_time_of_the_call() -> None:
    v = tf.Variable(3.0)
    f = tf.function(lambda: v * v)
    with tf.GradientTape() as tape:
        y = f()
    v.assign(100.0)
    assert float(tape.gradient(y, v)) == 6


def test_calls_have_second_derivatives() -> None:
    f = tf.function(lambda x: tf.exp(x * x))
    x = tf.constant(0.5)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        first = inner.gradient(y, x)
    np.testing.assert_allclose(outer.gradient(first, x).numpy(), np.exp(0.25) * (2 + 4 * 0.25), rtol=1e-5)


def test_calls_have_third_derivatives() -> None:
    f = tf.function(lambda x: x**4)
    x = tf.constant(2.0)
    with tf.GradientTape() as a:
        a.watch(x)
        with tf.GradientTape() as b:
            b.watch(x)
            with tf.GradientTape() as c:
                c.watch(x)
                y = f(x)
            first = c.gradient(y, x)
        second = b.gradient(first, x)
    third = a.gradient(second, x)
    np.testing.assert_allclose([first.numpy(), second.numpy(), third.numpy()], [32, 48, 48], rtol=1e-5)


CUBES: dict[str, Any] = {
    "cond": lambda x: tf.cond(x > 0.0, lambda: x * x * x, lambda: x),
    "cond in a cond": lambda x: tf.cond(x > 0.0, lambda: tf.cond(x > 1.0, lambda: x * x * x, lambda: x), lambda: x),
    "switch_case": lambda x: tf.switch_case(tf.constant(1), [lambda: x, lambda: x * x * x]),
    "cond in a loop": lambda x: tf.while_loop(
        lambda i, _: i < 2, lambda i, a: (i + 1, tf.cond(a > 0.0, lambda: a * x, lambda: a)), [0, x]
    )[1],
    "loop in a cond": lambda x: tf.cond(
        x > 0.0, lambda: tf.while_loop(lambda i, _: i < 2, lambda i, a: (i + 1, a * x), [0, x])[1], lambda: x
    ),
}


@pytest.mark.parametrize("name", CUBES)
def test_branches_in_a_call_have_higher_derivatives(name: str) -> None:
    f, x = tf.function(CUBES[name]), tf.constant(2.0, tf.float64)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape(persistent=True) as middle:
            middle.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            first = inner.gradient(y, x)
        second = middle.gradient(first, x)
    assert [float(t) for t in (y, first, second, outer.gradient(second, x))] == [8, 12, 12, 6]


def test_a_function_may_take_gradients_itself() -> None:
    v = tf.Variable(3.0)

    @tf.function
    def f(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x * v
        return tape.gradient(y, [x, v])

    assert [float(g) for g in f(tf.constant(2.0))] == [12, 4]


def test_loops_and_branches_in_a_call_are_differentiated() -> None:
    @tf.function
    def f(x: Any) -> Any:
        y = tf.cond(x > 0.0, lambda: x * x, lambda: x)
        return tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, a * y), [0, 1.0])[1]

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert (float(y), float(tape.gradient(y, x))) == (64, 192)


def test_dropout_has_the_mask_of_its_call() -> None:
    f = tf.function(lambda x: tf.nn.dropout(x, rate=0.5))
    x = tf.ones([100])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), y.numpy())


def test_lookups_in_a_call_give_indexed_slices() -> None:
    rows = tf.Variable(tf.ones([4, 2]))
    f = tf.function(lambda i: tf.reduce_sum(tf.nn.embedding_lookup(rows, i)))
    with tf.GradientTape() as tape:
        y = f(tf.constant([1, 3]))
    found = tape.gradient(y, rows)
    assert isinstance(found, tf.IndexedSlices)
    assert found.indices.numpy().tolist() == [1, 3]


def test_a_training_step_is_a_function() -> None:
    w = tf.Variable([1.0, 2.0])
    optimizer = tf.train.AdamOptimizer(0.1)

    @tf.function
    def step(target: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((w - target) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        return loss

    losses = [float(step(tf.constant([5.0, 6.0]))) for _ in range(100)]
    assert losses[-1] < 0.01 < losses[0]


def test_a_tape_in_a_function_watches_the_variables_that_its_block_reads() -> None:
    read, other, fixed = tf.Variable(3.0), tf.Variable(1.0), tf.Variable(2.0, trainable=False)

    @tf.function
    def gradients() -> Any:
        before = other * 2.0
        with tf.GradientTape() as tape:
            y = tf.while_loop(lambda i, _: i < 2, lambda i, a: (i + 1, a * read), [0, fixed * before])[1]
        return tape.gradient(y, tape.watched_variables())

    assert [float(g) for g in gradients()] == [24.0]


def test_an_optimizer_in_a_function_minimizes_by_the_variables_that_the_loss_reads() -> None:
    weights, other = tf.Variable([3.0, 4.0]), tf.Variable(1.0)
    optimizer = tf.train.AdamOptimizer(0.5)

    @tf.function
    def step() -> Any:
        optimizer.minimize(lambda: tf.reduce_sum(weights * weights))

    step()
    step()
    assert weights.numpy().tolist() == pytest.approx([2.0, 3.0], abs=0.01)
    assert (float(other), optimizer.get_slot(other, "m")) == (1.0, None)


LOOPS_WITHOUT_ROUNDS: dict[str, Any] = {
    "foldl": lambda x: tf.foldl(lambda a, b: a * tf.sin(b) + b, x),
    "map_fn": lambda x: tf.reduce_sum(tf.map_fn(lambda a: tf.sin(a) * a, x[:0])) + x[0],
    "while_loop": lambda x: tf.reduce_sum(
        tf.while_loop(lambda i, a: i < 0, lambda i, a: (i + 1, a * tf.sin(x)), [tf.constant(0), x])[1]
    ),
}


@pytest.mark.parametrize("name", LOOPS_WITHOUT_ROUNDS)
def test_a_persistent_tape_differentiates_a_loop_without_rounds(name: str) -> None:
    x = tf.constant([0.7], tf.float64)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.function(LOOPS_WITHOUT_ROUNDS[name])(x)
    assert tape.gradient(y, x).numpy().tolist() == [1.0]
