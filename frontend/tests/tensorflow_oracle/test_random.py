"""Equal seeds give TensorFlow's numbers: the same calls on both sides, over two runs of a session."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe

EXACT: dict[str, Callable[[Any], Any]] = {
    "uniform": lambda tf: tf.random_uniform([3, 5]),
    "uniform between": lambda tf: tf.random_uniform([7], -2.0, 2.0),
    "uniform float64": lambda tf: tf.random_uniform([7], dtype=tf.float64, seed=4),
    "uniform float16": lambda tf: tf.random_uniform([7], dtype=tf.float16),
    "integers": lambda tf: tf.random_uniform([30], 0, 5, tf.int32),
    "wide integers": lambda tf: tf.random.uniform([31], -4, 10**12, tf.int64),
    "shuffle": lambda tf: tf.random_shuffle(list(range(20))),
    "shuffle rows": lambda tf: tf.random.shuffle(tf.reshape(tf.range(22), [11, 2]), seed=3),
    "multinomial": lambda tf: tf.multinomial([[1.0, 2.0, 0.0]], 20),
    "categorical": lambda tf: tf.random.categorical([[1.0, 2.0], [0.0, 0.0]], 9, tf.int32),
    "poisson": lambda tf: tf.random_poisson([1.0, 20.0], [6]),
    "crop": lambda tf: tf.random_crop(tf.reshape(tf.range(60), [6, 10]), [2, 3]),
    "dropout": lambda tf: tf.nn.dropout(tf.ones([4, 3]), rate=0.5, noise_shape=[4, 1], seed=7),
    "stateless uniform": lambda tf: tf.random.stateless_uniform([5], [1, 2]),
    "stateless integers": lambda tf: tf.random.stateless_uniform([3], [1, 2], 0, 5, tf.int32),
    "stateless bits": lambda tf: tf.random.stateless_uniform([3], [1, 2], None, None, tf.int64),
    "stateless categorical": lambda tf: tf.random.stateless_categorical([[1.0, 2.0]], 3, [1, 2]),
    "stateless binomial": lambda tf: tf.random.stateless_binomial([30], [1, 2], 50.0, 0.5),
    "stateless poisson": lambda tf: tf.random.stateless_poisson([3, 2], [1, 2], [1.0, 30.0]),
}

NEAR: dict[str, Callable[[Any], Any]] = {
    "normal": lambda tf: tf.random_normal([101]),
    "normal float64": lambda tf: tf.random_normal([9], dtype=tf.float64),
    "normal float16": lambda tf: tf.random_normal([9], 1.0, 2.0, tf.float16, seed=4),
    "truncated": lambda tf: tf.truncated_normal([101], seed=4),
    "gamma": lambda tf: tf.random_gamma([4], [0.5, 2.0], [[2.0], [3.0]]),
    "stateless normal": lambda tf: tf.random.stateless_normal([9], [1, 2]),
    "stateless gamma": lambda tf: tf.random.stateless_gamma([4, 3], [1, 2], [0.5, 1.0, 2.0]),
    "bounded": lambda tf: tf.random.stateless_parameterized_truncated_normal(
        [9, 2, 3], [7, -9], [0.0, 1.0, 2.0], [[1.0], [2.0]], [-1.0, -1.0, 5.0], [1.0, 1.5, 6.0]
    ),
    "glorot": lambda tf: tf.glorot_uniform_initializer()([3, 4]),
    "he": lambda tf: tf.initializers.he_normal(2)([3, 3, 2, 4]),
    "lecun": lambda tf: tf.initializers.lecun_normal()([3, 4]),
    "unit scaling": lambda tf: tf.uniform_unit_scaling_initializer(1.4)([3, 4]),
}


def _two_runs(tf: Any, build: Callable[[Any], Any]) -> list[np.ndarray]:
    with tf.Graph().as_default():
        tf.set_random_seed(42)
        tf.random_uniform([1])  # takes the first of the graph's seeds
        x = build(tf)
        with tf.Session() as session:
            return [session.run(x) for _ in range(2)]


@pytest.mark.parametrize("case", EXACT)
def test_numbers_are_tensorflows_to_the_bit(tensorflow: Any, case: str) -> None:
    for ours, theirs in zip(_two_runs(timberframe, EXACT[case]), _two_runs(tensorflow, EXACT[case]), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("case", NEAR)
def test_normals_agree_within_their_rounding(tensorflow: Any, case: str) -> None:
    """Each side errs by 5 roundings (logarithm, root, sine, product) and one for each of up to 3 more operations."""
    for ours, theirs in zip(_two_runs(timberframe, NEAR[case]), _two_runs(tensorflow, NEAR[case]), strict=True):
        tolerance = 8 * np.finfo(theirs.dtype).eps
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def test_the_gradient_of_gamma_numbers_is_tensorflows(tensorflow: Any) -> None:
    """Both sum a hundred terms of a series or a fraction in float64, and there are 9 numbers."""

    def slope(tf: Any) -> Any:
        alpha = tf.constant([0.5, 2.0, 30.0], tf.float64)
        return tf.gradients(tf.random_gamma([9], alpha, dtype=tf.float64, seed=4), alpha)[0]

    for ours, theirs in zip(_two_runs(timberframe, slope), _two_runs(tensorflow, slope), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def _loop_and_branch(tf: Any) -> None:
    n = tf.placeholder(tf.int32, [], name="n")
    _, total = tf.while_loop(
        lambda i, a: i < n,
        lambda i, a: (i + 1, a + tf.random_uniform([3]) * tf.cast(i + 1, tf.float32)),
        [0, tf.zeros([3])],
        parallel_iterations=1,  # otherwise TensorFlow's iterations draw in any order
    )
    chosen = tf.cond(n > 2, lambda: tf.random_uniform([3]), lambda: -tf.random_uniform([3]))
    tf.identity(tf.stack([total, chosen]), name="result")


@pytest.mark.parametrize("functional", [False, True])
def test_imported_loops_and_branches_draw_tensorflows_numbers(tensorflow: Any, functional: bool) -> None:
    tf = tensorflow
    kept = tf.control_flow_v2_enabled()
    (tf.enable_control_flow_v2 if functional else tf.disable_control_flow_v2)()
    try:
        with tf.Graph().as_default() as graph:
            tf.set_random_seed(9)
            _loop_and_branch(tf)
            text = graph.as_graph_def().SerializeToString()
            with tf.Session() as session:
                theirs = [session.run("result:0", {"n:0": n}) for n in (3, 1, 5)]
    finally:
        (tf.enable_control_flow_v2 if kept else tf.disable_control_flow_v2)()
    with timberframe.Graph().as_default():
        definition = timberframe.GraphDef()
        definition.ParseFromString(text)
        timberframe.import_graph_def(definition, name="")
        with timberframe.Session() as session:
            ours = [session.run("result:0", {"n:0": n}) for n in (3, 1, 5)]
    np.testing.assert_array_equal(ours, theirs)
