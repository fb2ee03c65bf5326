"""Names that few programs use, called alike on both sides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe

RNG = np.random.default_rng(3)
X = RNG.normal(size=(2, 3, 4)).astype(np.float32)
V = RNG.normal(size=(2, 4)).astype(np.float32)


def products_of_matrices_and_vectors(tf: Any) -> list[Any]:
    made = [tf.linalg.matvec(X, V), tf.linalg.matvec(X, V[:, :3], transpose_a=True)]
    return [*made, tf.linalg.matvec(X.astype(np.complex64), V[:, :3].astype(np.complex64), adjoint_a=True)]


def normalized(tf: Any) -> list[Any]:
    return [
        y for order, axis in (("euclidean", -1), (1, 0), (np.inf, None)) for y in tf.linalg.normalize(X, order, axis)
    ]


def places_in_sequences(tf: Any) -> list[Any]:
    rows, values = np.sort(RNG.integers(0, 5, (2, 6)), 1), RNG.integers(-1, 7, (2, 4))
    made = [tf.searchsorted(rows, values, side) for side in ("left", "right")]
    return [*made, tf.searchsorted(rows[0], values[0], out_type=tf.int64)]


def repeated(tf: Any) -> list[Any]:
    made = [tf.repeat(X, 2), tf.repeat(X, [1, 0, 3], 1), tf.repeat(X, 3, -1), tf.repeat(["a", "b"], [2, 1])]
    return [*made, tf.repeat(5, 3)]


def rates(tf: Any) -> list[Any]:
    tf.set_random_seed(3)
    noisy = [tf.train.noisy_linear_cosine_decay(0.1, step, 10, 0.5, 0.6) for step in (0, 3, 12)]
    return noisy + [
        tf.train.linear_cosine_decay(0.1, step, 10, periods) for step in (0, 3, 10, 12) for periods in (0.5, 2.0)
    ]


def after_steps(tf: Any, optimizer: Any) -> list[Any]:
    v = tf.get_variable("v", initializer=X[0], use_resource=True)
    rows = tf.get_variable("rows", initializer=X[1], use_resource=True)
    loss = tf.reduce_sum(v**2 * X[1]) + tf.reduce_sum(tf.nn.embedding_lookup(rows, [0, 2, 0]) ** 2)
    with tf.control_dependencies([tf.global_variables_initializer()]):
        first = optimizer.minimize(loss)
    with tf.control_dependencies([first]):
        second = tf.group(tf.no_op())
    with tf.control_dependencies([second]):
        return [v.read_value(), rows.read_value()]


def proximal_descent(tf: Any) -> list[Any]:
    return after_steps(tf, tf.train.ProximalGradientDescentOptimizer(0.1, 0.3, 0.2))


def proximal_adagrad(tf: Any) -> list[Any]:
    return after_steps(tf, tf.train.ProximalAdagradOptimizer(0.1, 0.2, 0.3, 0.2))


def dual_averaging(tf: Any) -> list[Any]:
    step = tf.constant(4, tf.int64)
    return after_steps(tf, tf.train.AdagradDAOptimizer(0.1, step, 0.2, 0.01, 0.02))


BUILDS = (
    dual_averaging, normalized, places_in_sequences, products_of_matrices_and_vectors, proximal_adagrad,
    proximal_descent, rates, repeated,
)  # fmt: skip


def run(tf: Any, build: Callable[[Any], list[Any]]) -> list[Any]:
    with tf.Graph().as_default(), tf.Session() as session:
        made = build(tf)
        session.run(tf.global_variables_initializer())
        found: list[Any] = session.run(made)
        return found


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.__name__)
def test_values_are_tensorflows(build: Callable[[Any], list[Any]], tensorflow: Any) -> None:
    state = RNG.bit_generator.state
    expected = run(tensorflow, build)
    RNG.bit_generator.state = state
    for i, (got, want) in enumerate(zip(run(timberframe, build), expected, strict=True)):
        got, want = np.asarray(got), np.asarray(want)
        assert (got.dtype, got.shape) == (want.dtype, want.shape), f"result {i}"
        if want.dtype.kind in "fc":
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6, err_msg=f"result {i}")
        else:
            np.testing.assert_array_equal(got, want, f"result {i}")


def test_codes_of_errors_are_tensorflows(tensorflow: Any) -> None:
    names = [n for n in dir(tensorflow.errors) if n.isupper()]
    assert len(names) == 17
    for name in names:
        code = getattr(tensorflow.errors, name)
        assert getattr(timberframe.errors, name) == code
        if code:
            theirs = tensorflow.errors.exception_type_from_error_code(code)
            ours = timberframe.errors.exception_type_from_error_code(code)
            assert ours.__name__ == theirs.__name__
            assert timberframe.errors.error_code_from_exception_type(ours) == code


def test_signatures_of_models_are_tensorflows(tensorflow: Any) -> None:
    made = []
    for tf in (tensorflow, timberframe):
        with tf.Graph().as_default():
            examples = tf.placeholder(tf.string, [None], "examples")
            classes, scores = tf.placeholder(tf.string, [None, 2], "c"), tf.placeholder(tf.float32, [None, 2], "s")
            model = tf.saved_model
            both = (
                model.classification_signature_def(examples, classes, scores),
                model.signature_def_utils.regression_signature_def(examples, scores),
            )
            made.append([b.SerializeToString(deterministic=True) for b in both])
            with pytest.raises(ValueError, match="must be"):
                model.regression_signature_def(examples, tf.placeholder(tf.int32))
            constants = [n for n in dir(model.signature_constants) if n.isupper()]
            made[-1].append({n: getattr(model.signature_constants, n) for n in constants if "KEY" not in n})
    assert made[0] == made[1]
