"""Every exception is one of `tf.errors`, and of the class of Python that TensorFlow raises in its place."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import timberframe as tf

Act = Callable[[Any], Any]


@pytest.fixture
def t() -> Iterator[Any]:
    """Tensors of several kinds, a variable, and a session."""
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        yield SimpleNamespace(
            graph=graph,
            session=session,
            real=tf.constant(1.0),
            double=tf.constant(1.0, tf.float64),
            integer=tf.constant(1),
            text=tf.constant("a"),
            truth=tf.constant(True),
            vector=tf.constant([1.0, 2.0]),
            matrix=tf.ones([2, 3]),
            fed=tf.placeholder(tf.float32, [None]),
            unknown=tf.placeholder(tf.float32),
            variable=tf.Variable(1.0),
        )


TYPE_ERRORS: dict[str, Act] = {
    "real plus integer": lambda t: t.real + t.integer,
    "real plus double": lambda t: tf.add(t.real, t.double),
    "real plus text": lambda t: t.real + "a",
    "integer plus fraction": lambda t: t.integer + 1.5,
    "real plus complex": lambda t: t.real + 1j,
    "real plus object": lambda t: t.real + object(),
    "sum of truths": lambda t: t.truth + t.truth,
    "sine of an integer": lambda t: tf.sin(t.integer),
    "sine of text": lambda t: tf.sin("a"),
    "sum of text": lambda t: tf.reduce_sum(t.text),
    "product of dtypes": lambda t: tf.matmul(t.matrix, tf.ones([3, 2], tf.float64)),
    "join of dtypes": lambda t: tf.concat([t.vector, tf.constant([1])], 0),
    "stack of dtypes": lambda t: tf.stack([t.real, t.integer]),
    "sum of a list of dtypes": lambda t: tf.add_n([t.real, t.integer]),
    "fractional indices": lambda t: tf.gather(t.vector, 1.5),
    "fractional shape": lambda t: tf.reshape(t.vector, [1.5]),
    "condition that is no bool": lambda t: tf.where(t.vector, t.vector, t.vector),
    "unknown dtype": lambda t: tf.cast(t.real, "foo"),
    "dtype None": lambda t: tf.placeholder(None),
    "dtype of an object": lambda t: tf.as_dtype(object()),
    "constant of a kind": lambda t: tf.constant(1.5, tf.int32),
    "constant of a tensor": lambda t: tf.constant(t.real),
    "constant of an object": lambda t: tf.constant(object()),
    "constant of two kinds": lambda t: tf.constant([1, "a"]),
    "constant with None": lambda t: tf.constant([1, None]),
    "constant of dates": lambda t: tf.constant(np.array(["2020"], "datetime64")),
    "integer that no dtype holds": lambda t: tf.constant(2**70),
    "bool of a tensor": lambda t: bool(t.real > 0),
    "and of tensors": lambda t: (t.real > 0) and t.real,
    "length of a tensor": lambda t: len(t.vector),
    "iteration over an unknown size": lambda t: list(t.fed),
    "iteration over an unknown rank": lambda t: list(t.unknown),
    "iteration over a scalar": lambda t: list(t.real),
    "array of a tensor": lambda t: np.array(t.real),
    "index of text": lambda t: t.vector["a"],
    "fractional index": lambda t: t.vector[1.5],
    "real tensor as an index": lambda t: t.vector[t.real],
    "bool as an index": lambda t: t.vector[True],
    "shape of text": lambda t: tf.zeros("a"),
    "shape of fractions": lambda t: tf.zeros([1.5]),
    "shape of objects": lambda t: tf.TensorShape([object()]),
    "index of a shape": lambda t: t.matrix.shape["a"],
    "placeholder of a wrong shape": lambda t: tf.placeholder(tf.float32, "a"),
    "set_shape": lambda t: t.fed.set_shape("a"),
    "number as a name": lambda t: tf.placeholder(tf.float32, name=3),
    "number as a scope": lambda t: tf.name_scope(3).__enter__(),
    "number as a device": lambda t: tf.device(3).__enter__(),
    "number as a control input": lambda t: tf.control_dependencies([1]).__enter__(),
    "tensor as control inputs": lambda t: tf.control_dependencies(t.real).__enter__(),
    "number as a variable's name": lambda t: tf.get_variable(3, [2]),
    "number as a name to look up": lambda t: t.graph.get_tensor_by_name(3),
    "list as the name of a collection": lambda t: tf.get_collection([1]),
    "branches of dtypes": lambda t: tf.cond(t.truth, lambda: 1, lambda: 2.0),
    "branch that is no function": lambda t: tf.cond(t.truth, 1, 2),
    "predicate that is a bool": lambda t: tf.cond(True, lambda: 1, lambda: 2),
    "body that is no function": lambda t: tf.while_loop(1, 2, [0]),
    "body of another dtype": lambda t: tf.while_loop(lambda i: i < 1, lambda i: 1.5, [0]),
    "seed of text": lambda t: tf.random_normal([2], seed="a"),
    "random integers": lambda t: tf.random_normal([2], dtype=tf.int32),
    "assignment to a tensor": lambda t: tf.assign(t.real, 1.0),
    "assignment of text": lambda t: t.variable.assign("a"),
    "initializer of numbers": lambda t: tf.variables_initializer([3]),
    "initializer of a number": lambda t: tf.variables_initializer(3),
    "gated number": lambda t: tf.tuple(3),
    "norm of a number": lambda t: tf.clip_by_global_norm(3, 1.0),
    "equation that is a number": lambda t: tf.einsum(3, t.vector),
    "identity matrix of a fraction": lambda t: tf.eye(1.5),
    "identity matrix of text": lambda t: tf.eye(2, dtype=tf.string),
    "saturated text": lambda t: tf.saturate_cast(t.text, tf.int32),
    "session of a number": lambda t: tf.Session(3),
    "session of no graph": lambda t: tf.Session(graph=3),
    "config of a number": lambda t: tf.Session(config=3),
    "fetch None": lambda t: t.session.run(None),
    "fetch of a number": lambda t: t.session.run([t.real, 3]),
    "feeds of a number": lambda t: t.session.run(t.real, 3),
    "feed of a number's value": lambda t: t.session.run(t.real, {3: 1}),
    "feed of an object": lambda t: t.session.run(t.unknown, {t.unknown: object()}),
    "feed of a tensor": lambda t: t.session.run(t.unknown, {t.unknown: t.real}),
    "options of a number": lambda t: t.session.run(t.real, options=3),
    "metadata of a number": lambda t: t.session.run(t.real, run_metadata=3),
    "callable of a number": lambda t: t.session.make_callable(t.real, 3),
    "evaluation in a number": lambda t: t.real.eval(session=3),
    "import of a number": lambda t: tf.import_graph_def(3),
    "import with a wrong map": lambda t: tf.import_graph_def(tf.GraphDef(), input_map=3),
    "import with wrong results": lambda t: tf.import_graph_def(tf.GraphDef(), return_elements=3),
    "loss None": lambda t: tf.train.GradientDescentOptimizer(0.1).minimize(None),
    "variables of a number": lambda t: tf.train.GradientDescentOptimizer(0.1).minimize(t.variable, var_list=3),
    "gradients of a number": lambda t: tf.train.GradientDescentOptimizer(0.1).apply_gradients(3),
    "gradients that are no pairs": lambda t: tf.train.GradientDescentOptimizer(0.1).apply_gradients([3]),
    "averages of numbers": lambda t: tf.train.ExponentialMovingAverage(0.9).apply([3]),
    "saver of a number": lambda t: tf.train.Saver(3),
    "saver of numbers": lambda t: tf.train.Saver([3]),
    "saver that keeps text": lambda t: tf.train.Saver([t.variable], max_to_keep="a"),
    "save to None": lambda t: tf.train.Saver([t.variable]).save(t.session, None),
    "restore of a number": lambda t: tf.train.Saver([t.variable]).restore(t.session, 3),
    "latest of None": lambda t: tf.train.latest_checkpoint(None),
    "structures that differ": lambda t: tf.nest.assert_same_structure([1], [[1]]),
}


@pytest.mark.parametrize("name", TYPE_ERRORS)
def test_a_wrong_type_is_an_invalid_argument_and_a_type_error(t: Any, name: str) -> None:
    with pytest.raises(tf.errors.InvalidTypeError) as caught:
        TYPE_ERRORS[name](t)
    assert isinstance(caught.value, tf.errors.InvalidArgumentError)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, ValueError)
    assert caught.value.error_code == 3


OTHERS: dict[str, tuple[Act, tuple[type[BaseException], ...]]] = {
    "addition to a finalized graph": (lambda t: (t.graph.finalize(), t.real + 1)[1], (RuntimeError,)),
    "run of a closed session": (lambda t: (t.session.close(), t.session.run(t.real))[1], (RuntimeError,)),
    "evaluation without a session": (lambda t: _in_thread(t.real.eval), (ValueError,)),
    "unknown operation": (lambda t: t.graph.get_operation_by_name("no"), (KeyError, LookupError)),
    "unknown tensor": (lambda t: t.graph.get_tensor_by_name("no:0"), (KeyError,)),
    "unknown output": (lambda t: t.graph.get_tensor_by_name("Const:7"), (KeyError,)),
    "fetch of an unknown name": (lambda t: t.session.run("no"), (ValueError, KeyError)),
    "unknown control input": (lambda t: tf.control_dependencies(["no"]).__enter__(), (KeyError,)),
    "size that a shape lacks": (lambda t: t.matrix.shape[5], (IndexError,)),
    "unequal sizes to compare": (lambda t: tf.assert_equal(t.vector, t.matrix), (ValueError,)),
    "text that cannot be encoded": (lambda t: tf.constant("\ud800"), (ValueError,)),
    "negative identity matrix": (lambda t: tf.eye(-1), (ValueError,)),
    "size of over 63 bits": (lambda t: tf.zeros([2**70]), (ValueError,)),
    "more elements than can be counted": (lambda t: tf.zeros([2**32, 2**32, 0]), (ValueError,)),
    "constant of over 64 dimensions": (lambda t: tf.constant(1.0, shape=[1] * 65), (ValueError,)),
    "constant larger than memory": (lambda t: tf.constant(1.0, shape=[2**50]), (MemoryError,)),
    "run of over 64 dimensions": (lambda t: t.session.run(tf.zeros([1] * 65)), (ValueError,)),
    "reshape to over 64 dimensions": (lambda t: t.session.run(tf.reshape(t.real, [1] * 65)), (ValueError,)),
    "identity matrix larger than memory": (lambda t: t.session.run(tf.eye(2**20)), (MemoryError,)),
}


def _in_thread(act: Callable[[], Any]) -> Any:
    """Returns what a function gives in another thread, which has no default session."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(act).result()


