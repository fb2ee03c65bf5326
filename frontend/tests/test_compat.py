"""timberframe.compat: programs that import tensorflow, and texts of either type."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import timberframe as tf
from timberframe.compat.__main__ import main
from timberframe.compat.absent import NEVER
from timberframe.compat.checking import check
from timberframe.compat.internal import MODULES
from timberframe.compat.programs import resolve

PROGRAM = """
import tensorflow.compat.v1 as tf
import tensorflow
from tensorflow.contrib import rnn
from tensorflow.python_io import TFRecordWriter

tf.disable_v2_behavior()

assert tensorflow.__version__ == tf.VERSION == "1.15.5"

def main(argv):
    x = tf.placeholder(tf.float32, [None, 4])
    y = tf.layers.dense(x, 3, kernel_initializer=tf.ones_initializer())
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        print(argv[1:], session.run(y, {x: [[1, 2, 3, 4]]}).tolist(), rnn.GRUCell.__name__)

if __name__ == "__main__":
    tf.app.run()
"""


def test_the_first_version_is_the_whole_library() -> None:
    import timberframe.compat.v1 as v1

    assert v1 is tf
    assert tf.compat.v1 is tf


def test_texts_and_bytes() -> None:
    assert (tf.compat.as_bytes("ä"), tf.compat.as_text(b"a"), tf.compat.as_str("a")) == ("ä".encode(), "a", "a")
    assert (tf.compat.as_str_any(3), tf.compat.as_str_any(b"a")) == ("3", "a")
    with pytest.raises(tf.errors.InvalidTypeError, match="got int; bytes or a text is required"):
        tf.compat.as_bytes(3)


@pytest.mark.slow
def test_programs_run_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    command = [sys.executable, "-m", "timberframe.compat", "run", str(path), "one", "two"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "['one', 'two'] [[10.0, 10.0, 10.0]] GRUCell\n"), done.stderr


@pytest.mark.slow
def test_modules_of_packages_run_unchanged(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "parts.py").write_text("import tensorflow as tf\nSIX = tf.constant(6)\n")
    text = "import sys\nimport tensorflow as tf\nfrom . import parts\n"
    text += "with tf.Session() as sess:\n    print(sess.run(parts.SIX * 7), sys.argv[1:])\n"
    (tmp_path / "package" / "main.py").write_text(text)
    command = [sys.executable, "-m", "timberframe.compat", "run", "-m", "package.main", "--steps=3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "42 ['--steps=3']\n"), done.stderr


STARTS_OTHERS = """
import multiprocessing, subprocess, sys
import tensorflow as tf

def product(queue):
    with tf.Session() as sess:
        queue.put(int(sess.run(tf.constant(6) * 7)))

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    worker = context.Process(target=product, args=(queue,))
    worker.start()
    print(queue.get(timeout=60))
    worker.join()
    other = "import tensorflow.contrib.rnn as rnn; print(rnn.GRUCell.__module__)"
    print(subprocess.run([sys.executable, "-c", other], capture_output=True, text=True).stdout.split(".")[0])
"""


@pytest.mark.slow
def test_an_error_of_a_program_has_its_own_traceback(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import tensorflow as tf\ndef layer(x):\n  return tf.matmul(x, tf.zeros([5, 3]))\nlayer(tf.zeros([2, 4]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "timberframe.compat", "run", str(program)], capture_output=True, text=True
    )
    assert done.returncode == 1
    first, *lines = done.stderr.splitlines()
    assert first == "Traceback (most recent call last):"
    assert lines[0] == f'  File "{program}", line 4, in <module>'
    assert f'  File "{program}", line 3, in layer' in lines
    assert lines[-1].startswith("timberframe_core.errors.InvalidArgumentError: MatMul 'MatMul': matrices of shapes")


def test_errors_are_made_as_tensorflows_are() -> None:
    for error in (
        tf.errors.OutOfRangeError(None, None, "no more data"),
        tf.errors.OutOfRangeError(node_def=None, op=None, message="no more data"),
    ):
        assert (str(error), error.message, error.op, error.error_code) == ("no more data", "no more data", None, 11)
    op = tf.no_op(name="nothing")
    assert tf.errors.InternalError(None, op, "broken").node == "nothing"


def test_processes_that_a_program_starts_have_tensorflow_too(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(STARTS_OTHERS)
    command = [sys.executable, "-m", "timberframe.compat", "run", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "42\ntimberframe\n"), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import tensorflow as tf\ntf.keras", "AttributeError: tf.keras: is not in timberframe; Keras is a library"),
        ("import tensorflow.keras.layers", "ModuleNotFoundError: tensorflow.keras: is not in timberframe; Keras is"),
    ],
)
def test_what_is_missing_is_named_where_it_is_used(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "program.py"
    path.write_text(text)
    command = [sys.executable, "-m", "timberframe.compat", "run", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert message in done.stderr


def test_check_lists_what_is_missing_with_lines() -> None:
    text = """
