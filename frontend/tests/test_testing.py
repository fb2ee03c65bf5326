"""tf.test: the TestCase of programs, and gradients compared with differences."""

from __future__ import annotations

import unittest
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.plugin.contracts import DeviceAttributes


class Example(tf.test.TestCase):
    def runTest(self) -> None:  # noqa: N802 - unittest's name
        """Nothing: the tests below call its assertions."""


@pytest.fixture
def case() -> Any:
    example = Example()
    example.setUp()
    yield example
    example.tearDown()


def test_a_program_of_tests_runs() -> None:
    class Tests(tf.test.TestCase):
        def test_sum(self) -> None:
            with self.test_session() as session:
                self.assertAllEqual(session.run(tf.constant([1, 2]) + 1), [2, 3])
                self.assertAllClose(tf.constant(1.0), 1.0)

        def test_graph_is_fresh(self) -> None:
            assert tf.get_default_graph().get_operations() == []
            assert tf.get_default_graph().seed == 87654321

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Tests).run(result)
    assert (len(result.skipped), result.failures, result.errors) == (1, [], [])
    assert result.testsRun == 3


@pytest.mark.parametrize(
    ("holds", "fails"),
    [
        (lambda c: c.assertAllEqual([1.0, np.nan], [1.0, np.nan]), lambda c: c.assertAllEqual([1.0], [2.0])),
        (lambda c: c.assertNotAllEqual([1], [2]), lambda c: c.assertNotAllEqual([1], [1])),
        (lambda c: c.assertAllClose({"a": [1.0]}, {"a": [1.0 + 1e-7]}), lambda c: c.assertAllClose({"a": 1}, {"b": 1})),
        (lambda c: c.assertAllClose([[1.0], [1.0, 2.0]], [[1.0], [1.0, 2.0]]), lambda c: c.assertAllClose(1.0, 1.1)),
        (
            lambda c: c.assertAllCloseAccordingToType(np.float16(1), np.float16(1.0005)),
            lambda c: c.assertAllCloseAccordingToType(1.0, 1.0005),
        ),
        (lambda c: c.assertNear(1, 1.1, 0.2), lambda c: c.assertNear(1, 1.1, 0.05)),
        (lambda c: c.assertArrayNear([1, 2], [1.1, 2], 0.2), lambda c: c.assertArrayNear([1], [1, 2], 1)),
        (lambda c: c.assertNDArrayNear([1, 2], [1.1, 2], 0.2), lambda c: c.assertNDArrayNear([1.0], [2.0], 0.5)),
        (lambda c: c.assertShapeEqual(np.ones(2), tf.ones(2)), lambda c: c.assertShapeEqual(np.ones(2), tf.ones(3))),
        (lambda c: c.assertDTypeEqual(np.ones(2), np.float64), lambda c: c.assertDTypeEqual(np.ones(2), np.int32)),
        (lambda c: c.assertStartsWith("abc", "ab"), lambda c: c.assertStartsWith("abc", "b")),
        (lambda c: c.assertNotAllClose([1.0], [1.1]), lambda c: c.assertNotAllClose([1.0], [1.0 + 1e-9])),
        (lambda c: c.assertAllGreater(tf.constant([2, 3]), 1), lambda c: c.assertAllGreater([1, 2], 1)),
        (lambda c: c.assertAllGreaterEqual([1, 2], 1), lambda c: c.assertAllGreaterEqual([0, 2], 1)),
        (lambda c: c.assertAllLess([0, -1], 1), lambda c: c.assertAllLess([0, 1], 1)),
        (lambda c: c.assertAllLessEqual([0, 1], 1), lambda c: c.assertAllLessEqual([0, np.nan], 1)),
        (lambda c: c.assertAllInSet([1, 2, 1], {1, 2}), lambda c: c.assertAllInSet([1, 3], {1, 2})),
        (lambda c: c.assertAllInRange([1, 2], 1, 2), lambda c: c.assertAllInRange([1, 2], 1, 2, open_upper_bound=True)),
        (lambda c: c.assertDeviceEqual("/gpu:0", "/device:GPU:0"), lambda c: c.assertDeviceEqual("/gpu:0", "/cpu:0")),
        (lambda c: c.assertLen([1, 2], 2), lambda c: c.assertEmpty([1])),
        (lambda c: c.assertItemsEqual([1, 2], [2, 1]), lambda c: c.assertBetween(3, 1, 2)),
        (
            lambda c: c.assertProtoEquals('name: "a"', tf.NodeDef(name="a")),
            lambda c: c.assertProtoEquals(tf.NodeDef(name="b"), tf.NodeDef(name="a")),
        ),
    ],
)
def test_assertions(case: Any, holds: Callable[[Any], None], fails: Callable[[Any], None]) -> None:
    with case.session():
        holds(case)
        with pytest.raises(AssertionError):
            fails(case)


def test_errors_of_operations(case: Any) -> None:
    x = tf.placeholder(tf.float32)
    with case.session() as session, case.assertRaisesOpError("Reshape"):
        session.run(tf.reshape(x, [3]), {x: [1, 2]})
    with pytest.raises(AssertionError, match="was not raised"), case.assertRaisesOpError("x"):
        pass


