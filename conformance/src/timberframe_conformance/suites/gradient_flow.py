"""Gradients of whole graphs: branches, loops, lists, calls and variables, against differences of the device's results.

The functions take and give float64. The device's own results are taken to be right to 2^-46 of the largest, 128 unit
roundoffs for the dozens of operations of each; the forward suites judge each op more strictly.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import timberframe
from timberframe_conformance.case import Case, CaseFailedError, Measured, generator
from timberframe_conformance.truth.differences import directions, slope
from timberframe_core.ops.definition.opdef import OpDef

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "gradient"
tf: Any = timberframe
Function = Callable[[Any], Any]
ERROR = 2.0**-46
DIRECTIONS = 3

_FUNCTIONS: list[tuple[str, str, tuple[int, ...], Function]] = []


def function(op: str, detail: str, shape: tuple[int, ...] = (3,)) -> Callable[[Function], Function]:
    """Adds a function of a tensor of this shape to the suite, as a case of an op that it is made of."""

    def add(f: Function) -> Function:
        _FUNCTIONS.append((op, detail, shape, f))
        return f

    return add


def collect(target: Target, ops: Sequence[OpDef]) -> Iterator[Case]:
    """First and second derivatives of each function."""
    for op, detail, shape, f in _FUNCTIONS:
        for order in (1, 2):
            name = f"{('first', 'second')[order - 1]}-{detail}"
            yield Case(SUITE, op, (), name, functools.partial(_run, f, shape, order, f"{op}/{name}"))


def _run(f: Function, shape: tuple[int, ...], order: int, case_id: str, target: Target) -> Measured | None:
    rng = generator(case_id)
    start = rng.uniform(0.4, 1.6, shape)
    with tf.Graph().as_default() as graph, tf.device(target.spec):
        x = tf.placeholder(tf.float64, shape)
        y = f(x)
        for _ in range(order):
            below = y
            weights = tf.constant(rng.uniform(0.5, 1.0, below.shape.as_list()))
            (y,) = tf.gradients(below * weights, [x])
        initializer = tf.global_variables_initializer()
    with target.session(graph) as session:
        session.run(initializer)
        gradient, at_start, w = session.run([y, below, weights], {x: start})
        noise = ERROR * float(np.sum(np.abs(at_start * w)))
        for v in directions(shape, start.dtype, DIRECTIONS, rng):

            def along(t: float, v: np.ndarray = v) -> float:
                return float(np.sum(session.run(below, {x: start + t * v}) * w))

            found, product = slope(along, noise), float(np.sum(gradient * v))
            if not abs(found.value - product) <= found.bound + ERROR * float(np.sum(np.abs(gradient * v))):
                raise CaseFailedError(
                    f"the gradient gives the slope {product!r} along a direction; central differences give "
                    f"{found.value!r}, which may be off by {found.bound:.3g}"
                )
    return None


@function("If", "branch-of-a-scalar", ())
def _cond(x: Any) -> Any:
    return tf.cond(x > 0, lambda: x * x * x, lambda: -x)


@function("If", "values-from-outside")
def _cond_captures(x: Any) -> Any:
    y = tf.sin(x)
    return tf.cond(tf.reduce_sum(x) < 0, lambda: y, lambda: y * x + tf.exp(y))


@function("If", "nested")
def _cond_nested(x: Any) -> Any:
    total = tf.reduce_sum(x)
    return tf.cond(total > 0, lambda: tf.cond(total > 100, lambda: x, lambda: x * x * total), lambda: -x)


@function("Case", "values-from-outside")
def _case(x: Any) -> Any:
    y = tf.sin(x)
    index = tf.cast(tf.reduce_sum(x), tf.int32) * 0 + 1
    return tf.switch_case(index, [lambda: y, lambda: y * x + tf.exp(y), lambda: x])


@function("While", "power")
def _power(x: Any) -> Any:
    return tf.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, y * x), [tf.constant(0), x])[1]


@function("While", "iterations-by-data")
def _iterations(x: Any) -> Any:
    limit = tf.cast(tf.reduce_sum(x), tf.int32) * 0 + 3
    return tf.while_loop(lambda i, y: i < limit, lambda i, y: (i + 1, tf.sin(y) + x), [tf.constant(0), x])[1]


@function("While", "two-variables-swap")
def _swap(x: Any) -> Any:
    _, a, b = tf.while_loop(
        lambda i, a, b: i < 3, lambda i, a, b: (i + 1, b, a * b), [tf.constant(0), x, tf.exp(-x)]
    )  # fmt: skip
    return a + 2.0 * b


@function("While", "nested")
def _nested(x: Any) -> Any:
    def body(i: Any, y: Any) -> Any:
        return i + 1, tf.while_loop(lambda j, z: j < 2, lambda j, z: (j + 1, z * tf.cos(x)), [tf.constant(0), y])[1]

    return tf.while_loop(lambda i, y: i < 2, body, [tf.constant(0), x])[1]


@function("While", "branch-within")
def _branch(x: Any) -> Any:
    def body(i: Any, y: Any) -> Any:
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: y * x, lambda: y + tf.tanh(y))

    return tf.while_loop(lambda i, y: i < 3, body, [tf.constant(0), x])[1]


@function("While", "matrices", (2, 2))
def _matrices(x: Any) -> Any:
    return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.matmul(y, x)), [tf.constant(0), x])[1]


@function("TensorListSetItem", "array-written-and-stacked")
def _array(x: Any) -> Any:
    values = tf.TensorArray(tf.float64, size=3)
    for i in range(3):
        values = values.write(i, x * float(i + 1) * x)
    return values.stack()


@function("TensorListStack", "map")
def _map(x: Any) -> Any:
    return tf.map_fn(lambda v: v * tf.sin(v), x)


@function("TensorListStack", "scan")
def _scan(x: Any) -> Any:
    return tf.scan(lambda a, v: a * v + v, x)


@function("ReadVariableOp", "variable-of-the-value")
def _variable(x: Any) -> Any:
    scale = tf.Variable(np.array([0.5, 2.0, 1.5]))
    return scale * tf.exp(x * scale)


@function("Graph", "network", (4, 3))
def _network(x: Any) -> Any:
    rng = np.random.default_rng(0)
    first, second = (tf.constant(rng.standard_normal(s)) for s in ((3, 5), (5, 2)))
    return tf.nn.log_softmax(tf.matmul(tf.tanh(tf.matmul(x, first)), second))


@function("Graph", "value-used-often")
def _shared(x: Any) -> Any:
    y = x
    for _ in range(6):
        y = y * tf.sigmoid(y) + x
    return y
