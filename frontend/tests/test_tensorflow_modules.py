"""What programs and libraries for TensorFlow take from its own modules: `timberframe.compat.internal`."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe.compat.programs import resolve

pytestmark = pytest.mark.usefixtures("graph")


def test_parameters_of_functions_are_those_that_they_were_defined_with() -> None:
    inspection = resolve("python.util.tf_inspect")
    assert inspection.getfullargspec(tf.concat).args == ["values", "axis", "name"]
    assert inspection.getargspec(tf.nn.relu).args[0] == "features"
    assert inspection.isfunction(tf.concat)


def test_parameters_of_a_decorated_function_are_those_of_its_decorator_as_python_has_them() -> None:
    @functools.wraps(tf.concat)
    def around(*args: Any) -> Any:
        return tf.concat(*args)

    assert resolve("python.util.tf_inspect").getargspec(around).varargs == "args"


def test_a_function_of_tensors_has_the_gradient_that_is_given_for_it() -> None:
    function = resolve("python.framework.function")

    @function.Defun(tf.float32, tf.float32, python_grad_func=lambda op, grad: (grad * op.inputs[1], None))  # type: ignore[untyped-decorator]  # found by its path
    def clipped(x: Any, limit: Any) -> Any:
        return tf.minimum(x, limit)

    x = tf.constant([1.0, 5.0])
    y = clipped(x, 3.0, name="call")
    with tf.Session() as session:
        assert session.run([y, *tf.gradients(y, x)])[1].tolist() == [3.0, 3.0]
        assert session.run(y).tolist() == [1.0, 3.0]


def test_a_function_of_tensors_without_a_gradient_of_its_own_has_that_of_its_operations() -> None:
    square = resolve("python.framework.function").Defun(tf.float32, func_name="Square_1")(lambda x: x * x)
    x = tf.constant(3.0)
    with tf.Session() as session:
        assert session.run(tf.gradients(square(x), x)) == [6.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="'Square_1': 2 arguments; it takes 1 tensors"):
        square(x, x)


def test_items_of_a_collection_are_written_and_read_by_registered_functions(tmp_path: Path) -> None:
    ops = resolve("python.framework.ops")
    ops.register_proto_function(
        "names of parts",
        proto_type=tf.train.SaverDef,
        to_proto=lambda item, export_scope=None: tf.train.SaverDef(filename_tensor_name=item["name"]),
        from_proto=lambda proto, import_scope=None: {"name": proto.filename_tensor_name},
    )
    tf.add_to_collection("names of parts", {"name": "first"})
    tf.constant(1.0)
    tf.train.export_meta_graph(str(tmp_path / "graph.meta"))
    with tf.Graph().as_default():
        tf.train.import_meta_graph(str(tmp_path / "graph.meta"))
        assert tf.get_collection("names of parts") == [{"name": "first"}]
    with pytest.raises(tf.errors.InvalidArgumentError, match="'names of parts' has functions already"):
        ops.register_proto_function("names of parts")


@pytest.mark.parametrize("name", ["a", "^a", "loc:@a", "a/b:0"])
def test_names_get_a_scope_and_lose_it_again(name: str) -> None:
    ops = resolve("python.framework.ops")
    inside = ops.prepend_name_scope(name, "scope/")
    assert inside == name.replace("a", "scope/a", 1)
    assert ops.strip_name_scope(inside, "scope") == name
    assert ops.strip_name_scope("x/scope/a", "scope") == "x/scope/a"


def test_a_pure_variable_scope_opens_no_name_scope() -> None:
    scopes = resolve("python.ops.variable_scope")
    with tf.variable_scope("outer") as outer:
        made = tf.get_variable("v", [2])
    with scopes._pure_variable_scope(outer, reuse=True):
        assert tf.get_variable("v", [2]) is made
        assert tf.constant(1.0, name="c").name == "c:0"


def test_modules_of_ops_have_the_functions_of_the_generated_ones(tmp_path: Path) -> None:
    v = tf.get_variable("v", initializer=[1.0, 2.0, 3.0])
    with tf.Session() as session:
        session.run(v.initializer)
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
        part = tf.Variable.SaveSliceInfo("v", [3], [1], [2])
        assert part.spec == "3 1,2"
        read = resolve("python.ops.io_ops").restore_v2(path, ["v"], [part.spec], [tf.float32])[0]
        assert session.run(read).tolist() == [2.0, 3.0]


def test_variables_say_which_part_of_a_whole_they_are() -> None:
    whole = tf.get_variable("w", [4], partitioner=tf.fixed_size_partitioner(2))
    assert isinstance(whole, resolve("python.ops.variables.PartitionedVariable"))
    assert [v._save_slice_info.var_offset for v in whole] == [[0], [2]]
    assert tf.Variable(1.0)._get_save_slice_info() is None


def test_a_condition_that_is_known_is_taken_at_once() -> None:
    smart = resolve("python.framework.smart_cond")
    assert smart.smart_cond(tf.constant(True), lambda: 1, lambda: 2) == 1
    assert smart.smart_constant_value(tf.placeholder(tf.bool)) is None
    assert resolve("python.layers.utils.constant_value")(False) is False


def test_states_of_zeros_have_the_structure_of_sizes() -> None:
    zeros = resolve("python.ops.rnn_cell_impl")._zero_state_tensors((2, [3, tf.TensorShape([4, 5])]), 6, tf.float32)
    assert zeros[1][1].shape == (6, 4, 5)


def test_an_initializer_of_a_programs_own_is_one() -> None:
    class Twos(resolve("python.ops.init_ops").Initializer):  # type: ignore[misc]  # found by its path
        def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
            return tf.fill(shape, tf.constant(2, dtype))

    v = tf.get_variable("v", [3], initializer=Twos())
    with tf.Session() as session:
        session.run(v.initializer)
        assert np.array_equal(session.run(v), [2, 2, 2])


@pytest.mark.parametrize(
    ("path", "public"),
    [
        ("contrib.crf.python.ops.crf.crf_log_likelihood", "contrib.crf.crf_log_likelihood"),
        ("contrib.data.python.ops.batching.map_and_batch", "contrib.data.map_and_batch"),
        ("contrib.distributions.python.ops.categorical.Categorical", "distributions.Categorical"),
        ("contrib.distributions.python.ops.mvn_tril.RegisterKL", "distributions.RegisterKL"),
        ("contrib.layers.python.layers.optimizers.optimize_loss", "contrib.layers.optimize_loss"),
        ("contrib.legacy_seq2seq.python.ops.seq2seq.sequence_loss", "contrib.legacy_seq2seq.sequence_loss"),
        ("contrib.losses.python.losses.loss_ops.get_total_loss", "contrib.losses.get_total_loss"),
        ("contrib.opt.python.training.nadam_optimizer.NadamOptimizer", "contrib.opt.NadamOptimizer"),
        ("contrib.rnn.python.ops.lstm_ops.LSTMBlockCell", "contrib.rnn.LSTMBlockCell"),
        ("contrib.slim.nets.resnet_v1.resnet_v1_50", "contrib.slim.nets.resnet_v1.resnet_v1_50"),
        ("contrib.training.python.training.hparam.HParams", "contrib.training.HParams"),
        ("python.framework.tensor_spec.TensorSpec", "TensorSpec"),
        ("python.ops.gradient_checker.compute_gradient_error", "test.compute_gradient_error"),
        ("python.ops.linalg.linear_operator_diag.LinearOperatorDiag", "linalg.LinearOperatorDiag"),
    ],
)  # fmt: skip
def test_modules_of_contrib_and_of_its_packages_have_what_is_public_there(path: str, public: str) -> None:
    assert resolve(path) is resolve(public)
