"""The functions that make, reshape, join and move tensors, as users call them."""

from typing import Any

import numpy as np
import pytest

import timberframe as tf

X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def run(fetch: Any, feeds: Any = None) -> Any:
    with tf.Session(graph=tf.get_default_graph()) as session:
        return session.run(fetch, feeds)


def test_shape_of_a_known_shape_is_a_constant() -> None:
    assert tf.shape(tf.constant(X)).op.type == "Const"


def test_shape_of_an_unknown_shape_is_found_at_run_time() -> None:
    x = tf.placeholder(tf.float32, [None, None])
    assert run([tf.shape(x, out_type=tf.int64), tf.size(x), tf.rank(x)], {x: X})[0].tolist() == [3, 4]


def test_reshape_by_a_computed_shape() -> None:
    x = tf.placeholder(tf.float32, [None, None])
    y = tf.reshape(x, [tf.shape(x)[1], -1])
    assert run(y, {x: X}).shape == (4, 3)


def test_reshape_infers_its_shape_from_known_parts() -> None:
    x = tf.placeholder(tf.float32, [None, 4])
    assert tf.reshape(x, tf.stack([tf.shape(x)[0], 2, 2])).shape.as_list() == [None, 2, 2]


def test_reshape_infers_the_missing_size() -> None:
    assert tf.reshape(tf.placeholder(tf.float32, [6, 4]), [-1, 8]).shape.as_list() == [3, 8]


@pytest.mark.parametrize("known", [True, False])
def test_transpose_reverses_by_default(known: bool) -> None:
    x = tf.placeholder(tf.float32, [None, None] if known else None)
    np.testing.assert_array_equal(run(tf.transpose(x), {x: X}), X.T)


def test_conjugate_transpose() -> None:
    z = np.array([[1 + 2j, 3]], np.complex64)
    np.testing.assert_array_equal(run(tf.transpose(z, conjugate=True)), z.conj().T)


@pytest.mark.parametrize("shape", [[2, 3, 4], None])
def test_matrix_transpose_leaves_leading_dimensions(shape: Any) -> None:
    value = np.arange(24).reshape(2, 3, 4)
    x = tf.placeholder(tf.int64, shape)
    np.testing.assert_array_equal(run(tf.matrix_transpose(x), {x: value}), np.swapaxes(value, 1, 2))


def test_concat_and_split_are_inverse() -> None:
    parts = tf.split(tf.constant(X), [1, -1], axis=1)
    np.testing.assert_array_equal(run(tf.concat(parts, 1)), X)


@pytest.mark.parametrize(
    ("values", "axis", "message"),
    [
        (1, [[1.0], [2.0]], "values is 1; a list of tensors is required"),
        ([[1.0]], 7, r"axis is 7 and '.*' has 1 dimensions; axis must lie in \[-1, 1\)"),
        ([[1.0]], "a", "axis is 'a'; an integer scalar is required"),
        ([[1.0]], [0], r"axis is \[0\]; an integer scalar is required"),
    ],
)
def test_concat_checks_its_arguments_for_one_value_too(values: Any, axis: Any, message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"tf.concat: {message}"):
        tf.concat(values, axis)


def test_split_into_equal_parts() -> None:
    assert [p.shape for p in run(tf.split(X, 2, 1))] == [(3, 2), (3, 2)]


def test_stack_and_unstack_are_inverse() -> None:
    np.testing.assert_array_equal(run(tf.stack(tf.unstack(tf.constant(X), axis=1), axis=1)), X)


def test_unstack_of_an_unknown_size_asks_for_num() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"the size of dimension 0 of .* is not known; give num"):
        tf.unstack(tf.placeholder(tf.float32, [None, 2]))


@pytest.mark.parametrize(
    ("mode", "numpy_mode"), [("constant", "constant"), ("REFLECT", "reflect"), ("Symmetric", "symmetric")]
)
def test_pad_modes(mode: str, numpy_mode: Any) -> None:
    np.testing.assert_array_equal(run(tf.pad(X, [[1, 2], [0, 3]], mode)), np.pad(X, [(1, 2), (0, 3)], mode=numpy_mode))


def test_pad_with_a_value() -> None:
    np.testing.assert_array_equal(
        run(tf.pad(X, [[1, 0], [0, 0]], constant_values=7)), np.pad(X, [(1, 0), (0, 0)], constant_values=7)
    )


def test_pad_of_an_unknown_mode_lists_the_modes() -> None:
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="mode is 'EDGE'; it must be CONSTANT, REFLECT or SYMMETRIC"
    ):
        tf.pad(X, [[1, 0], [0, 0]], "EDGE")


def test_old_and_new_argument_names_exclude_each_other() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="both axis and squeeze_dims are given"):
        tf.squeeze(X, axis=0, squeeze_dims=[0])


