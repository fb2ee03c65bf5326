"""Functions that the programs of families call: `show`, `elements` and `derivatives`. It needs NumPy alone.

Each system under test runs in a process of its own, which imports this file without the suite around it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

STEPS = 2.0**-10, 2.0**-13
"""Distances of central differences: two, of which the smaller one decides where the larger one meets a kink."""

OSCILLATION = 16
"""Amplitude of the sines that programs may have, and the least change in a step that they cannot hide."""


class Shown:
    """Collects what a program shows: leaves of structures as arrays, by name."""

    def __init__(self) -> None:
        self.values: list[tuple[str, np.ndarray]] = []
        self.wrong: list[str] = []

    def __call__(self, name: str, value: Any) -> None:
        """Keeps a value: a tensor, an array, or a structure of them."""
        self._keep(name, plain(value))

    def slopes(self, name: str, got: float, difference: float, allowed: float) -> None:
        """Keeps a slope by gradients, and notes where it is not that of differences."""
        self._keep(name, np.asarray(got))
        if not abs(got - difference) <= allowed:
            self.wrong.append(f"{name} is {got!r} by gradients; differences give {difference!r}, off by {allowed:.3g}")

    def check(self, expected: Mapping[str, Any], share: float = 1e-5) -> None:
        """Compares with what another system gave; raises AssertionError where both differ."""
        assert not self.wrong, "; ".join(self.wrong)
        got = dict(self.values)
        for name, value in expected.items():
            if value.dtype.kind in "fc":
                np.testing.assert_allclose(got[name], value, rtol=share, atol=share, err_msg=name)
            else:
                np.testing.assert_array_equal(got[name], value, err_msg=name)

    def _keep(self, name: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for key in sorted(value):
                self._keep(f"{name}.{key}", value[key])
        elif isinstance(value, list | tuple):
            self.values.append((f"{name}.len", np.asarray(len(value))))
            for i, part in enumerate(value):
                self._keep(f"{name}[{i}]", part)
        else:
            self.values.append((name, np.asarray(value)))


def plain(value: Any) -> Any:
    """Returns a tensor, variable, composite value or structure as arrays, lists and dictionaries."""
    if value is None:
        return "none"
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "dense_shape") and hasattr(value, "indices"):
        return [plain(value.indices), plain(value.values)]
    if hasattr(value, "numpy"):
        return value.numpy()
    return value


def elements(dataset: Any, limit: int = 60) -> list[Any]:
    """Returns the first elements of a dataset, at most `limit`."""
    if hasattr(dataset, "elements"):
        return list(dataset.elements(limit))
    found: list[Any] = []
    for element in without_reading_ahead(dataset):
        if len(found) == limit:
            break
        found.append(plain(element))
    return found


def without_reading_ahead(dataset: Any) -> Any:
    """Returns the dataset, one and the same in each call, without what TensorFlow adds to the end of it.

    That thread draws seeds of elements that nobody asks for: those of the next iterator would be a matter of time.
    """
    if not hasattr(dataset, "options"):
        return dataset
    options = type(dataset.options())()
    if not hasattr(getattr(options, "experimental_optimization", None), "inject_prefetch"):
        return dataset
    if not hasattr(dataset, "_without_reading_ahead"):
        options.experimental_optimization.inject_prefetch = False
        dataset._without_reading_ahead = dataset.with_options(options)
    return dataset._without_reading_ahead


def in_session(tf: Any, dataset: Any, limit: int = 60) -> list[Any]:
    """Returns the same by an iterator that a session initialises; `dataset` makes the dataset in the session's graph."""
    with tf.Graph().as_default():
        iterator = tf.data.make_initializable_iterator(dataset())
        following = iterator.get_next()
        found: list[Any] = []
        with tf.Session() as session:
            session.run(iterator.initializer)
            while len(found) < limit:
                try:
                    found.append(plain(session.run(following)))
                except tf.errors.OutOfRangeError:
                    break
        return found


