"""Common mistakes: who catches TensorFlow's error catches ours, and our message has the facts that theirs has."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe

Mistake = Callable[[Any, Path], Any]
MISTAKES: list[tuple[Mistake, tuple[str, ...]]] = []


def mistake(*facts: str) -> Callable[[Mistake], Mistake]:
    """Adds a mistake to the list: a function of the module `tf` and of an empty folder that raises.

    facts: what both messages say, shapes in parentheses.
    """

    def add(function: Mistake) -> Mistake:
        MISTAKES.append((function, facts))
        return function

    return add


def raised_by(function: Mistake, tf: Any, folder: Path) -> Exception:
    folder.mkdir()
    with tf.Graph().as_default(), pytest.raises(Exception) as caught:  # noqa: PT011 - the test compares classes
        function(tf, folder)
    return caught.value


def caught_as(error: Exception, tf: Any) -> str:
    """The name of the class by which programs catch it: Python's, or one of tf.errors."""
    return next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins" or hasattr(tf.errors, c.__name__))


def words(error: Exception) -> str:
    """The message with shapes in parentheses, as we write them."""
    text = re.sub(r"\[([\d, ]*)\]", r"(\1)", str(error))
    return re.sub(r"(?<=\d), ?(?=\d)", ", ", text).lower()


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


@mistake("biases", "checkpoint")
def checkpoint_without_a_variable(tf: Any, folder: Path) -> Any:
    path = str(folder / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("weights", [2])
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, path)
    tf.get_variable("biases", [2])
    with tf.Session() as session:
        return tf.train.Saver().restore(session, path)


@mistake("(2", "(3", "checkpoint")
def checkpoint_of_another_shape(tf: Any, folder: Path) -> Any:
    path = str(folder / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("weights", [2], use_resource=False)
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, path)
    tf.get_variable("weights", [3], use_resource=False)
    with tf.Session() as session:
        return tf.train.Saver().restore(session, path)


@mistake("model", "checkpoint")
def checkpoint_that_does_not_exist(tf: Any, folder: Path) -> Any:
    tf.get_variable("weights", [2])
    with tf.Session() as session:
        return tf.train.Saver().restore(session, str(folder / "model"))


@mistake("no variables to save")
def saver_without_variables(tf: Any, folder: Path) -> Any:
    return tf.train.Saver()


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


@mistake("does not exist", "model.meta")
def graph_file_that_does_not_exist(tf: Any, folder: Path) -> Any:
    return tf.train.import_meta_graph(str(folder / "model.meta"))


@mistake("model")
def checkpoint_in_a_folder_that_cannot_be(tf: Any, folder: Path) -> Any:
    (folder / "file").write_text("")
    tf.get_variable("weights", [2])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return tf.train.Saver().save(session, str(folder / "file" / "model"))


def saved_model(tf: Any, folder: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, v = tf.placeholder(tf.float32), tf.get_variable("v", [2])
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, str(folder / "model"), {"x": x}, {"y": x * v})


@mistake("serve", "other")
def saved_model_without_a_graph_of_the_tags(tf: Any, folder: Path) -> Any:
    saved_model(tf, folder)
    return tf.saved_model.loader.load(tf.Session(), ["other"], str(folder / "model"))


@mistake("model", "empty")
def saved_model_in_a_folder_that_has_files(tf: Any, folder: Path) -> Any:
    saved_model(tf, folder)
    saved_model(tf, folder)


@mistake("model", "saved_model.pb")
def saved_model_that_does_not_exist(tf: Any, folder: Path) -> Any:
    return tf.saved_model.loader.load(tf.Session(), ["serve"], str(folder / "model"))


@mistake("saved_model.pb", "pars")
def saved_model_of_other_bytes(tf: Any, folder: Path) -> Any:
    (folder / "saved_model.pb").write_bytes(b"\xff\xff")
    return tf.saved_model.loader.load(tf.Session(), ["serve"], str(folder))


@mistake("biases", "model")
def start_from_a_checkpoint_without_a_variable(tf: Any, folder: Path) -> Any:
    path = str(folder / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("weights", [2])
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, path)
    return tf.train.init_from_checkpoint(path, {"biases": tf.get_variable("biases", [2])})


@mistake("records", "3")
def file_that_is_no_number_of_records(tf: Any, folder: Path) -> Any:
    (folder / "records").write_bytes(b"aaab")
    element = tf.data.FixedLengthRecordDataset(str(folder / "records"), 3).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        return [session.run(element) for _ in range(2)]


@mistake("base")
def text_of_wrong_padding(tf: Any, folder: Path) -> Any:
    with tf.Session() as session:
        return session.run(tf.decode_base64("YQ="))


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


@mistake("events")
def events_where_no_folder_can_be(tf: Any, folder: Path) -> Any:
    return tf.summary.FileWriter("/proc/events")


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


@mistake("data.txt", "No such file or directory")
def file_that_does_not_exist(tf: Any, folder: Path) -> Any:
    return tf.gfile.GFile(str(folder / "data.txt")).read()


@pytest.mark.parametrize(("function", "facts"), MISTAKES, ids=[function.__name__ for function, _ in MISTAKES])
def test_errors_are_of_tensorflows_class_and_say_as_much(
    function: Mistake, facts: tuple[str, ...], tensorflow: Any, tmp_path: Path
) -> None:
    theirs = raised_by(function, tensorflow, tmp_path / "theirs")
    ours = raised_by(function, timberframe, tmp_path / "ours")
    name = caught_as(theirs, tensorflow)
    assert isinstance(ours, getattr(timberframe.errors, name, None) or getattr(builtins, name))
    assert isinstance(ours, timberframe.errors.OpError)
    assert [fact for fact in facts if fact.lower() not in words(theirs)] == []
    assert [fact for fact in facts if fact.lower() not in words(ours)] == []