def test_expand_dims_and_squeeze_are_inverse() -> None:
    np.testing.assert_array_equal(run(tf.squeeze(tf.expand_dims(X, dim=1), 1)), X)


@pytest.mark.parametrize("shape", [[2, 3], [40, 50], ()])
def test_zeros_and_ones(shape: Any) -> None:
    np.testing.assert_array_equal(run(tf.zeros(shape, tf.int32)), np.zeros(shape, np.int32), strict=True)
    np.testing.assert_array_equal(run(tf.ones(shape)), np.ones(shape, np.float32), strict=True)


def test_zeros_of_a_computed_shape() -> None:
    x = tf.placeholder(tf.float32, [None])
    assert run(tf.zeros([tf.shape(x)[0], 2]), {x: [1, 2, 3]}).shape == (3, 2)


def test_unknown_size_has_no_value_to_make_zeros_by() -> None:
    x = tf.placeholder(tf.float32, (None, 2))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"value None given; .* tf\.shape\(x\)\[i\] in place of"):
        tf.zeros([x.shape[0], 3])


def test_zeros_of_strings_are_empty() -> None:
    assert run(tf.zeros([2], tf.string)).tolist() == [b"", b""]


def test_zeros_like_in_another_dtype() -> None:
    x = tf.placeholder(tf.float32, [None])
    np.testing.assert_array_equal(run(tf.ones_like(x, tf.int8), {x: [1, 2]}), np.ones(2, np.int8), strict=True)


@pytest.mark.parametrize("arguments", [(5,), (2, 9), (2, 9, 3), (1.0, 2.0, 0.25), (9, 2, -2)])
def test_range(arguments: Any) -> None:
    np.testing.assert_array_equal(run(tf.range(*arguments)), np.arange(*arguments))


def test_linspace() -> None:
    np.testing.assert_allclose(run(tf.linspace(1.0, 2.0, 5)), np.linspace(1, 2, 5))


def test_strings_move_like_numbers() -> None:
    x = tf.constant([[b"a", b"b"], [b"c", b"d"]])
    assert run(tf.concat([tf.transpose(x), tf.reverse(x, [0])], 0)).tolist() == [
        [b"a", b"c"],
        [b"b", b"d"],
        [b"c", b"d"],
        [b"a", b"b"],
    ]


def test_failing_assert_shows_its_data() -> None:
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"assertion failed: \[0 1 2\.\.\.\] \[bad\]; the condition must be true"
    ):
        run(tf.Assert(False, [np.arange(9), "bad"]))


def test_check_numerics_shows_message_and_counts() -> None:
    x = tf.placeholder(tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="loss: the tensor has 1 NaN, 2 infinite values"):
        run(tf.check_numerics(x, "loss"), {x: [np.nan, 1, np.inf, -np.inf]})


def test_huge_fill_fails_before_memory_is_asked_for() -> None:
    n = tf.placeholder(tf.int64, [2])
    with pytest.raises(tf.errors.InvalidArgumentError, match="must fit 63 bits"):
        run(tf.fill(n, 1.0), {n: [2**40, 2**40]})


def test_range_with_delta_zero_fails() -> None:
    delta = tf.placeholder(tf.int32, [])
    with pytest.raises(tf.errors.InvalidArgumentError, match="delta is 0; it must not be zero"):
        run(tf.range(0, 5, delta), {delta: 0})


def test_placeholder_with_default_takes_other_sizes() -> None:
    x = tf.placeholder_with_default(np.zeros(3, np.float32), [None])
    assert run(tf.shape(x)).tolist() == [3]
    assert run(tf.shape(x), {x: [1, 2]}).tolist() == [2]


def test_default_of_another_shape_is_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"shape \(3,\); it must be compatible with \(\?, 2\)"):
        tf.placeholder_with_default(np.zeros(3, np.float32), [None, 2])


def test_ensure_shape_accepts_an_unknown_rank() -> None:
    assert run(tf.ensure_shape(tf.constant(X), None)).shape == (3, 4)


def test_ensure_shape_names_both_shapes() -> None:
    x = tf.placeholder(tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"shape \(3, 4\); it must be compatible with \(\?, 5\)"):
        run(tf.ensure_shape(x, [None, 5]), {x: X})


def test_tensor_of_eleven_dimensions_is_moved() -> None:
    x = np.arange(2**11).reshape([2] * 11)
    np.testing.assert_array_equal(run(tf.transpose(tf.reshape(tf.range(2**11), [2] * 11))), x.T)


def test_uint64_takes_small_and_large_python_integers_together() -> None:
    values = [2**64 - 3, 7]
    x = tf.placeholder(tf.uint64, [2])
    with tf.Session() as session:
        constant, fed = session.run([tf.constant(values, tf.uint64), x], {x: values})
    assert constant.tolist() == fed.tolist() == values
