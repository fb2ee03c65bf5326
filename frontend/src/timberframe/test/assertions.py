"""Assertions on arrays, tensors and messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from timberframe_core import nest
from timberframe_core.errors import OpError
from timberframe_core.extras import extra
from timberframe_core.graph.device_spec import DeviceSpec
from timberframe_core.graphdef import messages

with extra("absl", "tf.test"):
    from absl.testing import absltest


class Assertions(absltest.TestCase):
    """The assertions of absl's test case, and those on arrays; tensors are evaluated first."""

    def evaluate(self, tensors: Any) -> Any:
        """Returns the values of tensors, in their structure."""
        raise NotImplementedError

    def _array(self, value: Any) -> np.ndarray:
        if hasattr(value, "__tf_tensor__") or hasattr(value, "op"):
            value = self.evaluate(value)
        return np.asarray(value)

    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:  # noqa: N802 - TensorFlow's name
        """Asserts that both are equal, shapes included; NaN equals NaN."""
        first, second = self._array(a), self._array(b)
        self.assertEqual(first.shape, second.shape, msg)
        equal = first == second
        if first.dtype.kind in "fc" and second.dtype.kind in "fc":
            equal = equal | (np.isnan(first) & np.isnan(second))
        if not np.all(equal):
            np.testing.assert_array_equal(first, second, msg or "")

    def assertNotAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:  # noqa: N802 - TensorFlow's name
        """Asserts that some element differs."""
        try:
            self.assertAllEqual(a, b)
        except AssertionError:
            return
        raise AssertionError(msg or "the two values are equal at all elements")

    def assertAllClose(  # noqa: N802 - TensorFlow's name
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """Asserts that both differ by at most atol + rtol |b|, in the same structure of dicts, lists and tuples."""
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

    def assertNotAllClose(  # noqa: N802 - TensorFlow's name
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """`assertAllClose` does not hold."""
        try:
            self.assertAllClose(a, b, rtol, atol)
        except AssertionError:
            return
        raise AssertionError(msg or "the two values are close at all elements")

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:  # noqa: N802 - TensorFlow's name
        """Asserts that all elements are greater."""
        self._assert_all(a, lambda x: x > comparison_target, f"greater than {comparison_target!r}")

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:  # noqa: N802 - TensorFlow's name
        """No element is less."""
        self._assert_all(a, lambda x: x >= comparison_target, f"greater than or equal to {comparison_target!r}")

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:  # noqa: N802 - TensorFlow's name
        """Asserts that all elements are less."""
        self._assert_all(a, lambda x: x < comparison_target, f"less than {comparison_target!r}")

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:  # noqa: N802 - TensorFlow's name
        """No element is greater."""
        self._assert_all(a, lambda x: x <= comparison_target, f"less than or equal to {comparison_target!r}")

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:  # noqa: N802 - TensorFlow's name
        """Asserts that all elements are in a set."""
        self._assert_all(target, lambda x: np.isin(x, list(expected_set)), f"in {expected_set!r}")

    def assertAllInRange(  # noqa: N802 - TensorFlow's name
        self, target: Any, lower_bound: Any, upper_bound: Any, open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:  # fmt: skip
        """Asserts that all elements are between two bounds; open_lower_bound, open_upper_bound:
        none is equal to that bound.
        """
        ends = f"{'(' if open_lower_bound else '['}{lower_bound}, {upper_bound}{')' if open_upper_bound else ']'}"
        self._assert_all(
            target,
            lambda x: (
                (x > lower_bound if open_lower_bound else x >= lower_bound)
                & (x < upper_bound if open_upper_bound else x <= upper_bound)
            ),
            f"in {ends}",
        )

    def _assert_all(self, value: Any, holds: Callable[[np.ndarray], Any], what: str) -> None:
        given = self._array(value)
        wrong = np.argwhere(~np.asarray(holds(given)))
        if len(wrong):
            place = tuple(int(i) for i in wrong[0])
            raise AssertionError(
                f"{len(wrong)} of {given.size} elements are not {what}; the first is {given[place]!r} at {list(place)}"
            )

    def assertItemsEqual(self, first: Any, second: Any, msg: str | None = None) -> None:  # noqa: N802 - TensorFlow's name
        """Asserts that two sequences have the same elements, each as often, in any order."""
        self.assertCountEqual(first, second, msg)

    def assertDeviceEqual(self, device1: Any, device2: Any, msg: str | None = None) -> None:  # noqa: N802 - TensorFlow's name
        """Asserts that two devices have the same name in full."""
        first, second = (DeviceSpec.from_string(str(d)).to_string() for d in (device1, device2))
        self.assertEqual(first, second, msg)

    def assertNear(self, f1: float, f2: float, err: float, msg: str | None = None) -> None:  # noqa: N802 - TensorFlow's name
        """Asserts that two numbers differ by at most err."""
        self.assertTrue(
            f1 == f2 or abs(f1 - f2) <= err, f"{f1!r} != {f2!r} +/- {err!r}{'' if msg is None else f' ({msg})'}"
        )

    def assertArrayNear(self, farray1: Any, farray2: Any, err: float, msg: str | None = None) -> None:  # noqa: N802 - TensorFlow's name
        """Asserts that two sequences of numbers differ by at most err."""
        self.assertEqual(len(farray1), len(farray2), msg)
        for x, y in zip(farray1, farray2, strict=True):
            self.assertNear(float(x), float(y), err, msg)

    def assertNDArrayNear(self, ndarray1: Any, ndarray2: Any, err: float, msg: str | None = None) -> None:  # noqa: N802 - TensorFlow's name
        """Asserts that the norm of the difference of two arrays is less than err."""
        self.assertLess(float(np.linalg.norm(self._array(ndarray1) - self._array(ndarray2))), err, msg)

    def assertShapeEqual(self, np_array: Any, tf_tensor: Any, msg: str | None = None) -> None:  # noqa: N802 - TensorFlow's name
        """Asserts that a tensor's static shape is that of an array."""
        self.assertEqual(list(np.shape(np_array)), tf_tensor.shape.as_list(), msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:  # noqa: N802 - TensorFlow's name
        """Asserts that a value has a dtype."""
        self.assertEqual(self._array(target).dtype, np.dtype(expected_dtype))

    def assertProtoEquals(self, expected_message_maybe_ascii: Any, message: Any, msg: str | None = None) -> None:  # noqa: N802 - TensorFlow's name
        """Asserts that two messages are equal; the expected one may be a text."""
        expected = expected_message_maybe_ascii
        if isinstance(expected, str):
            expected = messages.parse_text(expected.encode(), type(message), "assertProtoEquals")
        self.assertEqual(expected, message, msg)

    def assertStartsWith(self, actual: str, expected_start: str, msg: str | None = None) -> None:  # noqa: N802 - TensorFlow's name
        """Asserts that a text begins with another."""
        self.assertTrue(actual.startswith(expected_start), msg or f"{actual!r} does not start with {expected_start!r}")

    @contextmanager
    def assertRaisesWithPredicateMatch(  # type: ignore[override]  # noqa: N802 - TensorFlow's names, not absl's
        self, exception_type: Any, expected_err_re_or_predicate: Any
    ) -> Iterator[None]:
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
        """Returns what is raised inside is an error of an operation that a pattern or function matches."""
        return self.assertRaisesWithPredicateMatch(OpError, expected_err_re_or_predicate)
