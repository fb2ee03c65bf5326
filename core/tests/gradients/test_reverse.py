"""What tf.gradients walks, sums and refuses; the gradients of single ops are conformance's."""

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.ops.definition.opdef import define_op
from timberframe_sdk.testing.loaded import temporary_ops


def evaluate(fetches: object, feed: dict[object, object] | None = None) -> object:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feed)


@pytest.fixture(autouse=True)
def graph() -> object:
    with tf.Graph().as_default() as made:
        yield made


def test_a_variable_gets_the_sum_over_all_its_reads() -> None:
    v = tf.Variable([1.0, 2.0])
    (grad,) = tf.gradients(v * 3.0 + tf.identity(v) * v, [v])
    assert evaluate(grad) == pytest.approx([5.0, 7.0])


def test_what_was_broadcast_is_summed_when_shapes_are_unknown() -> None:
    x, y = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    gx, gy = tf.gradients(x * y, [x, y])
    first, second = evaluate([gx, gy], {x: np.ones((4, 3)), y: np.arange(3.0)})
    assert first.shape == (4, 3)
    assert second == pytest.approx([4.0, 4.0, 4.0])


def test_grad_ys_scale_each_result() -> None:
    x = tf.constant(2.0)
    (grad,) = tf.gradients([x * 3.0, x * 5.0], x, grad_ys=[10.0, None])
    assert evaluate(grad) == 35.0


def test_a_source_that_is_passed_through_and_its_own_source_both_count() -> None:
    x = tf.constant(3.0)
    y = x * x
    assert evaluate(tf.gradients(y * x, [y, x])) == [3.0, 27.0]


def test_stop_gradients_are_constants() -> None:
    x = tf.constant(3.0)
    y = x * x
    assert evaluate(tf.gradients(y * x, [x], stop_gradients=[y])) == [9.0]


def test_an_unconnected_source_is_none_or_zeros() -> None:
    x, other = tf.constant(1.0), tf.Variable([1.0, 2.0])
    assert tf.gradients(x * 2.0, [other]) == [None]
    (zeros,) = tf.gradients(x * 2.0, [other], unconnected_gradients=tf.UnconnectedGradients.ZERO)
    assert evaluate(zeros) == pytest.approx([0.0, 0.0])


def test_unknown_unconnected_gradients_is_refused_with_those_known() -> None:
    x = tf.constant(1.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"unconnected_gradients is 'zeros'; .* 'none' or 'zero'"):
        tf.gradients(x, [x], unconnected_gradients="zeros")


def test_nothing_flows_through_integers() -> None:
    x = tf.constant(1.0)
    assert tf.gradients(tf.cast(tf.cast(x, tf.int32), tf.float32), [x]) == [None]


def test_the_gradient_runs_where_its_operation_was_placed() -> None:
    with tf.device("/device:CPU:1"):
        x = tf.constant(1.0)
        y = tf.multiply(x, x)
    assert tf.gradients(y, [x])[0].op.inputs[0].device == "/device:CPU:1"


def test_a_gradient_of_another_shape_is_refused() -> None:
    x = tf.constant([1.0, 2.0])
    with pytest.raises(ValueError, match=r"has shape \(3,\); it must have as many elements as the result, \(2,\)"):
        tf.gradients(x * 2.0, [x], grad_ys=[[1.0, 1.0, 1.0]])


def test_complex_results_need_grad_ys() -> None:
    x = tf.constant(1j, tf.complex64)
    with pytest.raises(ValueError, match="complex64; complex results need"):
        tf.gradients(x * x, [x])


def test_an_op_that_declares_no_gradient_is_named() -> None:
    x = tf.constant(1.0)
    with temporary_ops():
        define_op(
            "Test>Opaque", inputs=["x: float"], outputs=["y: float"], doc="A test.", shape=lambda c: [c.shapes[0]]
        )
        opaque = tf.get_default_graph().apply("Test>Opaque", [x], {}, "shut").outputs[0]
    with pytest.raises(LookupError, match="Test>Opaque 'shut': no gradient is declared"):
        tf.gradients(opaque, [x])


def test_operations_of_gradients_have_the_whole_names_of_those_that_they_belong_to() -> None:
    with tf.Graph().as_default():
        with tf.variable_scope("net"), tf.variable_scope("fc"):
            w = tf.get_variable("w", [3, 2])
            y = tf.matmul(tf.ones([4, 3]), w)
        (gradient,) = tf.gradients(tf.tanh(y), [w], name="slopes")
    assert gradient.name.startswith("slopes/net/fc/MatMul_grad/")


@pytest.mark.parametrize("shape", [(6,), (3, 2), (1, 6)])
def test_a_gradient_of_another_shape_and_as_many_elements_counts_in_their_order(shape: tuple[int, ...]) -> None:
    x = tf.constant(np.arange(6.0).reshape(2, 3))
    for given in (x, tf.placeholder_with_default(x, [None, 3])):
        (grad,) = tf.gradients(given * given, x, grad_ys=np.arange(1.0, 7.0).reshape(shape))
        with tf.Session() as session:
            assert session.run(grad).tolist() == [[0, 4, 12], [24, 40, 60]]