@pytest.mark.parametrize("name", OTHERS)
def test_an_error_is_of_the_class_that_tensorflow_raises(t: Any, name: str) -> None:
    act, wanted = OTHERS[name]
    with pytest.raises(tf.errors.OpError) as caught:
        act(t)
    assert all(isinstance(caught.value, kind) for kind in wanted)


def test_the_text_of_an_error_is_its_message_whatever_its_class(t: Any) -> None:
    with pytest.raises(KeyError) as caught:
        t.graph.get_operation_by_name("no")
    assert str(caught.value).startswith("operation 'no': not in the graph")


def test_an_op_error_of_a_conversion_names_the_op_and_its_input(t: Any) -> None:
    with pytest.raises(TypeError, match=r"AddV2 'add': y: tensor 'Const_\d:0' has dtype int32; it must be float32"):
        t.real + t.integer


def test_zeros_of_many_dimensions_can_be_built(t: Any) -> None:
    assert tf.zeros([1] * 65).shape.ndims == 65


def test_large_identity_matrix_is_no_constant_in_the_graph(t: Any) -> None:
    assert tf.eye(2**20).shape.as_list() == [2**20, 2**20]
    assert t.graph.as_graph_def().ByteSize() < 10_000


@pytest.mark.parametrize("sizes", [(40,), (40, 50), (50, 40), (0, 5), (5, 0)])
@pytest.mark.parametrize("dtype", [tf.float32, tf.bool, tf.int8, tf.complex64, tf.bfloat16])
def test_identity_matrices_that_are_computed(t: Any, sizes: tuple[int, ...], dtype: tf.DType) -> None:
    found = t.session.run(tf.eye(*sizes, dtype=dtype))
    np.testing.assert_array_equal(found.astype(np.complex64), np.eye(*sizes))


