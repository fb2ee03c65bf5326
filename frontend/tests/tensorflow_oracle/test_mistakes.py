"""Mistakes with tensors, graphs, sessions and variables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .mistakes import Mistakes

mistake = Mistakes()


@mistake("product", "(2, 3)", "(4, 5)", "3 and 4")
def matmul_of_shapes_that_do_not_fit(tf: Any, folder: Path) -> Any:
    return tf.matmul(tf.zeros([2, 3]), tf.zeros([4, 5]), name="product")


@mistake("product", "(2, 3)", "(4, 5)")
def matmul_of_fed_shapes_that_do_not_fit(tf: Any, folder: Path) -> Any:
    x, y = tf.placeholder(tf.float32, [None, None], "x"), tf.placeholder(tf.float32, [None, None], "y")
    with tf.Session() as session:
        return session.run(tf.matmul(x, y, name="product"), {x: np.zeros((2, 3)), y: np.zeros((4, 5))})


@mistake("product", "(3", " rank 2")
def matmul_of_a_vector(tf: Any, folder: Path) -> Any:
    return tf.matmul(tf.zeros([3]), tf.zeros([3, 2]), name="product")


@mistake("total", "(2, 3)", "(4")
def sum_of_shapes_that_do_not_fit(tf: Any, folder: Path) -> Any:
    return tf.add(tf.zeros([2, 3]), tf.zeros([4]), name="total")


@mistake("int32", "float32", "AddV2", "y")
def sum_of_dtypes(tf: Any, folder: Path) -> Any:
    return tf.add(tf.constant(1.0), tf.constant(1), name="total")


@mistake("int32", "float32", "AddV2")
def operator_on_dtypes(tf: Any, folder: Path) -> Any:
    return tf.constant(1.0) + tf.constant(1, name="one")


@mistake("joined", "(2, 3)", "(4, 5)")
def concat_of_shapes_that_do_not_fit(tf: Any, folder: Path) -> Any:
    return tf.concat([tf.zeros([2, 3]), tf.zeros([4, 5])], 0, name="joined")


@mistake("flat", "6 elements", "(4, 2)", "8")
def reshape_to_another_size(tf: Any, folder: Path) -> Any:
    return tf.reshape(tf.zeros([2, 3]), [4, 2], name="flat")


@mistake("flat", "6", "8")
def reshape_of_fed_size(tf: Any, folder: Path) -> Any:
    x = tf.placeholder(tf.float32, None, "x")
    with tf.Session() as session:
        return session.run(tf.reshape(x, [4, 2], name="flat"), {x: np.zeros((2, 3))})


@mistake("features", "3", "4", "input", "filter")
def convolution_of_other_channels(tf: Any, folder: Path) -> Any:
    return tf.nn.conv2d(tf.zeros([1, 8, 8, 3]), tf.zeros([3, 3, 4, 16]), [1, 1, 1, 1], "SAME", name="features")


@mistake("padding", "FULL", "SAME", "VALID", "EXPLICIT")
def convolution_with_unknown_padding(tf: Any, folder: Path) -> Any:
    return tf.nn.conv2d(tf.zeros([1, 8, 8, 3]), tf.zeros([3, 3, 3, 16]), [1, 1, 1, 1], "FULL", name="features")


@mistake("logits", "labels", "(2, 3)", "(2, 4)")
def logits_and_labels_of_shapes_that_do_not_fit(tf: Any, folder: Path) -> Any:
    return tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.zeros([2, 3]), logits=tf.zeros([2, 4]))


@mistake("labels", "logits", "(2, 1)", "(2, 4)")
def sparse_labels_with_a_dimension_too_many(tf: Any, folder: Path) -> Any:
    labels = tf.zeros([2, 1], tf.int32)
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.zeros([2, 4]))


@mistake("'x'", "(2, 3)", "float", "feed")
def placeholder_that_is_not_fed(tf: Any, folder: Path) -> Any:
    x = tf.placeholder(tf.float32, [2, 3], "x")
    with tf.Session() as session:
        return session.run(x * 2.0)


@mistake("x", "(4, 5)", "(2, 3)")
def feed_of_another_shape(tf: Any, folder: Path) -> Any:
    x = tf.placeholder(tf.float32, [2, 3], "x")
    with tf.Session() as session:
        return session.run(x * 2.0, {x: np.zeros((4, 5))})


@mistake("word", "float")
def feed_of_a_text(tf: Any, folder: Path) -> Any:
    x = tf.placeholder(tf.float32, [], "x")
    with tf.Session() as session:
        return session.run(x * 2.0, {x: "word"})


@mistake("Const:0", "x", "value")
def feed_of_a_tensor(tf: Any, folder: Path) -> Any:
    x = tf.placeholder(tf.float32, [], "x")
    with tf.Session() as session:
        return session.run(x * 2.0, {x: tf.constant(1.0)})


@mistake("feed_dict", "y:0", "graph")
def feed_by_an_unknown_name(tf: Any, folder: Path) -> Any:
    x = tf.placeholder(tf.float32, [], "x")
    with tf.Session() as session:
        return session.run(x * 2.0, {"y:0": 1.0})


@mistake("None")
def fetch_of_none(tf: Any, folder: Path) -> Any:
    tf.constant(1.0)
    with tf.Session() as session:
        return session.run(None)


@mistake("3", "int")
def fetch_of_a_number(tf: Any, folder: Path) -> Any:
    tf.constant(1.0)
    with tf.Session() as session:
        return session.run(3)


@mistake("prediction", "graph")
def fetch_by_an_unknown_name(tf: Any, folder: Path) -> Any:
    tf.constant(1.0)
    with tf.Session() as session:
        return session.run("prediction:0")


@mistake("x:0", "graph")
def fetch_from_another_graph(tf: Any, folder: Path) -> Any:
    with tf.Graph().as_default():
        x = tf.constant(1.0, name="x")
    tf.constant(2.0)
    with tf.Session() as session:
        return session.run(x)


@mistake("session", "closed")
def session_that_is_closed(tf: Any, folder: Path) -> Any:
    x = tf.constant(1.0)
    session = tf.Session()
    session.close()
    return session.run(x)


@mistake("default session", "session=")
def eval_without_a_session(tf: Any, folder: Path) -> Any:
    return tf.constant(1.0).eval()


@mistake("weights")
def variable_that_is_not_initialized(tf: Any, folder: Path) -> Any:
    weights = tf.get_variable("weights", [2])
    with tf.Session() as session:
        return session.run(weights)


@mistake("layer/weights", "exists", "reuse=True", "tf.AUTO_REUSE")
def variable_of_a_name_that_exists(tf: Any, folder: Path) -> Any:
    with tf.variable_scope("layer"):
        tf.get_variable("weights", [2])
    with tf.variable_scope("layer"):
        return tf.get_variable("weights", [2])


@mistake("layer/weights", "does not exist", "get_variable", "reuse=tf.AUTO_REUSE")
def variable_that_is_reused_and_does_not_exist(tf: Any, folder: Path) -> Any:
    with tf.variable_scope("layer", reuse=True):
        return tf.get_variable("weights", [2])


@mistake("layer/weights", "(3,)", "(2,)")
def variable_that_is_reused_with_another_shape(tf: Any, folder: Path) -> Any:
    with tf.variable_scope("layer", reuse=tf.AUTO_REUSE):
        tf.get_variable("weights", [2])
        return tf.get_variable("weights", [3])


@mistake("shape")
def variable_without_a_known_shape(tf: Any, folder: Path) -> Any:
    return tf.get_variable("weights", [None, 2])


@mistake("Assign", "(2", "(3")
def assigning_another_shape(tf: Any, folder: Path) -> Any:
    return tf.get_variable("weights", [2]).assign([1.0, 2.0, 3.0])


@mistake("x:0", "y:0", "graph")
def tensors_of_two_graphs(tf: Any, folder: Path) -> Any:
    with tf.Graph().as_default():
        x = tf.constant(1.0, name="x")
    return tf.add(x, tf.constant(2.0, name="y"))


@mistake("python", "bool")
def tensor_as_a_python_bool(tf: Any, folder: Path) -> Any:
    return 1 if tf.constant(1.0) < tf.constant(2.0) else 0


@mistake("iterat")
def iterating_over_a_tensor_of_unknown_length(tf: Any, folder: Path) -> Any:
    return list(tf.placeholder(tf.float32, [None, 2], "x"))


@mistake("no variables to optimize")
def loss_without_a_variable(tf: Any, folder: Path) -> Any:
    return tf.train.GradientDescentOptimizer(0.1).minimize(tf.constant(1.0, name="loss"))


@mistake("weights:0", "gradient", "loss")
def loss_that_does_not_depend_on_variables(tf: Any, folder: Path) -> Any:
    tf.get_variable("weights", [2])
    return tf.train.GradientDescentOptimizer(0.1).minimize(tf.constant(1.0, name="loss"))


@mistake("Sum:0", "int32", "float32", "float64", "float16", "bfloat16")
def gradient_of_integers(tf: Any, folder: Path) -> Any:
    weights = tf.get_variable("weights", [2], tf.int32)
    return tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(weights), var_list=[weights])


@mistake("float31", "dtype")
def dtype_that_is_unknown(tf: Any, folder: Path) -> Any:
    return tf.zeros([2], dtype="float31")


@mistake("float32", "word")
def constant_of_a_text_as_numbers(tf: Any, folder: Path) -> Any:
    return tf.constant("word", tf.float32)


@mistake("2", "3")
def constant_with_too_many_values(tf: Any, folder: Path) -> Any:
    return tf.constant([1.0, 2.0, 3.0], shape=[2])


@mistake("inhomogeneous")
def ragged_constant(tf: Any, folder: Path) -> Any:
    return tf.constant([[1.0, 2.0], [3.0]])


@mistake("None")
def gradients_of_none(tf: Any, folder: Path) -> Any:
    return tf.gradients(None, tf.constant(1.0))


@mistake("None")
def gradients_with_respect_to_none(tf: Any, folder: Path) -> Any:
    return tf.gradients(tf.constant(1.0), [None])


@mistake("None")
def group_of_none(tf: Any, folder: Path) -> Any:
    return tf.group(tf.constant(1.0), None)


@mistake("session", "graph", "operations")
def session_of_an_empty_graph(tf: Any, folder: Path) -> Any:
    x = tf.constant(1.0)
    with tf.Session(graph=tf.Graph()) as session:
        return session.run(x)


@mistake("graph is finalized")
def graph_that_is_finalized(tf: Any, folder: Path) -> Any:
    tf.get_default_graph().finalize()
    return tf.constant(1.0)


@mistake("flat", "0", "1", "2", "(2, 3)")
def squeeze_of_a_dimension_that_is_not_one(tf: Any, folder: Path) -> Any:
    return tf.squeeze(tf.zeros([2, 3]), [0], name="flat")


@mistake("rows", "7", "[0, 3)")
def gather_beyond_the_end(tf: Any, folder: Path) -> Any:
    with tf.Session() as session:
        return session.run(tf.gather(tf.zeros([3]), tf.constant([7]), name="rows"))


@mistake("true_fn", "false_fn", "float32", "int32")
def cond_with_branches_of_two_dtypes(tf: Any, folder: Path) -> Any:
    return tf.cond(tf.constant(True), lambda: tf.constant(1.0), lambda: tf.constant(1))


@mistake("zeros:0", "(2,)", "(4,)", "shape_invariants")
def loop_that_changes_a_shape(tf: Any, folder: Path) -> Any:
    return tf.while_loop(lambda x: True, lambda x: tf.concat([x, x], 0), [tf.zeros([2])])


@mistake("true_fn", "must be")
def cond_with_tensors_for_functions(tf: Any, folder: Path) -> Any:
    return tf.cond(tf.constant(True), tf.constant(1), tf.constant(2))


@mistake("t_list")
def clipping_one_tensor_for_a_list(tf: Any, folder: Path) -> Any:
    return tf.clip_by_global_norm(tf.zeros([2]), 1.0)


@mistake("(2,)", "rank 2")
def sparse_tensor_whose_indices_are_a_vector(tf: Any, folder: Path) -> Any:
    return tf.SparseTensor([0, 1], [1.0, 2.0], [3])


@mistake("tensor")
def value_looked_for_in_a_tensor(tf: Any, folder: Path) -> Any:
    return 1.0 in tf.zeros([3])


@mistake("global_step")
def second_global_step(tf: Any, folder: Path) -> Any:
    tf.train.create_global_step()
    return tf.train.create_global_step()


@mistake("predicate", "int64", "bool")
def filter_by_numbers(tf: Any, folder: Path) -> Any:
    return tf.data.Dataset.range(3).filter(lambda x: x)


@mistake("IteratorGetNext", "End of sequence")
def iterator_past_the_end(tf: Any, folder: Path) -> Any:
    following = tf.data.make_one_shot_iterator(tf.data.Dataset.range(1)).get_next()
    with tf.Session() as session:
        session.run(following)
        return session.run(following)


@mistake("IteratorGetNext", "has not been initialized", "initializer")
def iterator_that_is_not_initialized(tf: Any, folder: Path) -> Any:
    following = tf.data.make_initializable_iterator(tf.data.Dataset.range(1)).get_next()
    with tf.Session() as session:
        return session.run(following)


@mistake("x", "/job:nowhere/task:7", "/job:localhost/replica:0/task:0/device:CPU:0")
def device_that_does_not_exist(tf: Any, folder: Path) -> Any:
    with tf.device("/job:nowhere/task:7"):
        x = tf.random_uniform([2], name="x")
    with tf.Session() as session:
        return session.run(x)


@pytest.mark.parametrize("name", mistake)
def test_errors_are_of_tensorflows_class_and_say_as_much(name: str, tensorflow: Any, tmp_path: Path) -> None:
    mistake.check(name, tensorflow, tmp_path)
