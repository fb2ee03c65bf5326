"""Mistakes with checkpoints, saved models and other files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .mistakes import Mistakes

mistake = Mistakes()


def saved_weights(tf: Any, folder: Path, **arguments: Any) -> str:
    """Returns the path of a checkpoint with a variable "weights" of two elements, made with these arguments."""
    path = str(folder / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("weights", [2], **arguments)
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, path)
    return path


@mistake("biases", "checkpoint")
def checkpoint_without_a_variable(tf: Any, folder: Path) -> Any:
    path = saved_weights(tf, folder)
    tf.get_variable("biases", [2])
    with tf.Session() as session:
        return tf.train.Saver().restore(session, path)


@mistake("(2", "(3", "checkpoint")
def checkpoint_of_another_shape(tf: Any, folder: Path) -> Any:
    path = saved_weights(tf, folder, use_resource=False)
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
    path = saved_weights(tf, folder)
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


@mistake("events")
def events_where_no_folder_can_be(tf: Any, folder: Path) -> Any:
    return tf.summary.FileWriter("/proc/events")


@mistake("data.txt", "No such file or directory")
def file_that_does_not_exist(tf: Any, folder: Path) -> Any:
    return tf.gfile.GFile(str(folder / "data.txt")).read()


@pytest.mark.parametrize("name", mistake)
def test_errors_are_of_tensorflows_class_and_say_as_much(name: str, tensorflow: Any, tmp_path: Path) -> None:
    mistake.check(name, tensorflow, tmp_path)