def test_identity_matrices_of_sizes_that_are_fed(t: Any) -> None:
    n = tf.placeholder(tf.int32, [])
    np.testing.assert_array_equal(t.session.run(tf.eye(n, 2, [n]), {n: 3}), [np.eye(3, 2)] * 3)


@pytest.mark.parametrize("dtype", [tf.int32, tf.uint8, tf.float16, tf.float64])
def test_saturated_complex_numbers_become_their_real_parts(t: Any, dtype: tf.DType) -> None:
    x = np.array([3e9 + 5j, -1e300 - 1j, 1 - 2j])
    limits = tf.as_dtype(dtype)
    wanted = np.clip(x.real, float(limits.min), float(limits.max)).astype(dtype.as_numpy_dtype)
    np.testing.assert_array_equal(t.session.run(tf.saturate_cast(tf.constant(x), dtype)), wanted)


def test_saturated_complex_numbers_stay_within_a_narrower_dtype(t: Any) -> None:
    most = np.finfo(np.float32).max
    x = tf.constant([complex(1e300, -1e300), complex(1, 2)], tf.complex128)
    assert t.session.run(tf.saturate_cast(x, tf.complex64)).tolist() == [complex(most, -most), complex(1, 2)]


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))])
def test_a_session_config_can_be_copied(duplicate: Any) -> None:
    config = tf.SessionConfig(device_count={"CPU": 2}, device_options={"CPU": {"isa": "x"}}, plugins=["cpu"])
    assert duplicate(config) == config