import tensorflow as tf
from tensorflow.keras import layers as kl
x = tf.nn.relu(tf.pack([1, 2]))
y = tf.nn.seq2seq.rnn_decoder(x)
tf.pack(x).eval().whatever
other.pack()
"""
    found = check(text)
    assert [(m.name, m.line, m.uses) for m in found] == [
        ("keras.layers", 3, 1),
        ("pack", 4, 2),
        ("nn.seq2seq", 5, 1),
    ]
    assert found[1].hint == "tf.stack"


def test_check_prints_a_line_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "program.py"
    path.write_text("import tensorflow as tf\ntf.mul(1, 2)\ntf.mul(1, 2)\n")
    assert main(["check", str(path)]) == 1
    assert capsys.readouterr().out == f"{path}:2: tf.mul is missing, 2 times; tf.multiply\n"
    path.write_text(PROGRAM)
    assert main(["check", str(path)]) == 0
    assert capsys.readouterr().out == "nothing is missing\n"


def test_check_of_other_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "program.py"
    path.write_text("print 'x'\n")
    (tmp_path / "other.py").write_text("import tensorflow as tf\ntf.mul(1, 2)\n")
    (tmp_path / "latin.py").write_bytes("x = 'ä'\n".encode("latin-1"))
    assert main(["check", str(path), str(tmp_path / "latin.py"), str(tmp_path / "other.py")]) == 1
    first, second, third = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{path}:1: Missing parentheses")
    assert first.endswith("a program of Python 3 is required")
    assert second.startswith(f"{tmp_path}/latin.py:1: ")
    assert third == f"{tmp_path}/other.py:2: tf.mul is missing; tf.multiply"
    assert main(["check", str(tmp_path / "no.py")]) == 2
    assert "no.py: does not exist" in capsys.readouterr().err


def test_check_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("b.py", "inner/a.py", ".git/hook.py", "inner/readme.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("import tensorflow as tf\ntf.mul(1, 2)\n")
    assert main(["check", str(tmp_path)]) == 1
    places = [line.partition(": ")[0] for line in capsys.readouterr().out.splitlines()]
    assert places == [f"{tmp_path}/b.py:2", f"{tmp_path}/inner/a.py:2"]


@pytest.mark.parametrize("version", [3, 4])
def test_check_of_a_notebook(tmp_path: Path, capsys: pytest.CaptureFixture[str], version: int) -> None:
    key = "input" if version == 3 else "source"
    cells = [
        {"cell_type": "markdown", "source": ["tf.mul"]},
        {"cell_type": "code", key: ["%matplotlib inline\n", "import tensorflow as tf\n", "!ls\n"]},
        {"cell_type": "code", key: "%%bash\necho tf.mul(\n"},
        {"cell_type": "code", key: ["%%time\n", "x = 1\n", "tf.mul(x, 2)"]},
    ]
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps({"worksheets": [{"cells": cells}]} if version == 3 else {"cells": cells}))
    assert main(["check", str(path)]) == 1
    assert capsys.readouterr().out == f"{path}:cell 3, line 3: tf.mul is missing; tf.multiply\n"
    path.write_text("{}")
    assert main(["check", str(path)]) == 1
    assert "a notebook's JSON is required" in capsys.readouterr().out


def test_check_follows_names_that_stand_for_modules() -> None:
    text = """
import importlib, tensorflow as tf
from tensorflow.python.ops import variable_scope as vs
slim = tf.contrib.slim
layers = slim.layers
def network(x):
    with vs.variable_scope("a"):
        return layers.nothing(slim.conv2d(x, 3, 3), getattr(tf.nn, "no_such"), getattr(tf, "none", None))