def test_the_cached_session_is_one(case: Any) -> None:
    with case.cached_session() as first:
        v = tf.Variable(1)
        first.run(v.initializer)
    with case.cached_session() as second:
        assert second.run(v) == 1
    with pytest.raises(tf.errors.InvalidArgumentError, match="graph is another one"), case.cached_session(tf.Graph()):
        pass


def test_folders_for_files(case: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TEST_TMPDIR", str(tmp_path))
    assert tf.test.get_temp_dir() == str(tmp_path)
    assert Path(case.get_temp_dir()).is_dir()


def test_gradients_are_compared_with_differences() -> None:
    with tf.Graph().as_default(), tf.Session():
        x = tf.constant([0.5, 1.0], tf.float64)
        y = tf.stack([x[0] * x[1], tf.sin(x[0]), x[1]])
        by_gradients, by_differences = tf.test.compute_gradient(x, [2], y, [3], np.array([0.5, 2.0]))
        np.testing.assert_allclose(by_gradients, [[2.0, np.cos(0.5), 0.0], [0.5, 0.0, 1.0]])
        np.testing.assert_allclose(by_differences, by_gradients, rtol=1e-5, atol=1e-9)
        assert tf.test.compute_gradient_error(x, [2], y, [3]) < 1e-5
        assert tf.test.compute_gradient_error([x], [[2]], y, [3]) < 1e-5


def test_gradients_of_rows() -> None:
    with tf.Graph().as_default(), tf.Session():
        x = tf.constant(np.arange(6.0).reshape(3, 2))
        assert tf.test.compute_gradient_error(x, [3, 2], tf.gather(x, [2, 0, 2]), [3, 2]) < 1e-8


def test_a_driver_for_the_cpu_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    from timberframe.python.client import device_lib
    from timberframe.test import devices

    def device(kind: str, number: int, host: bool, is_cpu: bool) -> SimpleNamespace:
        spec, attributes = f"/device:{kind}:{number}", DeviceAttributes(memory=1)
        return SimpleNamespace(type=kind, spec=spec, name=spec, host_memory=host, attributes=attributes, is_cpu=is_cpu)

    found = [device("CPU", 0, True, False), device("ACME", 0, False, True)]
    for module in (devices, device_lib):
        monkeypatch.setattr(module, "devices_for", lambda config: found)
    assert not tf.test.is_gpu_available()
    assert tf.test.gpu_device_name() == ""
    assert [d.device_type for d in device_lib.list_local_devices()] == ["CPU"]
    found.append(device("ACME", 1, False, False))
    assert tf.test.gpu_device_name() == "/device:ACME:1"
    assert [d.name for d in device_lib.list_local_devices()] == ["/device:CPU:0", "/device:GPU:0"]


def test_accelerators_are_named_where_there_are_any() -> None:
    assert bool(tf.test.gpu_device_name()) == tf.test.is_gpu_available()
    assert tf.test.is_built_with_cuda() == tf.test.is_gpu_available(cuda_only=True)


def test_graphs_are_compared() -> None:
    def graph(value: float) -> tf.GraphDef:
        with tf.Graph().as_default() as made:
            tf.constant(value, name="a")
        return made.as_graph_def()

    tf.test.assert_equal_graph_def(graph(1.0), graph(1.0))
    with pytest.raises(AssertionError, match="node 'a' differs"):
        tf.test.assert_equal_graph_def(graph(1.0), graph(2.0))
    with pytest.raises(AssertionError, match="nodes a are in one of the graphs alone"):
        tf.test.assert_equal_graph_def(graph(1.0), tf.GraphDef())


def test_what_is_wrong_with_an_element_is_in_the_message(case: Any) -> None:
    with pytest.raises(AssertionError, match=r"1 of 4 elements are not less than 4; the first is .*4.* at \[1, 1\]"):
        case.assertAllLess([[1, 2], [3, 4]], 4)


def test_a_case_whose_set_up_is_its_own_has_sessions() -> None:
    class Tests(tf.test.TestCase):
        def setUp(self) -> None:
            self.value = 3

        def test_value(self) -> None:
            with self.cached_session() as session:
                self.assertAllEqual(session.run(tf.constant(1) + 2), self.value)

    result = unittest.TestResult()
    unittest.TestSuite([Tests("test_value")]).run(result)
    assert (result.failures, result.errors, result.testsRun) == ([], [], 1)


def test_attributes_that_are_replaced_come_back() -> None:
    class Holder:
        size = 1

    made = Holder()
    with tf.test.StubOutForTesting() as stubs:
        stubs.Set(Holder, "size", 2)
        stubs.SmartSet(made, "size", 3)
        stubs.SmartSet(made, "size", 4)
        assert (Holder.size, made.size) == (2, 4)
    assert (Holder.size, vars(made)) == (1, {})
    with pytest.raises(AttributeError):
        stubs.Set(Holder, "length", 1)


def test_evaluate_without_a_session_uses_the_cached_one(case: Any) -> None:
    v = tf.Variable(2.0)
    case.evaluate(v.initializer)
    assert case.evaluate(v) == 2.0
