"""What is said of names that are missing, and modules that programs import by TensorFlow's paths."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import reduce
from pathlib import Path

import numpy as np
import pytest

import timberframe as tf
from timberframe.compat.programs import resolve


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("reduce_men", "module 'timberframe' has no attribute 'reduce_men'; did you mean 'reduce_mean'?"),
        ("nn.reluu", "module 'timberframe.nn' has no attribute 'reluu'; did you mean 'relu'?"),
        ("train.AdamOptimiser", "has no attribute 'AdamOptimiser'; did you mean 'AdamOptimizer'?"),
        ("mul", "module 'timberframe' has no attribute 'mul'; tf.multiply"),
        ("keras", "Keras is a library of its own"),
    ],
)
def test_missing_names_say_what_is_near_or_serves_instead(name: str, message: str) -> None:
    with pytest.raises(AttributeError) as caught:
        reduce(getattr, name.split("."), tf)
    assert message in str(caught.value)


def test_a_name_that_is_like_no_other_gets_no_advice() -> None:
    with pytest.raises(AttributeError) as caught:
        _ = tf.nn.zzzzzz
    assert str(caught.value) == "module 'timberframe.nn' has no attribute 'zzzzzz'"


def test_timeline_of_a_traced_run() -> None:
    metadata = tf.RunMetadata()
    x = tf.random_uniform([4, 4])
    with tf.Session() as session:
        session.run(tf.matmul(x, x), options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
    timeline = resolve("python.client.timeline")
    text = timeline.Timeline(metadata.step_stats).generate_chrome_trace_format(show_memory=True)
    assert any("MatMul" in str(event) for event in json.loads(text)["traceEvents"])
    with pytest.raises(TypeError, match="step_stats is dict without events"):
        timeline.Timeline(tf.RunMetadata().step_stats)


def test_generated_functions_take_positions_and_names() -> None:
    gen_math_ops, gen_nn_ops = resolve("python.ops.gen_math_ops"), resolve("python.ops.gen_nn_ops")
    product = gen_math_ops.mat_mul([[1.0, 2.0]], [[3.0], [4.0]], False, name="product")
    assert product.op.name == "product"
    with tf.Session() as session:
        assert session.run(product).tolist() == [[11.0]]
        assert session.run(gen_nn_ops.relu6_grad([1.0, 1.0], [3.0, 7.0])).tolist() == [1.0, 0.0]
    with pytest.raises(AttributeError, match="no attribute 'no_such_op'"):
        _ = gen_math_ops.no_such_op


def test_init_scope_leaves_branches_and_control_inputs() -> None:
    first = tf.constant(1.0)
    made = []

    def branch() -> tf.Tensor:
        with tf.init_scope():
            made.append(tf.constant(3.0, name="inside"))
        return first + 1.0

    with tf.name_scope("model"), tf.control_dependencies([first]):
        tf.cond(tf.constant(True), branch, lambda: first)
        with tf.init_scope():
            alone = tf.constant(2.0, name="alone")
    assert made[0].graph is tf.get_default_graph()
    assert alone.op.name == "model/alone"
    assert alone.op.control_inputs == ()


def test_tables_of_the_lines_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("one\n\nthree\n")
    numbers = tf.contrib.lookup.index_table_from_file(str(path), num_oov_buckets=1)
    words = tf.contrib.lookup.index_to_string_table_from_file(str(path), vocab_size=2, default_value="?")
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        assert session.run(numbers.lookup(tf.constant(["three", "", "four"]))).tolist() == [2, 1, 3]
        assert session.run(words.lookup(np.array([0, 1, 2]))).tolist() == [b"one", b"", b"?"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="no file is named"):
        tf.contrib.lookup.index_table_from_file("")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (b"", []), (b"\n", [b""]), (b"one\r\ntwo\r\n", [b"one", b"two"]), (b"one\n\n", [b"one", b""]),
        (b"one\ntwo", [b"one", b"two"]),
    ],
)  # fmt: skip
def test_lines_of_a_file_are_without_their_ends(tmp_path: Path, text: bytes, wanted: list[bytes]) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes(text)
    words = tf.contrib.lookup.index_to_string_table_from_file(str(path), default_value="?")
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        assert session.run(words.lookup(np.arange(len(wanted) + 1))).tolist() == [*wanted, b"?"]


def test_files_beside_a_program(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("words")
    program = tmp_path / "program.py"
    program.write_text(
        "from timberframe import resource_loader as r\n"
        "print(open(r.get_path_to_datafile('data.txt')).read(), r.load_resource('data.txt'))\n"
    )
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "words b'words'\n"


def test_deprecated_functions_warn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    deprecation = resolve("python.util.deprecation")
    said: list[str] = []
    monkeypatch.setattr(tf.logging, "warning", said.append)

    @deprecation.deprecated("2020-01-01", "Use g.")  # type: ignore[untyped-decorator]  # found by its path
    def add_one(x: int) -> int:
        return x + 1

    with deprecation.silence():
        assert add_one(0) == 1
    assert said == []
    assert [add_one(1), add_one(2)] == [2, 3]
    assert [text.partition("add_one is")[2] for text in said] == [
        " deprecated and will be removed after 2020-01-01. Use g."
    ]


@pytest.mark.parametrize(
    ("inside", "public"),
    [
        ("python.lib.io.file_io.FileIO", "gfile.GFile"),
        ("python.framework.tensor_util.constant_value", "get_static_value"),
        ("python.ops.custom_gradient.custom_gradient", "custom_gradient"),
        ("python.framework.test_util.TensorFlowTestCase", "test.TestCase"),
        ("python.feature_column.feature_column.numeric_column", "feature_column.numeric_column"),
        ("python.ops.signal.window_ops.hann_window", "signal.hann_window"),
        ("python.eager.function.defun", "contrib.eager.defun"),
        ("contrib.signal.stft", "signal.stft"),
    ],
)
def test_names_by_paths_are_the_public_ones(inside: str, public: str) -> None:
    assert resolve(inside) is resolve(public)
