"""`tf.test`: unit tests of graphs, and gradients compared with differences."""

from __future__ import annotations

import os
import random
import re
import sys
import tempfile
import unittest
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock as mock

import numpy as np

from timberframe.api.framework import device as on_device
from timberframe.api.gradients import gradients
from timberframe.api.random_seeds import set_random_seed
from timberframe_core import nest
from timberframe_core.config import SessionConfig
from timberframe_core.errors import InvalidArgumentError, OpError
from timberframe_core.graph.apply import convert_to_tensor
from timberframe_core.graph.defaults import get_default_session
from timberframe_core.graph.graph import Graph, get_default_graph, reset_default_graph
from timberframe_core.graphdef import messages
from timberframe_core.plugin.accelerators import accelerators
from timberframe_core.runtime.devices import devices_for
from timberframe_core.runtime.session import Session

__all__ = [
    "TestCase", "assert_equal_graph_def", "compute_gradient", "compute_gradient_error", "get_temp_dir",
    "gpu_device_name", "is_built_with_cuda", "is_gpu_available", "main", "mock", "test_src_dir_path",
]  # fmt: skip

SEED = 87654321


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the tests of the program, and ends it; flags that unittest does not know are those of `tf.flags`."""
    given = list(sys.argv if argv is None else argv)
    if "absl.flags" in sys.modules:
        from timberframe.flags import FLAGS

        given = FLAGS(given, known_only=True)
    unittest.main(argv=given)


def get_temp_dir() -> str:
    """A folder for files of tests, one for each process; TEST_TMPDIR of the environment if it is set."""
    folder = os.environ.get("TEST_TMPDIR") or str(Path(tempfile.gettempdir()) / f"timberframe_test_{os.getpid()}")
    os.makedirs(folder, exist_ok=True)
    return folder


def test_src_dir_path(relative_path: str) -> str:
    """A path below the folder of the program."""
    return str(Path(sys.argv[0]).resolve().parent / relative_path)


test_src_dir_path.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for a test


def _accelerators() -> list[str]:
    found = devices_for(SessionConfig())
    return [d.name for d in accelerators(found, next((d for d in found if d.host_memory), None))]


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:
    """Whether there is an accelerator; cuda_only: of type CUDA. min_cuda_compute_capability changes nothing."""
    return any("CUDA" in name for name in _accelerators()) if cuda_only else bool(_accelerators())


def gpu_device_name() -> str:
    """Name of the first accelerator, empty if there is none."""
    return next(iter(_accelerators()), "")


def is_built_with_cuda() -> bool:
    """Whether there is a CUDA device: its plugin is a package of its own."""
    return is_gpu_available(cuda_only=True)


def assert_equal_graph_def(actual: Any, expected: Any, checkpoint_v2: bool = False) -> None:
    """Raises AssertionError unless two GraphDefs have the same nodes."""
    given = [messages.as_message(g, messages.GraphDef, "assert_equal_graph_def") for g in (actual, expected)]
    nodes = [{n.name: n for n in g.node} for g in given]
    only = sorted(nodes[0].keys() ^ nodes[1].keys())
    if only:
        raise AssertionError(f"nodes {', '.join(only)} are in one of the graphs alone")
    for name, node in nodes[0].items():
        if node != nodes[1][name]:
            raise AssertionError(f"node '{name}' differs:\n{node}\nand\n{nodes[1][name]}")


class TestCase(unittest.TestCase):
    """A unittest.TestCase with a fresh default graph and fixed seeds for each test, and assertions on arrays.

    Tensors are evaluated by the session that is open.
    """

    def setUp(self) -> None:
        self._cached: tuple[Graph, Session] | None = None
        random.seed(SEED)
        np.random.seed(SEED % 2**32)  # noqa: NPY002 - programs under test draw from it
        reset_default_graph()
        set_random_seed(SEED)

    def tearDown(self) -> None:
        if self._cached is not None:
            self._cached[1].close()
            self._cached = None

    def get_temp_dir(self) -> str:
        """A folder for files of this test."""
        folder = os.path.join(get_temp_dir(), self.id())
        os.makedirs(folder, exist_ok=True)
        return folder

    @contextmanager
    def session(
        self, graph: Graph | None = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Iterator[Session]:
        """A session of its own. use_gpu: on an accelerator if there is one, else on the CPU; force_gpu: there alone."""
        given: Any = graph or get_default_graph()
        if given.eager:
            yield given.session
            return
        with given.as_default(), Session(graph=given, config=config) as session, _placed(use_gpu, force_gpu):
            yield session

    @contextmanager
    def cached_session(
        self, graph: Graph | None = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Iterator[Session]:
        """The same session each time in a test, for the same graph."""
        given: Any = graph or get_default_graph()
        if given.eager:
            yield given.session
            return
        if self._cached is None:
            self._cached = given, Session(graph=given, config=config)
        if self._cached[0] is not given:
            raise InvalidArgumentError("TestCase.cached_session: the graph is another one than before; use `session`")
        with given.as_default(), self._cached[1].as_default(), _placed(use_gpu, force_gpu):
            yield self._cached[1]

    def test_session(self, *args: Any, **kwargs: Any) -> AbstractContextManager[Session]:
        """`cached_session`, or where a graph or configuration is given, `session`."""
        if self.id().endswith(".test_session"):
            self.skipTest("unittest takes it for a test by its name")
        if args or kwargs.get("graph") is not None or kwargs.get("config") is not None:
            return self.session(*args, **kwargs)
        return self.cached_session(**kwargs)

    test_session.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for a test

    def evaluate(self, tensors: Any) -> Any:
        """The values of tensors, in their structure."""
        if get_default_graph().eager:
            return nest.map_structure(lambda x: convert_to_tensor(x).numpy(), tensors)  # type: ignore[attr-defined]  # EagerTensors
        session = get_default_session() or (self._cached[1] if self._cached else None)
        if session is None:
            raise InvalidArgumentError("TestCase.evaluate: no session is open; open one with `with self.session():`")
        return session.run(tensors)

    def _array(self, value: Any) -> np.ndarray:
        if hasattr(value, "__tf_tensor__") or hasattr(value, "op"):
            value = self.evaluate(value)
        return np.asarray(value)

    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:  # noqa: N802 - TensorFlow's name
        """Both are equal, shapes included; NaN equals NaN."""
        first, second = self._array(a), self._array(b)
        self.assertEqual(first.shape, second.shape, msg)
        equal = first == second
        if first.dtype.kind in "fc" and second.dtype.kind in "fc":
            equal = equal | (np.isnan(first) & np.isnan(second))
        if not np.all(equal):
            np.testing.assert_array_equal(first, second, msg or "")

    def assertNotAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:  # noqa: N802 - TensorFlow's name
        """Some element differs."""
        try:
            self.assertAllEqual(a, b)
        except AssertionError:
            return
        raise AssertionError(msg or "the two values are equal at all elements")

    def assertAllClose(  # noqa: N802 - TensorFlow's name
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """Both differ by at most atol + rtol |b|, in the same structure of dicts, lists and tuples."""
        if isinstance(a, dict) or isinstance(b, dict):
            self.assertEqual(set(a), set(b), msg)
            for key in a:
                self.assertAllClose(a[key], b[key], rtol, atol, f"{msg or ''} at {key!r}")
            return
        if isinstance(a, list | tuple) and any(nest.is_nested(x) or np.shape(x) != np.shape(a[0]) for x in a):
            self.assertEqual(len(a), len(b), msg)
            for i, (x, y) in enumerate(zip(a, b, strict=True)):
                self.assertAllClose(x, y, rtol, atol, f"{msg or ''} at {i}")
            return
        first, second = self._array(a), self._array(b)
        self.assertEqual(first.shape, second.shape, msg)
        np.testing.assert_allclose(first, second, rtol, atol, err_msg=msg or "")

    def assertAllCloseAccordingToType(  # noqa: N802 - TensorFlow's name
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, float_rtol: float = 1e-6,
        float_atol: float = 1e-6, half_rtol: float = 1e-3, half_atol: float = 1e-3, bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2, msg: str | None = None,
    ) -> None:  # fmt: skip
        """`assertAllClose` with the bounds of the narrower dtype."""
        first, second = self._array(a), self._array(b)
        names = {first.dtype.name, second.dtype.name}
        for kinds, r, t in (
            ({"float32", "complex64"}, float_rtol, float_atol), ({"float16"}, half_rtol, half_atol),
            ({"bfloat16"}, bfloat16_rtol, bfloat16_atol),
        ):  # fmt: skip
            if names & kinds:
                rtol, atol = max(rtol, r), max(atol, t)
        self.assertAllClose(first, second, rtol, atol, msg)

    def assertNear(self, f1: float, f2: float, err: float, msg: str | None = None) -> None:  # noqa: N802 - TensorFlow's name
        """Two numbers differ by at most err."""
        self.assertTrue(
            f1 == f2 or abs(f1 - f2) <= err, f"{f1!r} != {f2!r} +/- {err!r}{'' if msg is None else f' ({msg})'}"
        )

    def assertArrayNear(self, farray1: Any, farray2: Any, err: float, msg: str | None = None) -> None:  # noqa: N802 - TensorFlow's name
        """Two sequences of numbers differ by at most err."""
        self.assertEqual(len(farray1), len(farray2), msg)
        for x, y in zip(farray1, farray2, strict=True):
            self.assertNear(float(x), float(y), err, msg)

    def assertNDArrayNear(self, ndarray1: Any, ndarray2: Any, err: float, msg: str | None = None) -> None:  # noqa: N802 - TensorFlow's name
        """The norm of the difference of two arrays is less than err."""
        self.assertLess(float(np.linalg.norm(self._array(ndarray1) - self._array(ndarray2))), err, msg)

    def assertShapeEqual(self, np_array: Any, tf_tensor: Any, msg: str | None = None) -> None:  # noqa: N802 - TensorFlow's name
        """A tensor's static shape is that of an array."""
        self.assertEqual(list(np.shape(np_array)), tf_tensor.shape.as_list(), msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:  # noqa: N802 - TensorFlow's name
        """A value has a dtype."""
        self.assertEqual(self._array(target).dtype, np.dtype(expected_dtype))

    def assertProtoEquals(self, expected_message_maybe_ascii: Any, message: Any, msg: str | None = None) -> None:  # noqa: N802 - TensorFlow's name
        """Two messages are equal; the expected one may be a text."""
        expected = expected_message_maybe_ascii
        if isinstance(expected, str):
            expected = messages.parse_text(expected.encode(), type(message), "assertProtoEquals")
        self.assertEqual(expected, message, msg)

    def assertStartsWith(self, actual: str, expected_start: str, msg: str | None = None) -> None:  # noqa: N802 - TensorFlow's name
        """A text begins with another."""
        self.assertTrue(actual.startswith(expected_start), msg or f"{actual!r} does not start with {expected_start!r}")

    @contextmanager
    def assertRaisesWithPredicateMatch(self, exception_type: Any, expected_err_re_or_predicate: Any) -> Iterator[None]:  # noqa: N802 - TensorFlow's name
        """What is raised inside is of a type, and a pattern or function matches it."""
        try:
            yield
        except Exception as e:
            wanted = expected_err_re_or_predicate
            matches = wanted(e) if callable(wanted) else re.search(wanted, str(e))
            if not isinstance(e, exception_type) or not matches:
                raise AssertionError(f"raised {type(e).__name__}: {e}; {wanted!r} must match it") from e
        else:
            raise AssertionError(f"{exception_type} was not raised")

    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> AbstractContextManager[None]:  # noqa: N802 - TensorFlow's name
        """What is raised inside is an error of an operation that a pattern or function matches."""
        return self.assertRaisesWithPredicateMatch(OpError, expected_err_re_or_predicate)


@contextmanager
def _placed(use_gpu: bool, force_gpu: bool) -> Iterator[None]:
    if force_gpu and not _accelerators():
        raise InvalidArgumentError("TestCase.session: force_gpu is set and there is no accelerator")
    with on_device(gpu_device_name() if use_gpu or force_gpu else "/cpu:0"):
        yield


def compute_gradient(
    x: Any,
    x_shape: Any,
    y: Any,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Any = None,
    extra_feed_dict: Any = None,
) -> Any:
    """The Jacobian dy/dx by `tf.gradients`, and by differences of 2 delta: two arrays [elements of x, elements of y].

    x and x_shape may be lists, as may then x_init_value; the result is a list of pairs then. init_targets: operations
    to run first. It needs a session that is open.
    """
    if isinstance(x, list | tuple):
        values = x_init_value if x_init_value is not None else [None] * len(x)
        return [
            compute_gradient(a, s, y, y_shape, v, delta, init_targets, extra_feed_dict)
            for a, s, v in zip(x, x_shape, values, strict=True)
        ]
    session = get_default_session()
    if session is None:
        raise InvalidArgumentError("tf.test.compute_gradient: no session is open; open one with `with tf.Session():`")
    if init_targets is not None:
        session.run(init_targets)
    feeds = dict(extra_feed_dict or {})
    start = np.random.random_sample(x_shape) if x_init_value is None else np.asarray(x_init_value)  # noqa: NPY002 - TestCase seeds it
    start = start.astype(convert_to_tensor(x).dtype.numpy)
    return _by_gradients(session, x, y, y_shape, start, feeds), _by_differences(session, x, y, start, delta, feeds)


def _by_gradients(session: Any, x: Any, y: Any, y_shape: Any, start: np.ndarray, feeds: dict[Any, Any]) -> np.ndarray:
    weights = np.zeros(y_shape, start.dtype)
    seed = convert_to_tensor(weights)
    (slope,) = gradients([y], [x], [seed])
    columns = np.zeros((start.size, weights.size), start.dtype)
    if slope is None:
        return columns
    for i in range(weights.size):
        one = weights.copy()
        one.flat[i] = 1
        got = session.run(slope, {**feeds, x: start, seed: one})
        if hasattr(got, "indices"):
            dense = np.zeros(start.shape, start.dtype)
            np.add.at(dense, got.indices, got.values)
            got = dense
        columns[:, i] = np.ravel(got)
    return columns


def _by_differences(session: Any, x: Any, y: Any, start: np.ndarray, delta: float, feeds: dict[Any, Any]) -> np.ndarray:
    rows = []
    for i in range(start.size):
        ends = []
        for sign in (1, -1):
            moved = start.copy()
            moved.flat[i] += sign * delta
            ends.append(np.ravel(session.run(y, {**feeds, x: moved})).astype(np.float64))
        rows.append((ends[0] - ends[1]) / (2 * delta))
    return np.array(rows, start.dtype).reshape(start.size, -1)


def compute_gradient_error(
    x: Any,
    x_shape: Any,
    y: Any,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Any = None,
    extra_feed_dict: Any = None,
) -> float:
    """The largest difference between the two Jacobians of `compute_gradient`."""
    found = compute_gradient(x, x_shape, y, y_shape, x_init_value, delta, init_targets, extra_feed_dict)
    pairs = [found] if isinstance(found, tuple) else found
    return max((float(np.abs(a - b).max()) for a, b in pairs if a.size), default=0.0)
