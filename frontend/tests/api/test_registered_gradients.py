"""Gradients that programs register, functions of eager tensors in graphs, and types that become tensors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import timberframe as tf

pytestmark = pytest.mark.usefixtures("graph")

_numbers = itertools.count()


def name() -> str:
    """Returns a name that no other test has registered."""
    return f"OfATest{next(_numbers)}"


def value(tensor: Any) -> Any:
    with tf.Session() as session:
        return session.run(tensor)


def test_a_guided_relu_by_an_override(graph: tf.Graph) -> None:
    guided = name()

    @tf.RegisterGradient(guided)
    def _gradient(op: tf.Operation, grad: tf.Tensor) -> tf.Tensor:
        return tf.where(grad > 0.0, op.inputs[0] * grad, tf.zeros_like(grad))

    x = tf.constant([-1.0, 2.0, 3.0])
    with graph.gradient_override_map({"Relu": guided}):
        y = tf.nn.relu(x)
    z = tf.nn.relu(x)
    assert value(tf.gradients(y, x, [[1.0, 1.0, -1.0]])[0]).tolist() == [-1.0, 2.0, 0.0]
    assert value(tf.gradients(z, x, [[1.0, 1.0, -1.0]])[0]).tolist() == [0.0, 1.0, -1.0]


def test_an_override_names_the_gradient_of_another_op(graph: tf.Graph) -> None:
    x = tf.constant([-0.5, 2.5])
    with graph.gradient_override_map({"Sign": "Identity", "Round": "Identity"}):
        y = tf.sign(x) * tf.round(x)
    assert value(tf.gradients(y, x)[0]).tolist() == [-1.0, 3.0]


def test_a_python_function_gets_a_gradient_by_an_override(graph: tf.Graph) -> None:
    square = name()

    @tf.RegisterGradient(square)
    def _gradient(op: tf.Operation, grad: tf.Tensor) -> tf.Tensor:
        return 2.0 * op.inputs[0] * grad

    x = tf.constant([1.0, 3.0])
    with graph.gradient_override_map({"PyFunc": square}):
        y = tf.py_func(np.square, [x], tf.float32)
    assert [a.tolist() for a in value([y, tf.gradients(y, x)[0]])] == [[1.0, 9.0], [2.0, 6.0]]


def test_an_override_holds_in_bodies_of_loops(graph: tf.Graph) -> None:
    x = tf.constant(1.0)
    with graph.gradient_override_map({"Sign": "Identity"}):
        y = tf.while_loop(lambda i, _: i < 2, lambda i, v: (i + 1, tf.sign(v) * 3.0), (0, x))[1]
    assert value(tf.gradients(y, x)[0]) == 9.0


def test_an_override_is_in_the_graphdef(graph: tf.Graph) -> None:
    x = tf.placeholder(tf.float32, [2], name="x")
    with graph.gradient_override_map({"Sign": "Identity"}):
        tf.sign(x, name="y")
    (node,) = [n for n in graph.as_graph_def().node if n.name == "y"]
    assert node.attr["_gradient_op_type"].s == b"Identity"
    with tf.Graph().as_default():
        x, y = tf.import_graph_def(graph.as_graph_def(), return_elements=["x:0", "y:0"])
        with tf.Session() as session:
            assert session.run(tf.gradients(y, x)[0], {x: [3.0, -3.0]}).tolist() == [1.0, 1.0]


def test_not_differentiable_ends_gradients(graph: tf.Graph) -> None:
    ends = name()
    tf.NotDifferentiable(ends)
    x = tf.constant(2.0)
    with graph.gradient_override_map({"Square": ends}):
        y = tf.square(x)
    assert tf.gradients(y, x) == [None]


def test_a_name_is_registered_once() -> None:
    twice = name()
    tf.RegisterGradient(twice)(lambda op, grad: grad)
    with pytest.raises(
        tf.errors.AlreadyExistsError, match=f"RegisterGradient '{twice}': has a gradient already"
    ) as caught:
        tf.RegisterGradient(twice)(lambda op, grad: grad)
    assert isinstance(caught.value, KeyError)  # which TensorFlow raises
    with pytest.raises(tf.errors.AlreadyExistsError, match=r"'Relu': .*gradient_override_map"):
        tf.RegisterGradient("Relu")(lambda op, grad: grad)


def test_an_override_without_a_gradient_says_so(graph: tf.Graph) -> None:
    x = tf.constant(2.0)
    with graph.gradient_override_map({"Square": "Nowhere"}):
        y = tf.square(x, name="y")
    with pytest.raises(LookupError, match=r"Square 'y': its gradient is to be 'Nowhere'.*tf.RegisterGradient"):
        tf.gradients(y, x)


def test_an_override_map_has_names(graph: tf.Graph) -> None:
    with pytest.raises(TypeError, match="gradient_override_map: op_type_map"), graph.gradient_override_map({"Relu": 3}):
        pass


def test_a_function_of_eager_tensors_runs_in_a_graph() -> None:
    def clipped(x: Any) -> Any:
        return x * 2.0 if x.numpy().sum() > 3.0 else -x

    x = tf.placeholder(tf.float32, [2])
    y = tf.py_function(clipped, [x], tf.float32)
    with tf.Session() as session:
        assert session.run(y, {x: [1.0, 4.0]}).tolist() == [2.0, 8.0]
        assert session.run(y, {x: [1.0, 1.0]}).tolist() == [-1.0, -1.0]


def test_a_function_of_eager_tensors_is_differentiated() -> None:
    def huber(error: Any, delta: Any) -> Any:
        if abs(error) <= delta:
            return error**2 / 2.0
        return delta * (abs(error) - 0.5 * delta)

    x, n = tf.placeholder(tf.float32, []), tf.constant(2.0)
    y = tf.py_function(func=huber, inp=[x, n], Tout=tf.float32)
    slopes = tf.gradients(y, [x, n])
    with tf.Session() as session:
        assert session.run([y, *slopes], {x: 1.0}) == [0.5, 1.0, 0.0]
        assert session.run([y, *slopes], {x: 5.0}) == [8.0, 2.0, 3.0]


def test_a_function_of_eager_tensors_has_several_results() -> None:
    x = tf.constant([1.0, 2.0])
    total, count = tf.py_function(lambda x: (tf.reduce_sum(x * x), x.shape[0].value), [x], [tf.float32, tf.int32])
    assert value([total, count, tf.gradients(total, x)[0]])[:2] == [5.0, 2]
    assert value(tf.gradients(total, x)[0]).tolist() == [2.0, 4.0]


def test_a_function_of_eager_tensors_returns_what_tout_says() -> None:
    y = tf.py_function(lambda x: (x, x), [1.0], [tf.float32])
    with pytest.raises(tf.errors.InvalidArgumentError, match="returned 2 values; Tout has 1"):
        value(y)


class Interval:
    """A type of a program."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high


