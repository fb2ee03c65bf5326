"""Products that leave a loop to be one before it: what results are, and which loops stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import timberframe as tf

from .loop_passes import assert_rewritten, runs, small, whole_numbers

STEPS, DEPTH, UNITS = 6, 3, 5

assert_hoisted = partial(assert_rewritten, "hoist", 1)
assert_left = partial(assert_rewritten, "hoist", 0)


def network(
    x: Any,
    step: Callable[..., Any],
    index: Callable[[Any], Any] = lambda t: t,
    goes_on: Callable[..., Any] | None = None,
) -> Any:
    """Returns the states after all steps over x [time, batch, depth], from a state of zeros;
    step(input, state) gives one.
    """
    steps, batch = int(x.shape[0]), int(x.shape[1])
    rows = tf.TensorArray(tf.float32, steps).unstack(x)
    states = tf.TensorArray(tf.float32, steps, element_shape=[batch, UNITS])

    def body(t: Any, h: Any, states: Any) -> Any:
        h = step(rows.read(index(t)), h)
        return t + 1, h, states.write(t, h)

    def condition(t: Any, h: Any, _: Any) -> Any:
        return t < steps if goes_on is None else goes_on(t, h)

    return tf.while_loop(condition, body, [0, tf.zeros([batch, UNITS]), states])[2].stack()


def beside(weights: Any) -> Callable[..., Any]:
    """Returns a step that multiplies its input beside the state."""
    return lambda now, h: small(tf.matmul(tf.concat([now, h], 1), weights))


@pytest.fixture(autouse=True)
def _own_graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


@pytest.fixture
def x() -> Any:
    return tf.placeholder(tf.float32, [STEPS, 1, DEPTH], name="x")


@pytest.fixture
def feeds(x: Any) -> dict[Any, np.ndarray]:
    return {x: whole_numbers(STEPS, 1, DEPTH)}


@pytest.fixture
def weights() -> Any:
    return tf.constant(whole_numbers(DEPTH + UNITS, UNITS))


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("name", ["BasicLSTMCell", "LSTMCell", "GRUCell", "BasicRNNCell"])
def test_frozen_cells_give_the_same_but_for_rounding(name: str, batch: int) -> None:
    x = tf.placeholder(tf.float32, [batch, STEPS, DEPTH])
    with tf.variable_scope("cells", initializer=tf.random_uniform_initializer(-1, 1, seed=3)):
        y, _ = tf.nn.dynamic_rnn(getattr(tf.nn.rnn_cell, name)(UNITS), x, dtype=tf.float32)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        frozen = tf.graph_util.convert_variables_to_constants(session, session.graph.as_graph_def(), [y.op.name])
    with tf.Graph().as_default():
        x, y = tf.import_graph_def(frozen, return_elements=[x.name, y.name])
        before, after, rewritten = runs("hoist", y, {x: np.random.default_rng(1).normal(size=(batch, STEPS, DEPTH))})
    assert len(rewritten) == 1
    rounding = (DEPTH + UNITS + 1) * np.finfo(np.float32).eps  # of a sum; gates have slopes below 1
    np.testing.assert_allclose(after, before, rtol=0, atol=4 * STEPS * rounding)


def test_first_operand_of_a_concat_leaves_the_loop(x: Any, feeds: Any, weights: Any) -> None:
    assert_hoisted(network(x, beside(weights)), feeds)


def test_last_operand_of_a_concat_leaves_the_loop(x: Any, feeds: Any, weights: Any) -> None:
    assert_hoisted(network(x, lambda now, h: small(tf.matmul(tf.concat([h, now], -1), weights))), feeds)


def test_one_of_three_operands_leaves_the_loop(x: Any, feeds: Any) -> None:
    weights = tf.constant(whole_numbers(DEPTH + 2 * UNITS, UNITS))
    assert_rewritten(
        "hoist", 1, network(x, lambda now, h: small(tf.matmul(tf.concat([now, h, h + 1.0], 1), weights))), feeds
    )


@pytest.mark.parametrize("transposed", [False, True])
def test_product_of_the_input_alone_leaves_the_loop(x: Any, feeds: Any, transposed: bool) -> None:
    weights = tf.constant(whole_numbers(*((UNITS, DEPTH) if transposed else (DEPTH, UNITS))))
    assert_rewritten(
        "hoist", 1, network(x, lambda now, h: small(h + tf.matmul(now, weights, transpose_b=transposed))), feeds
    )


def test_bias_leaves_the_loop_with_the_product(x: Any, feeds: Any, weights: Any) -> None:
    bias = tf.constant(whole_numbers(UNITS))
    assert_hoisted(network(x, lambda now, h: small(tf.nn.bias_add(beside(weights)(now, h), bias))), feeds)
    product = lambda now, h: tf.matmul(tf.concat([now, h], 1), weights)  # noqa: E731 - one of two steps in a line each
    assert_hoisted(network(x, lambda now, h: small(tf.nn.bias_add(product(now, h), bias))), feeds)


def test_product_that_others_read_is_the_whole_product(x: Any, feeds: Any, weights: Any) -> None:
    def step(now: Any, h: Any) -> Any:
        product = tf.matmul(tf.concat([now, h], 1), weights)
        return small(tf.nn.bias_add(product, tf.constant(whole_numbers(UNITS))) + 3.0 * product)

    assert_hoisted(network(x, step), feeds)


def test_rows_from_the_last_to_the_first_leave_the_loop(x: Any, feeds: Any, weights: Any) -> None:
    assert_hoisted(network(x, beside(weights), index=lambda t: STEPS - 1 - t), feeds)


def test_rows_of_weights_of_variables_are_copied_for_many_iterations() -> None:
    steps = 128
    weights = tf.get_variable("w", initializer=whole_numbers(DEPTH + UNITS, UNITS))
    x = tf.placeholder(tf.float32, [steps, 1, DEPTH])
    assert_hoisted(network(x, beside(weights)), {x: whole_numbers(steps, 1, DEPTH)})


def test_rows_of_weights_of_variables_stay_where_copying_them_takes_longer(x: Any, feeds: Any) -> None:
    weights = tf.get_variable("w", initializer=whole_numbers(DEPTH + UNITS, UNITS))
    assert_left(network(x, beside(weights)), feeds)


def test_weights_of_variables_that_are_whole_need_no_copy(x: Any, feeds: Any) -> None:
    weights = tf.get_variable("w", initializer=whole_numbers(DEPTH, UNITS))
    assert_hoisted(network(x, lambda now, h: small(h + tf.matmul(now, weights))), feeds)


def test_results_have_the_same_bits_in_every_run(x: Any, weights: Any) -> None:
    y = network(x, lambda now, h: tf.tanh(tf.matmul(tf.concat([now, h], 1), weights)))
    value = np.random.default_rng(2).normal(size=(STEPS, 1, DEPTH))
    found = set()
    for _ in range(2):
        with tf.Session() as session:
            found.update(session.run(y, {x: value}).tobytes() for _ in range(3))
    assert len(found) == 1


def test_number_that_is_no_number_stays_in_its_step(x: Any, feeds: Any, weights: Any) -> None:
    feeds[x][3] = np.nan
    _, y, _ = runs("hoist", network(x, lambda now, h: small(tf.matmul(now, weights[:DEPTH]))), feeds)
    assert np.isnan(y).any((1, 2)).tolist() == [False, False, False, True, False, False]


def test_lengths_of_rows_are_kept() -> None:
    x = tf.placeholder(tf.float32, [2, STEPS, DEPTH])
    cell = tf.nn.rnn_cell.BasicRNNCell(UNITS)
    y, last = tf.nn.dynamic_rnn(cell, x, [2, 4], dtype=tf.float32)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        outputs, state = session.run([y, last], {x: np.ones((2, STEPS, DEPTH))})
    assert not outputs[0, 2:].any()
    assert not outputs[1, 4:].any()
    np.testing.assert_array_equal(state, [outputs[0, 1], outputs[1, 3]])


def test_products_of_more_rows_stay(weights: Any) -> None:
    x = tf.placeholder(tf.float32, [STEPS, 8, DEPTH])
    assert_left(network(x, beside(weights)), {x: whole_numbers(STEPS, 8, DEPTH)})


def test_products_that_would_take_much_memory_stay(
    x: Any, feeds: Any, weights: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timberframe_ops.passes.hoist._LARGEST_PRODUCT", 4 * STEPS * UNITS - 1)
    assert_left(network(x, beside(weights)), feeds)


def test_loop_that_a_value_ends_stays(x: Any, feeds: Any, weights: Any) -> None:
    goes_on = lambda t, h: tf.logical_and(t < STEPS, tf.reduce_sum(h) < 6.0)  # noqa: E731 - a condition
    assert_left(network(x, beside(weights), goes_on=goes_on), feeds)


@pytest.mark.parametrize("index", [lambda t: t // 2, lambda t: 0 * t, lambda t: tf.minimum(t, 2)])
def test_rows_that_are_read_again_stay(x: Any, feeds: Any, weights: Any, index: Callable[[Any], Any]) -> None:
    assert_left(network(x, beside(weights), index=index), feeds)


def test_loop_that_leaves_rows_out_stays(x: Any, feeds: Any, weights: Any) -> None:
    feeds[x][-1] = np.nan
    assert_left(network(x, beside(weights), goes_on=lambda t, h: t < STEPS - 1), feeds)


def test_loop_of_no_iterations_gives_no_rows(weights: Any) -> None:
    x = tf.placeholder(tf.float32, [None, 1, DEPTH])
    cells = tf.nn.rnn_cell.BasicRNNCell(UNITS)
    y, last = tf.nn.dynamic_rnn(cells, x, dtype=tf.float32, time_major=True)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found, state = session.run([y, last], {x: np.zeros((0, 1, DEPTH))})
    assert found.shape == (0, 1, UNITS)
    assert not state.any()


def test_rows_that_the_loop_writes_stay(feeds: Any, x: Any, weights: Any) -> None:
    rows = tf.TensorArray(tf.float32, STEPS, clear_after_read=False).unstack(x)

    def body(t: Any, h: Any, rows: Any) -> Any:
        now = rows.read(t)
        return t + 1, beside(weights)(now, h), rows.write(tf.minimum(t + 1, STEPS - 1), small(now + 1.0))

    assert_rewritten(
        "hoist", 0, tf.while_loop(lambda t, *_: t < STEPS, body, [0, tf.zeros([1, UNITS]), rows])[1], feeds
    )


def test_weights_that_iterations_change_stay(x: Any, feeds: Any) -> None:
    rows = tf.TensorArray(tf.float32, STEPS).unstack(x)

    def body(t: Any, h: Any, w: Any) -> Any:
        return t + 1, small(h + tf.matmul(rows.read(t), w)), small(w + 1.0)

    start = [0, tf.zeros([1, UNITS]), tf.constant(whole_numbers(DEPTH, UNITS))]
    assert_left(tf.while_loop(lambda t, *_: t < STEPS, body, start)[1], feeds)


def test_loop_within_a_loop_is_rewritten(x: Any, feeds: Any, weights: Any) -> None:
    def body(i: Any, total: Any) -> Any:
        return i + 1, small(total + network(x, beside(weights)))

    y = tf.while_loop(lambda i, _: i < 3, body, [0, tf.zeros([STEPS, 1, UNITS])])[1]
    assert_hoisted(y, feeds)


def test_what_two_loops_hand_on_leaves_both(x: Any, feeds: Any, weights: Any) -> None:
    upper = tf.constant(whole_numbers(2 * UNITS, UNITS))
    y = network(network(x, beside(weights)), beside(upper))
    before, after, rewritten = runs("hoist", y, feeds)
    np.testing.assert_array_equal(after, before)
    assert len(rewritten) == 2


def test_device_without_a_kernel_leaves_the_loop(
    x: Any, feeds: Any, weights: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    y = network(x, beside(weights))
    monkeypatch.setattr("timberframe_ops.passes.loop_rewriter.refused", lambda _: "none of its kernels fits")
    with tf.Session() as session:
        report = session.explain(y, feeds)
    assert report.rewritten("hoist") == ()
    assert [why for p in report.passes if p.name == "hoist" for _, why in p.declined] == [
        "Reshape: none of its kernels fits"
    ]