def derivatives(tf: Any, show: Shown, f: Callable[..., Any], points: Sequence[Any], way: str, second: bool) -> None:
    """Shows f at the points, its first slope along a direction and, if asked for, its second, beside differences.

    f: a scalar float64 function of float64 tensors. way: `tape`, `persistent` (one tape, asked for each point),
    `function` (a tape inside of tf.function) or `graph` (tf.gradients in a session). The slopes are those along fixed
    directions; differences are central, extrapolated by Richardson's rule, and compared where they converge.
    """
    at = [np.asarray(p, np.float64) for p in points]
    direction = [np.cos(1.0 + np.arange(p.size)).reshape(p.shape) for p in at]
    weights = [np.sin(2.0 + np.arange(p.size)).reshape(p.shape) + 1.5 for p in at]
    first, evaluate = _first(tf, f, at, way)
    show("value", evaluate(at))
    gradients = first(at)
    show("gradients", gradients)

    def total(t: float) -> float:
        return float(evaluate([p + t * d for p, d in zip(at, direction, strict=True)]))

    _judge(show, "first slope", sum(float(np.sum(g * d)) for g, d in zip(gradients, direction, strict=True)), total)
    if not second:
        return

    def weighted(*x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(list(x))
            y = f(*x)
        made = tape.gradient(y, list(x), unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return tf.add_n([tf.reduce_sum(tf.convert_to_tensor(g) * w) for g, w in zip(made, weights, strict=True)])

    def weighted_in_graph(*x: Any) -> Any:
        made = _zeros_for_none(tf, tf.gradients(f(*x), list(x)), x)
        return tf.add_n([tf.reduce_sum(tf.convert_to_tensor(g) * w) for g, w in zip(made, weights, strict=True)])

    first_again, _ = _first(tf, weighted_in_graph if way == "graph" else weighted, at, way)
    seconds = first_again(at)
    show("second gradients", seconds)

    def slope_of_first(t: float) -> float:
        found = first([p + t * d for p, d in zip(at, direction, strict=True)])
        return sum(float(np.sum(g * w)) for g, w in zip(found, weights, strict=True))

    _judge(
        show,
        "second slope",
        sum(float(np.sum(g * d)) for g, d in zip(seconds, direction, strict=True)),
        slope_of_first,
    )


def _first(tf: Any, f: Callable[..., Any], at: Sequence[np.ndarray], way: str) -> tuple[Any, Any]:
    """Functions that give the gradients of f, and its value, at arrays."""
    if way == "graph":
        return _in_graph(tf, f, at)

    def gradients(*x: Any) -> Any:
        with tf.GradientTape(persistent=way == "persistent") as tape:
            tape.watch(list(x))
            y = f(*x)
        zero = tf.UnconnectedGradients.ZERO
        if way == "persistent":
            return [tape.gradient(y, v, unconnected_gradients=zero) for v in x]
        return tape.gradient(y, list(x), unconnected_gradients=zero)

    made = tf.function(gradients) if way == "function" else gradients
    value = tf.function(f) if way == "function" else f

    def first(points: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [np.asarray(plain(tf.convert_to_tensor(g))) for g in made(*map(tf.constant, points))]

    return first, lambda points: np.asarray(plain(value(*map(tf.constant, points))))


def _in_graph(tf: Any, f: Callable[..., Any], at: Sequence[np.ndarray]) -> tuple[Any, Any]:
    graph = tf.Graph()
    with graph.as_default():
        x = [tf.placeholder(tf.float64, p.shape) for p in at]
        y = f(*x)
        made = _zeros_for_none(tf, tf.gradients(y, x), x)
    session = tf.Session(graph=graph)
    return (
        lambda points: session.run(made, dict(zip(x, points, strict=True))),
        lambda points: session.run(y, dict(zip(x, points, strict=True))),
    )


def _zeros_for_none(tf: Any, gradients: Sequence[Any], x: Sequence[Any]) -> list[Any]:
    return [tf.zeros_like(v) if g is None else tf.convert_to_tensor(g) for g, v in zip(gradients, x, strict=True)]


def _judge(show: Shown, name: str, got: float, f: Callable[[float], float]) -> None:
    """Compares a slope with differences that converge and agree on both sides; at a kink there is none.

    Differences do not see what oscillates within a step: sin(w x) turns there where its slope, w, is above 1 / step.
    """
    found = []
    for step in STEPS:
        values = {k: f(k * step) for k in (-4, -2, -1, 0, 1, 2, 4)}
        near, middle, far = ((values[k] - values[-k]) / (2 * k * step) for k in (1, 2, 4))
        first, second = (4 * near - middle) / 3, (4 * middle - far) / 3
        largest = max(map(abs, values.values()))
        bound = 4 * abs(first - second) + 2.0**-46 * largest / step
        right = (4 * values[1] - values[2] - 3 * values[0]) / (2 * step)
        left = -(4 * values[-1] - values[-2] - 3 * values[0]) / (2 * step)
        size = abs(first) + abs(got)
        if not np.isfinite(first) or bound > 1e-3 * size + 1e-6:
            return
        if np.isfinite(got) and abs(first - got) * step > OSCILLATION:
            return
        if abs(right - left) > 2e-3 * size + 1e-6 + 2.0**-44 * largest / step:
            return
        found.append((first, bound + 1e-5 * size + 1e-9))
    if abs(found[0][0] - found[1][0]) <= 1e-3 * abs(found[0][0]) + found[0][1] + found[1][1]:
        show.slopes(name, got, *found[1])


def in_threads(
    tf: Any, show: Shown, calls: Sequence[Sequence[tuple[str, int]]], start: float, way: str, size: int
) -> None:
    """Makes calls of a variable from threads, and notes where no order of them explains all that they read.

    calls: by thread, pairs of `add`, `assign` or `read` and a number. way: `function`, `session` or `callable`. The
    variable has `size` equal elements; what a call reads must be equal elements, too.
    """
    made = _callables(tf, start, way, size)
    history: list[tuple[float, float, str, float]] = []
    begin = threading.Barrier(len(calls))
    wrong: list[str] = []

    def work(own: Sequence[tuple[str, int]]) -> None:
        try:
            begin.wait()
            for kind, number in own:
                before = time.perf_counter()
                found = made[kind](float(number))
                value = float(number)
                if kind == "read":
                    read = np.asarray(found)
                    value = float(read[0])
                    if not (read == value).all():
                        wrong.append(f"a read sees parts of two values: {np.unique(read)}")
                history.append((before, time.perf_counter(), kind, value))
        except Exception as e:  # of a thread, which shows nothing itself
            wrong.append(f"{type(e).__name__}: {e}")

    threads = [threading.Thread(target=work, args=(own,)) for own in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    last = float(np.asarray(made["read"](0.0))[0])
    now = time.perf_counter()
    show("threads", [len(own) for own in calls])
    if not wrong and not _linearizable([*history, (now, now, "read", last)], start):
        wrong.append(f"no order of calls gives what they read: {history}, then {last}")
    show.wrong += wrong


def _callables(tf: Any, start: float, way: str, size: int) -> dict[str, Any]:
    value = np.full(size, start)
    if way == "function":
        v = tf.Variable(value, use_resource=True)

        add = tf.function(lambda x: v.assign_add(tf.fill([size], x)))
        assign = tf.function(lambda x: v.assign(tf.fill([size], x)))
        read = tf.function(lambda: v.read_value())

        return {
            "add": lambda x: add(tf.constant(x, tf.float64)),
            "assign": lambda x: assign(tf.constant(x, tf.float64)),
            "read": lambda x: plain(read()),
        }
    graph = tf.Graph()
    with graph.as_default():
        v = tf.Variable(value, use_resource=True)
        x = tf.placeholder(tf.float64, [])
        ops = {
            "add": v.assign_add(tf.fill([size], x)).op,
            "assign": v.assign(tf.fill([size], x)).op,
            "read": v.read_value(),
        }
        initializer = v.initializer
    session = tf.Session(graph=graph)
    session.run(initializer)
    if way == "callable":
        return {kind: session.make_callable(op, feed_list=[x]) for kind, op in ops.items()}
    return {kind: lambda number, op=op: session.run(op, {x: number}) for kind, op in ops.items()}


def _linearizable(history: Sequence[tuple[float, float, str, float]], value: float) -> bool:
    """Returns whether calls with these beginnings and ends, in some order that respects them, give what they read."""
    if not history:
        return True
    first_end = min(end for _, end, _, _ in history)
    for i, (begin, _, kind, number) in enumerate(history):
        if begin > first_end or (kind == "read" and number != value):
            continue
        after = number if kind == "assign" else value + number if kind == "add" else value
        if _linearizable([*history[:i], *history[i + 1 :]], after):
            return True
    return False
