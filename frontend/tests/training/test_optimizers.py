"""Optimizers against the formulas in NumPy, and what they do with bad input."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_ops.training import rules

pytestmark = pytest.mark.usefixtures("graph")

Array = np.ndarray
STEPS = 5


def zeros(x: Array) -> Array:
    return np.zeros_like(x)


def adam(states: list[Array], grad: Array, step: int) -> tuple[Array, ...]:
    b1, b2 = np.float32(0.9), np.float32(0.999)
    numbers = b1 ** (step + 1), b2 ** (step + 1), 0.01, b1, b2, 1e-8
    return rules.adam({"use_nesterov": False}, *states, *numbers, grad)


# For each optimizer: itself, its slots' names and first values, and a step in NumPy.
Rule = Callable[[list[Array], Array, int], tuple[Array, ...]]
CASES: dict[str, tuple[Callable[[], Any], dict[str, Callable[[Array], Array]], Rule]] = {
    "descent": (
        lambda: tf.train.GradientDescentOptimizer(0.01),
        {},
        lambda s, g, _: rules.gradient_descent({}, *s, 0.01, g),
    ),
    "momentum": (
        lambda: tf.train.MomentumOptimizer(0.01, 0.9),
        {"momentum": zeros},
        lambda s, g, _: rules.momentum({"use_nesterov": False}, *s, 0.01, g, 0.9),
    ),
    "nesterov": (
        lambda: tf.train.MomentumOptimizer(0.01, 0.9, use_nesterov=True),
        {"momentum": zeros},
        lambda s, g, _: rules.momentum({"use_nesterov": True}, *s, 0.01, g, 0.9),
    ),
    "adagrad": (
        lambda: tf.train.AdagradOptimizer(0.1, 0.2),
        {"accumulator": lambda x: np.full_like(x, 0.2)},
        lambda s, g, _: rules.adagrad({"update_slots": True}, *s, 0.1, g),
    ),
    "dual averaging": (
        lambda: tf.train.AdagradDAOptimizer(0.1, 4, 0.2, 0.01, 0.02),
        {"gradient_accumulator": zeros, "gradient_squared_accumulator": lambda x: np.full_like(x, 0.2)},
        lambda s, g, _: rules.adagrad_da({}, *s, g, 0.1, 0.01, 0.02, 5),
    ),
    "proximal descent": (
        lambda: tf.train.ProximalGradientDescentOptimizer(0.1, 0.2, 0.3),
        {},
        lambda s, g, _: rules.proximal_gradient_descent({}, *s, 0.1, 0.2, 0.3, g),
    ),
    "proximal adagrad": (
        lambda: tf.train.ProximalAdagradOptimizer(0.1, 0.2, 0.3, 0.4),
        {"accumulator": lambda x: np.full_like(x, 0.2)},
        lambda s, g, _: rules.proximal_adagrad({}, *s, 0.1, 0.3, 0.4, g),
    ),
    "adadelta": (
        lambda: tf.train.AdadeltaOptimizer(0.5, 0.9, 1e-3),
        {"accum": zeros, "accum_update": zeros},
        lambda s, g, _: rules.adadelta({}, *s, 0.5, 0.9, 1e-3, g),
    ),
    "rmsprop": (
        lambda: tf.train.RMSPropOptimizer(0.01, 0.8, 0.5, 1e-3),
        {"rms": np.ones_like, "momentum": zeros},
        lambda s, g, _: rules.rmsprop({}, *s, 0.01, 0.8, 0.5, 1e-3, g),
    ),
    "centered": (
        lambda: tf.train.RMSPropOptimizer(0.01, 0.8, 0.5, 1e-3, centered=True),
        {"mg": zeros, "rms": np.ones_like, "momentum": zeros},
        lambda s, g, _: rules.centered_rmsprop({}, *s, 0.01, 0.8, 0.5, 1e-3, g),
    ),
    "adam": (lambda: tf.train.AdamOptimizer(0.01), {"m": zeros, "v": zeros}, adam),
    "ftrl": (
        lambda: tf.train.FtrlOptimizer(0.1, -0.4, 0.3, 0.01, 0.02),
        {"accum": lambda x: np.full_like(x, 0.3), "linear": zeros},
        lambda s, g, _: rules.ftrl({"multiply_linear_by_lr": False}, *s, g, 0.1, 0.01, 0.02, -0.4),
    ),
    "ftrl_shrinkage": (
        lambda: tf.train.FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=0.1),
        {"accum": lambda x: np.full_like(x, 0.1), "linear": zeros},
        lambda s, g, _: rules.ftrl_v2({"multiply_linear_by_lr": False}, *s, g, 0.1, 0.0, 0.0, 0.1, -0.5),
    ),
}

ALL_ROWS = {"adam"}  # slots of rows without a gradient change, too, and with them the variable


def test_the_guide_names_every_optimizer() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "use.md").read_text()
    ours = [name.removesuffix("Optimizer") for name in dir(tf.train) if name.endswith("Optimizer")]
    assert [name for name in ours if name and not re.search(rf"\b{name}\b", guide)] == []


@pytest.mark.parametrize("name", CASES)
def test_five_steps_follow_the_formula(name: str) -> None:
    make, slots, rule = CASES[name]
    rng = np.random.default_rng(0)
    start, grads = rng.normal(size=(3, 4)), rng.normal(size=(STEPS, 3, 4))
    variable, gradient = tf.Variable(start, name="w"), tf.placeholder(tf.float64, [3, 4])
    optimizer = make()
    step = optimizer.apply_gradients([(gradient, variable)])
    states = [start, *(first(start) for first in slots.values())]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for i, g in enumerate(grads):
            session.run(step, {gradient: g})
            states = list(rule(states, g, i))
        kept = [optimizer.get_slot(variable, n) for n in slots]
        found = session.run([variable, *kept])
    # Numbers given in Python are float32 in the graph: 6e-8 from those here, over five steps.
    for want, got in zip(states, found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7)
    assert optimizer.get_slot_names() == sorted(slots)


@pytest.mark.parametrize("name", CASES)
def test_a_loss_falls(name: str) -> None:
    x = tf.Variable(np.linspace(-2, 2, 7, dtype=np.float32))
    loss = tf.reduce_sum(tf.square(x - 0.5))
    step = CASES[name][0]().minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first = session.run(loss)
        for _ in range(30):
            session.run(step)
        assert session.run(loss) < first


def rows_step(optimizer: Any, rows: list[int], values: Array, dense: bool) -> tuple[Array, list[Array]]:
    """Returns the variable and the slots after two steps with a gradient of some rows."""
    with tf.Graph().as_default() as graph:
        variable = tf.Variable(np.arange(12.0, dtype=np.float32).reshape(4, 3) / 10)
        gradient: Any = tf.IndexedSlices(tf.constant(values), tf.constant(rows), tf.constant([4, 3]))
        if dense:
            gradient = tf.convert_to_tensor(gradient)
        step = optimizer.apply_gradients([(gradient, variable)])
        with tf.Session(graph=graph) as session:
            session.run(tf.global_variables_initializer())
            session.run(step)
            session.run(step)
            slots = [optimizer.get_slot(variable, n) for n in optimizer.get_slot_names()]
            return session.run(variable), session.run(slots)


@pytest.mark.parametrize("name", CASES)
def test_rows_that_are_named_twice_change_as_by_the_sum_of_their_gradients(name: str) -> None:
    values = np.random.default_rng(1).normal(size=(3, 3)).astype(np.float32)
    sparse, _ = rows_step(CASES[name][0](), [2, 0, 2], values, dense=False)
    dense, _ = rows_step(CASES[name][0](), [2, 0, 2], values, dense=True)
    named = [0, 2]
    # Sums of two float32 in either order, and the sparse forms of the rules: a few roundings.
    np.testing.assert_allclose(sparse[named], dense[named], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", sorted(set(CASES) - ALL_ROWS))
def test_rows_without_a_gradient_stay(name: str) -> None:
    variable, _ = rows_step(CASES[name][0](), [1], np.ones((1, 3), np.float32), dense=False)
    start = np.arange(12.0, dtype=np.float32).reshape(4, 3) / 10
    np.testing.assert_array_equal(variable[[0, 2, 3]], start[[0, 2, 3]])


def test_a_lookup_trains_its_table() -> None:
    table = tf.Variable(np.ones((5, 2), np.float32))
    loss = tf.reduce_sum(tf.gather(table, [3, 1, 3]))
    step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        np.testing.assert_array_equal(session.run(table)[:, 0], [1, 0.5, 1, 0, 1])


@pytest.mark.parametrize("rate", [0.5, lambda: 0.5, lambda: tf.constant(0.5)])
def test_a_learning_rate_may_be_a_number_or_a_function(rate: Any) -> None:
    x = tf.Variable(1.0)
    step = tf.train.GradientDescentOptimizer(rate).minimize(3.0 * x)
    with tf.Session() as session:
        session.run(x.initializer)
        session.run(step)
        assert session.run(x) == -0.5


def test_a_learning_rate_may_be_fed() -> None:
    x, rate = tf.Variable(1.0), tf.placeholder(tf.float32, [])
    step = tf.train.MomentumOptimizer(rate, 0.0).minimize(x)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step, {rate: 0.25})
        session.run(step, {rate: 0.5})
        assert session.run(x) == 0.25


def test_the_global_step_counts_updates_that_are_done() -> None:
    x, count = tf.Variable(1.0), tf.train.get_or_create_global_step()
    step = tf.train.AdamOptimizer().minimize(x, global_step=count)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(step)
        assert tf.train.global_step(session, count) == 3


def test_slots_are_named_after_variable_and_optimizer() -> None:
    with tf.variable_scope("layer"):
        x = tf.get_variable("w", initializer=1.0)
    for _ in range(2):
        tf.train.AdamOptimizer().minimize(x)
    names = [v.op.name for v in tf.global_variables() if "Adam" in v.op.name]
    assert names == ["layer/w/Adam", "layer/w/Adam_1", "layer/w/Adam_2", "layer/w/Adam_3"]


def test_slots_are_not_trained() -> None:
    x = tf.Variable(1.0)
    tf.train.AdamOptimizer().minimize(x)
    assert tf.trainable_variables() == [x]


def test_a_constraint_holds_after_each_update() -> None:
    x = tf.Variable([1.0, -1.0], constraint=lambda v: tf.clip_by_value(v, 0.0, 0.75))
    step = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(x))
    with tf.Session() as session:
        session.run(x.initializer)
        session.run(step)
        np.testing.assert_array_equal(session.run(x), np.float32([0.75, 0.0]))


def test_gradients_may_be_changed_before_they_are_applied() -> None:
    x, y = tf.Variable(3.0), tf.Variable(4.0)
    optimizer = tf.train.GradientDescentOptimizer(1.0)
    pairs = optimizer.compute_gradients(0.5 * (x * x + y * y), gate_gradients=optimizer.GATE_GRAPH)
    clipped, norm = tf.clip_by_global_norm([g for g, _ in pairs], 1.0)
    step = optimizer.apply_gradients(zip(clipped, [v for _, v in pairs], strict=True))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run([norm, step])[0] == 5.0
        np.testing.assert_allclose(session.run([x, y]), [2.4, 3.2], rtol=1e-6)


def test_a_gradient_to_begin_with_scales_the_step() -> None:
    x = tf.Variable(1.0)
    step = tf.train.GradientDescentOptimizer(1.0).minimize(x, grad_loss=tf.constant(0.25))
    with tf.Session() as session:
        session.run(x.initializer)
        session.run(step)
        assert session.run(x) == 0.75


def test_a_loss_without_gradients_is_refused() -> None:
    x = tf.Variable(1.0)
    with pytest.raises(ValueError, match=r"no gradient for any of the variables Variable:0"):
        tf.train.GradientDescentOptimizer(1.0).minimize(tf.constant(1.0), var_list=[x])


def test_ops_that_stop_the_gradient_of_a_loss_are_named() -> None:
    x = tf.Variable([1.0, 2.0])
    loss = tf.cast(tf.argmax(x * 2.0, name="best"), tf.float32) + tf.reduce_sum(tf.stop_gradient(x, name="still"))
    message = r"gradients stop at (?=.*ArgMax 'best': \w+)(?=.*StopGradient 'still': it exists to stop gradients)"
    with pytest.raises(ValueError, match=message):
        tf.train.GradientDescentOptimizer(1.0).minimize(loss)


def test_all_ops_of_an_accuracy_that_stop_its_gradient_are_named() -> None:
    x = tf.Variable([1.0, 2.0])
    loss = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(x, name="best"), 0, name="hit"), tf.float32))
    with pytest.raises(ValueError, match=r"gradients stop at Equal 'hit': .*, ArgMax 'best': "):
        tf.train.GradientDescentOptimizer(1.0).minimize(loss)


def test_a_cast_that_stops_the_gradient_of_a_loss_is_named() -> None:
    x = tf.Variable(1.0)
    loss = tf.cast(tf.cast(x, tf.int32, name="whole"), tf.float32)
    with pytest.raises(ValueError, match=r"gradients stop at Cast 'whole': its result is int32\)"):
        tf.train.GradientDescentOptimizer(1.0).minimize(loss)


def test_a_graph_without_variables_is_refused() -> None:
    with pytest.raises(ValueError, match="no variables to optimize"):
        tf.train.GradientDescentOptimizer(1.0).minimize(tf.constant(1.0))


def test_a_gradient_of_another_shape_is_refused() -> None:
    x = tf.Variable([1.0, 2.0], name="x")
    with pytest.raises(ValueError, match=r"gradient of variable 'x:0' has shape \(3,\); .* variable's, \(2,\)"):
        tf.train.AdamOptimizer().apply_gradients([(tf.constant([1.0, 2.0, 3.0]), x)])


def test_a_variable_of_another_graph_is_refused() -> None:
    with tf.Graph().as_default():
        other = tf.Variable(1.0, name="other")
    with pytest.raises(ValueError, match="'other:0' belongs to another graph"):
        tf.train.AdamOptimizer().apply_gradients([(tf.constant(1.0), other)])


def test_an_integer_variable_is_refused() -> None:
    x = tf.Variable(1, name="count")
    with pytest.raises(ValueError, match="'count:0' has dtype int32"):
        tf.train.AdamOptimizer().apply_gradients([(tf.constant(1), x)])


def test_an_integer_variable_without_a_gradient_is_passed_over() -> None:
    """Programs give all variables of a graph, the count of steps among them."""
    x, count = tf.Variable(3.0), tf.Variable(0, trainable=False)
    optimizer = tf.train.GradientDescentOptimizer(0.5)
    pairs = optimizer.compute_gradients(x * x, [x, count])
    assert [gradient is None for gradient, _ in pairs] == [False, True]
    step = optimizer.apply_gradients(pairs, global_step=count)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        assert session.run([x, count]) == [0.0, 1]


def test_a_slot_without_a_value_is_named() -> None:
    x = tf.Variable(1.0, name="x")
    step = tf.train.MomentumOptimizer(1.0, 0.9).minimize(x)
    with tf.Session() as session:
        session.run(x.initializer)
        with pytest.raises(tf.errors.FailedPreconditionError, match="x/Momentum"):
            session.run(step)


def test_a_row_out_of_range_changes_nothing() -> None:
    table = tf.Variable(np.ones((3, 2), np.float32), name="table")
    rows = tf.placeholder(tf.int32, [None])
    gradient = tf.IndexedSlices(tf.ones([2, 2]), rows, tf.constant([3, 2]))
    optimizer = tf.train.AdagradOptimizer(0.5)
    step = optimizer.apply_gradients([(gradient, table)])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"index 3 at position 1 is outside \[0, 3\)"):
            session.run(step, {rows: [0, 3]})
        np.testing.assert_array_equal(session.run(table), np.ones((3, 2)))
        np.testing.assert_array_equal(session.run(optimizer.get_slot(table, "accumulator")), np.full((3, 2), 0.1, "f"))


def test_a_step_that_fails_elsewhere_changes_nothing() -> None:
    x, rows = tf.Variable([1.0, 2.0]), tf.placeholder(tf.int32, [])
    step = tf.train.MomentumOptimizer(0.5, 0.9).minimize(tf.reduce_sum(x))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run([step, tf.gather(x, rows)], {rows: 2})
        np.testing.assert_array_equal(session.run(x), [1.0, 2.0])


def test_slots_live_with_their_variables() -> None:
    config = tf.SessionConfig(device_count={tf.Session().list_devices()[0].type: 2})
    with tf.Session(config=config) as session:
        spec = session.list_devices()[1].spec
        with tf.device(spec):
            x = tf.Variable([1.0, 2.0])
        step = tf.train.AdamOptimizer(0.5).minimize(tf.reduce_sum(tf.square(x)))
        session.run(tf.global_variables_initializer())
        session.run(step)
        devices = {p.node: p.device for p in session.explain(step).placements}
        assert devices["Variable/Adam"] == devices["Adam/update_Variable/ResourceApplyAdam"] == spec


def test_powers_of_adams_betas_are_found_by_the_method_that_programs_call() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        optimizer = tf.train.AdamOptimizer(beta1=0.5, beta2=0.25)
        step = optimizer.minimize(tf.Variable(1.0))
        session.run(tf.global_variables_initializer())
        session.run(step)
        assert session.run(optimizer._get_beta_accumulators()) == (0.25, 0.0625)


@pytest.mark.parametrize("name", [n for n in dir(tf.train) if n.endswith("Optimizer") and n != "Optimizer"])
def test_optimizers_derive_from_optimizer_itself(name: str) -> None:
    assert getattr(tf.train, name).__base__ is tf.train.Optimizer  # GPflow refuses others


def test_minimize_calls_methods_of_a_subclass_by_names() -> None:
    class Clipped(tf.train.AdamOptimizer):
        def compute_gradients(self, loss: Any, var_list: Any = None, **others: Any) -> Any:
            pairs = super().compute_gradients(loss, var_list, **others)
            return [(tf.clip_by_value(g, -1.0, 1.0), v) for g, v in pairs]

        def apply_gradients(self, grads_and_vars: Any, *, name: Any = None, global_step: Any = None) -> Any:
            return super().apply_gradients(grads_and_vars, global_step, name or "clipped")

    v = tf.Variable(1.0)
    assert Clipped(0.1).minimize(v * 100.0, tf.train.get_or_create_global_step()).name.startswith("clipped")


@pytest.mark.parametrize("base", [tf.train.Optimizer, tf.train.AdamOptimizer])
def test_a_subclass_may_define_the_methods_for_references(base: Any) -> None:
    class Signs(base):  # type: ignore[misc]  # a class of the case
        def __init__(self) -> None:
            tf.train.Optimizer.__init__(self, False, "Signs")

        def _prepare(self) -> None:
            pass

        def _create_slots(self, var_list: Any) -> None:
            for v in var_list:
                self._zeros_slot(v, "count", self._name)

        def _finish(self, update_ops: Any, name_scope: str) -> Any:
            return tf.group(*update_ops, name=name_scope)

        def _apply_dense(self, grad: Any, var: Any) -> Any:
            return tf.group(tf.assign_sub(var, tf.sign(grad)), tf.assign_add(self.get_slot(var, "count"), grad))

        def _apply_sparse(self, grad: Any, var: Any) -> Any:
            return tf.scatter_sub(var, grad.indices, tf.sign(grad.values))

    v, table = tf.Variable([1.0, 2.0]), tf.Variable(np.zeros([3, 1], np.float32))
    loss = tf.reduce_sum(v * [3.0, -3.0]) + tf.reduce_sum(tf.gather(table, [1, 1]))
    step = Signs().minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        assert session.run(v).tolist() == [0, 3]
        assert session.run(table).tolist() == [[0], [-1], [0]]