@pytest.fixture
def conversion(monkeypatch: pytest.MonkeyPatch) -> None:
    from timberframe_core.graph import conversions

    monkeypatch.setattr(conversions, "_conversions", [])
    tf.register_tensor_conversion_function(
        Interval, lambda v, dtype=None, name=None, as_ref=False: tf.constant([v.low, v.high], dtype, name=name)
    )


@pytest.mark.usefixtures("conversion")
def test_a_type_with_a_conversion_is_taken_everywhere() -> None:
    x = Interval(1.0, 3.0)
    assert tf.convert_to_tensor(x).dtype is tf.float32
    assert tf.convert_to_tensor(x, tf.float64).dtype is tf.float64
    assert value(tf.reduce_sum(x)) == 4.0
    assert value(tf.constant([1.0, 1.0], tf.float64) + x).tolist() == [2.0, 4.0]
    assert value(tf.stack([x, x])).tolist() == [[1.0, 3.0], [1.0, 3.0]]
    assert value(tf.convert_to_tensor([x, [5.0, 6.0]])).tolist() == [[1.0, 3.0], [5.0, 6.0]]
    assert tf.Variable(x).shape.as_list() == [2]


@pytest.mark.usefixtures("conversion")
def test_a_conversion_of_smaller_priority_is_tried_first() -> None:
    tf.register_tensor_conversion_function(Interval, lambda v, **_: tf.constant(v.high - v.low), priority=10)
    tf.register_tensor_conversion_function(Interval, lambda v, **_: NotImplemented, priority=5)
    assert value(tf.identity(Interval(1.0, 3.0))) == 2.0


@pytest.mark.usefixtures("conversion")
def test_a_conversion_gives_a_tensor_of_the_dtype() -> None:
    tf.register_tensor_conversion_function(Interval, lambda v, **_: 3, priority=1)
    with pytest.raises(TypeError, match="conversion function of Interval gave a int; a tensor is required"):
        tf.identity(Interval(1.0, 3.0))


def test_numbers_have_their_conversion() -> None:
    with pytest.raises(TypeError, match="base_type is float; numbers and arrays of NumPy are converted already"):
        tf.register_tensor_conversion_function(float, lambda v, **_: tf.constant(v))


def test_a_name_that_has_a_gradient_is_a_key_error_as_in_tensorflow() -> None:
    with pytest.raises(KeyError):
        tf.RegisterGradient("Relu")(lambda op, grad: grad)
