"""Gradients compared with differences."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe.api.gradients import gradients
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import convert_to_tensor
from timberframe_core.graph.defaults import get_default_session


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
    """Returns the Jacobian dy/dx by `tf.gradients`, and by differences of 2 delta: two arrays
    [elements of x, elements of y].

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
    """Returns the largest difference between the two Jacobians of `compute_gradient`."""
    found = compute_gradient(x, x_shape, y, y_shape, x_init_value, delta, init_targets, extra_feed_dict)
    pairs = [found] if isinstance(found, tuple) else found
    return max((float(np.abs(a - b).max()) for a, b in pairs if a.size), default=0.0)
