"""Eager tensors: values, Python's protocols, indexing, iteration, devices, memory."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
import tracemalloc
from typing import Any

import numpy as np
import pytest

import timberframe as tf

from ..conftest import reports_memory, resident_bytes

A: Any = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32)


def run_program(program: str) -> str:
    """Returns what a program that begins with the import prints."""
    source = f"import timberframe as tf\n{program}"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_an_operation_has_its_value_at_once() -> None:
    np.testing.assert_array_equal((tf.constant(A) + tf.constant(A)).numpy(), A + A)


def test_execution_is_eager() -> None:
    assert tf.executing_eagerly()


def test_execution_is_not_eager_inside_a_graph() -> None:
    with tf.Graph().as_default():
        assert not tf.executing_eagerly()


@pytest.mark.slow
def test_enable_eager_execution_switches_the_program() -> None:
    program = (
        "tf.enable_eager_execution(); tf.enable_eager_execution(); print(tf.executing_eagerly(), int(tf.add(1, 2)))"
    )
    assert run_program(program) == "True 3"


@pytest.mark.slow
def test_enable_eager_execution_reaches_new_threads() -> None:
    program = (
        "import threading\ntf.enable_eager_execution()\n"
        "t = threading.Thread(target=lambda: print(int(tf.constant(2) * 3)))\nt.start(); t.join()"
    )
    assert run_program(program) == "6"


def test_enable_eager_execution_after_operations_is_an_error() -> None:
    program = (
        "tf.constant(1)\ntry:\n    tf.enable_eager_execution()\nexcept ValueError as e:\n    print('startup' in str(e))"
    )
    assert run_program(program) == "True"


@pytest.mark.slow
def test_disable_eager_execution_goes_back_to_graphs() -> None:
    program = "tf.enable_eager_execution(); tf.disable_eager_execution(); print(tf.constant(1))"
    assert run_program(program) == 'Tensor("Const:0", shape=(), dtype=int32)'


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (lambda t: t + 1, A + 1),
        (lambda t: 1 - t, 1 - A),
        (lambda t: t * t, A * A),
        (lambda t: t / 2, A / 2),
        (lambda t: t // 2, A // 2),
        (lambda t: t % 2, A % 2),
        (lambda t: t**2, A**2),
        (lambda t: -t, -A),
        (lambda t: abs(-t), A),
        (lambda t: t > 2, A > 2),
        (lambda t: t @ tf.transpose(t), A @ A.T),
        (lambda t: t[1], A[1]),
        (lambda t: t[-1, 1:], A[-1, 1:]),
        (lambda t: t[:, tf.newaxis, ::2], A[:, None, ::2]),
        (lambda t: t[t > 2], A[A > 2]),
        (lambda t: t[..., tf.constant(1)], A[..., 1]),
        (lambda t: np.float32(2) * t, 2 * A),
        (lambda t: A + t, A + A),
    ],
)
def test_operators_and_indexing_compute_what_numpy_does(expression: Any, expected: Any) -> None:
    np.testing.assert_allclose(expression(tf.constant(A)).numpy(), expected)


def test_integers_divide_as_python_does() -> None:
    assert (tf.constant(3) / tf.constant(2)).numpy() == 1.5


def test_numpy_gives_an_array_of_its_own() -> None:
    tensor = tf.constant(A)
    tensor.numpy()[0, 0] = 100
    assert tensor.numpy()[0, 0] == 1


def test_an_array_that_became_a_tensor_may_change() -> None:
    array = A.copy()
    tensor = tf.constant(array)
    array[0, 0] = 100
    assert tensor.numpy()[0, 0] == 1


def test_numpy_functions_take_tensors() -> None:
    assert np.sum(tf.constant(A)) == A.sum()


def test_strings_are_bytes() -> None:
    assert tf.constant("text").numpy() == b"text"


def test_a_tensor_has_dtype_shape_and_device() -> None:
    tensor = tf.constant(A)
    assert (tensor.dtype, tensor.shape.as_list(), tensor.ndim) == (tf.float32, [2, 3], 2)
    assert "device:" in tensor.device


def test_a_scalar_converts_to_pythons_numbers() -> None:
    tensor = tf.constant(2.5)
    assert (int(tensor), float(tensor), bool(tensor), complex(tensor)) == (2, 2.5, True, 2.5)


def test_a_scalar_formats_like_a_number() -> None:
    assert f"{tf.constant(2.5):.2f}" == "2.50"


def test_an_integer_scalar_is_an_index() -> None:
    assert [10, 20, 30][tf.constant(1)] == 20


def test_a_float_is_no_index() -> None:
    with pytest.raises(TypeError, match="integer scalar is required"):
        range(tf.constant(1.5))


def test_a_tensor_of_many_elements_is_no_bool() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"shape \(2, 3\) is used as a Python bool"):
        bool(tf.constant(A))


def test_iteration_gives_the_rows() -> None:
    assert [row.numpy().tolist() for row in tf.constant(A)] == A.tolist()


def test_len_is_the_first_size() -> None:
    assert len(tf.constant(A)) == 2


def test_a_scalar_cannot_be_iterated() -> None:
    with pytest.raises(TypeError, match="scalar"):
        iter(tf.constant(1))


def test_repr_shows_the_value() -> None:
    assert repr(tf.constant([1, 2])) == "<tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 2], dtype=int32)>"


def test_str_shows_the_value() -> None:
    assert str(tf.constant([1, 2])) == "tf.Tensor([1 2], shape=(2,), dtype=int32)"


def test_equality_is_identity() -> None:
    a, b = tf.constant(1), tf.constant(1)
    assert a == a
    assert a != b


def test_copies_and_pickles_keep_the_value() -> None:
    tensor = tf.constant(A)
    for other in (copy.copy(tensor), copy.deepcopy(tensor), pickle.loads(pickle.dumps(tensor))):
        np.testing.assert_array_equal(other.numpy(), A)


def test_cpu_gives_the_tensor_in_the_hosts_memory() -> None:
    np.testing.assert_array_equal(tf.constant(A).cpu().numpy(), A)


def test_a_device_block_places_the_result() -> None:
    name = tf.constant(1.0).device
    with tf.device(name):
        assert (tf.constant(1.0) + 1.0).device == name


def test_identity_has_the_value() -> None:
    np.testing.assert_array_equal(tf.identity(tf.constant(A)).numpy(), A)


def test_ops_with_several_outputs_give_a_list() -> None:
    values, indices = tf.nn.top_k(tf.constant([1.0, 3.0, 2.0]), 2)
    assert (values.numpy().tolist(), indices.numpy().tolist()) == ([3, 2], [1, 2])


def test_shapes_that_only_values_give_are_known() -> None:
    assert tf.where(tf.constant([True, False, True])).shape.as_list() == [2, 1]


def test_a_size_that_a_tensor_gives_is_used() -> None:
    assert tf.reshape(tf.range(6), tf.stack([tf.constant(2), 3])).shape.as_list() == [2, 3]


def test_equal_shapes_with_other_values_reshape_anew() -> None:
    shapes = [tf.constant([2, 3]), tf.constant([3, 2])]
    assert [tf.reshape(tf.range(6), s).shape.as_list() for s in shapes] == [[2, 3], [3, 2]]


def test_cond_calls_one_function() -> None:
    called: list[int] = []
    assert int(tf.cond(tf.constant(True), lambda: called.append(1) or tf.constant(5), lambda: called.append(2))) == 5
    assert called == [1]


def test_while_loop_runs_pythons_functions() -> None:
    i, total = tf.while_loop(lambda i, _: i < 5, lambda i, t: (i + 1, t + tf.cast(i, tf.float32)), [0, 0.0])
    assert (int(i), float(total)) == (5, 10)


def test_while_loop_ends_at_its_maximum() -> None:
    assert int(tf.while_loop(lambda i: True, lambda i: i + 1, [0], maximum_iterations=3)) == 3


def test_case_and_switch_case_choose() -> None:
    assert int(tf.case([(tf.constant(False), lambda: 1)], default=lambda: tf.constant(2))) == 2
    assert int(tf.switch_case(tf.constant(1), [lambda: tf.constant(0), lambda: tf.constant(10)])) == 10


def test_map_fn_and_scan_give_all_results() -> None:
    assert tf.map_fn(lambda x: x * x, tf.range(4)).numpy().tolist() == [0, 1, 4, 9]
    assert tf.scan(lambda a, x: a + x, tf.range(4)).numpy().tolist() == [0, 1, 3, 6]


def test_tensor_arrays_are_written_and_stacked() -> None:
    array = tf.TensorArray(tf.float32, 2)
    array = array.write(0, 1.0).write(1, 2.0)
    assert array.stack().numpy().tolist() == [1, 2]


def test_py_func_calls_the_function() -> None:
    assert int(tf.py_func(lambda x: x + 1, [tf.constant(1)], tf.int32)) == 2


def test_group_and_control_dependencies_are_done_already() -> None:
    with tf.control_dependencies([tf.constant(1)]):
        assert tf.group(tf.constant(1)) is None
    assert tf.no_op() is None


def test_assertions_are_checked_at_once() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="not hold"):
        tf.assert_less(tf.constant(2), 1, message="not hold")


def test_tables_look_up() -> None:
    keys = tf.constant(["a", "b"])
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, tf.constant([1, 2])), -1)
    assert table.lookup(tf.constant(["b", "c"])).numpy().tolist() == [2, -1]


# Random numbers


def test_a_seed_makes_the_numbers_repeat() -> None:
    def numbers() -> list[Any]:
        tf.set_random_seed(7)
        return [tf.random_uniform([2]).numpy(), *(tf.random_normal([2], seed=3).numpy() for _ in range(4))]

    np.testing.assert_array_equal(numbers(), numbers())


def test_random_ops_go_on_with_each_call() -> None:
    tf.set_random_seed(7)
    assert not np.array_equal(tf.random_uniform([2], seed=1).numpy(), tf.random_uniform([2], seed=1).numpy())


# Memory


@pytest.mark.slow
def test_ten_thousand_operations_keep_memory_flat() -> None:
    x, v = tf.constant(A), tf.Variable(A)

    def work(count: int) -> None:
        for _ in range(count):
            y = tf.reduce_sum(x * 2.0 + v, axis=1)
            v.assign_add(x[:, :3] * 0.0)
            del y

    work(200)
    gc.collect()
    tracemalloc.start()
    try:
        work(200)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        work(2000)  # five operations each
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 20_000


@reports_memory
def test_variables_that_nobody_has_any_more_give_their_memory_back() -> None:
    before = resident_bytes()
    for _ in range(40):
        tf.Variable(tf.zeros([2**21])).assign_add(tf.ones([2**21]))  # 8 MiB
    assert resident_bytes() - before < 2**27