importlib.import_module("tensorflow.contrib.nowhere")
import tensorflow.matmul
from tensorflow.contrib.nowhere import *
"""
    assert [(m.name, m.line) for m in check(text)] == [
        ("contrib.slim.layers.nothing", 8),
        ("nn.no_such", 8),
        ("contrib.nowhere", 9),
        ("matmul", 10),
    ]


def test_modules_of_the_name_of_a_function_are_both() -> None:
    for module in ("variable_scope", "gradients", "confusion_matrix"):
        found = resolve(f"python.ops.{module}")
        assert getattr(found, module) is getattr(tf, module)
        assert callable(found)
    assert resolve("python.saved_model.simple_save.simple_save") is tf.saved_model.simple_save
    x = tf.constant(3.0)
    with tf.Session() as session:
        assert session.run(resolve("python.ops.gradients")(x * x, x)) == [6]
        assert session.run(resolve("python.ops.gradients_impl").gradients(x * x, x)) == [6]


LOOKS_THROUGH_MODULES = """
import inspect, pydoc, sys
import tensorflow as tf
assert pydoc.locate("tensorflow.contrib.rnn.GRUCell") is tf.contrib.rnn.GRUCell
assert pydoc.locate("tensorflow.matmul") is tf.matmul
try:
    import tensorflow.matmul
except ImportError as e:
    print(e)
from tensorflow.contrib.rnn import LSTMCell
members = sys.modules["tensorflow.contrib.rnn"].__dict__
assert inspect.isclass(members["LSTMCell"]) and inspect.isclass(members["MultiRNNCell"])
print(tf.matmul.__name__, tf.VERSION)
"""


@pytest.mark.slow
def test_modules_are_looked_through_as_pythons(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(LOOKS_THROUGH_MODULES)
    command = [sys.executable, "-m", "timberframe.compat", "run", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "tensorflow.matmul: is no module\nmatmul 1.15.5\n"), done.stderr


@pytest.mark.parametrize("name", NEVER)
def test_what_is_never_here_is_not(name: str) -> None:
    with pytest.raises(AttributeError):
        resolve(name)


@pytest.mark.parametrize("name", MODULES)
def test_modules_of_tensorflow_have_the_names_of_public_ones(name: str) -> None:
    assert {value for value in dir(resolve(name)) if not value.startswith("__")}


@pytest.mark.parametrize(
    ("inside", "public"),
    [
        ("python.ops.array_ops.concat", "concat"),
        ("python.ops.nn_ops.relu", "nn.relu"),
        ("python.ops.rnn.rnn_cell_impl.LSTMStateTuple", "nn.rnn_cell.LSTMStateTuple"),
        ("python.framework.tensor_shape.TensorShape", "TensorShape"),
        ("python.training.optimizer.Optimizer", "train.Optimizer"),
        ("core.framework.summary_pb2.Summary", "Summary"),
        ("contrib.rnn.python.ops.core_rnn.static_rnn", "contrib.rnn.static_rnn"),
        ("python.ops.distributions.normal.Normal", "distributions.Normal"),
        ("python.ops.metrics_impl._streaming_confusion_matrix", "metrics.confusion.streaming_confusion_matrix"),
    ],
)
def test_names_by_paths_of_modules_are_the_public_ones(inside: str, public: str) -> None:
    assert resolve(inside) is resolve(public)


@pytest.mark.parametrize("name", ["python.ops.array_ops.nothing", "python.ops.nothing_ops", "core.nothing"])
def test_modules_of_tensorflow_have_no_other_names(name: str) -> None:
    with pytest.raises(AttributeError, match="nothing"):
        resolve(name)


def test_a_decorated_function_has_the_name_of_the_one_that_it_stands_for() -> None:
    tf_decorator = resolve("python.util.tf_decorator")

    def double(x: int) -> int:
        """Twice x."""
        return 2 * x

    made = tf_decorator.make_decorator(double, lambda x: double(x) + 1)
    assert (made.__name__, made.__doc__, made(3)) == ("double", "Twice x.", 7)
    assert tf_decorator.unwrap(made) == ([made], double)
