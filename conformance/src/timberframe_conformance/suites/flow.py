"""Control flow, variables, order and sharing, in graphs whose results are known."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_conformance.case import CaseFailedError
from timberframe_conformance.suites.checks import Checks, in_threads, same, tf
from timberframe_core.errors import FailedPreconditionError

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "graphs"
check = Checks(SUITE)
collect = check.collect


@check("While", "counts")
def _while_counts(target: Target, graph: Any) -> None:
    limit = tf.placeholder(tf.int32, ())
    i, total = tf.while_loop(lambda i, s: i < limit, lambda i, s: (i + 1, s + i), [tf.constant(0), tf.constant(0)])
    with target.session(graph) as session:
        for n in (0, 1, 7, 1000):
            same(session.run([i, total], {limit: n}), [n, n * (n - 1) // 2], f"a loop of {n} iterations")


@check("While", "swaps-two-variables")
def _while_swaps(target: Target, graph: Any) -> None:
    x = tf.placeholder(tf.float32, (3,))
    y = tf.placeholder(tf.float32, (3,))
    _, a, b = tf.while_loop(lambda i, a, b: i < 5, lambda i, a, b: (i + 1, b, a), [tf.constant(0), x, y])
    with target.session(graph) as session:
        p, q = np.array([1, 2, 3], np.float32), np.array([4, 5, 6], np.float32)
        same(session.run([a, b], {x: p, y: q}), [q, p])


@check("While", "nested")
def _while_nested(target: Target, graph: Any) -> None:
    n = tf.placeholder(tf.int32, ())

    def outer(i: Any, s: Any) -> Any:
        _, inner = tf.while_loop(lambda j, t: j < i, lambda j, t: (j + 1, t + 1), [tf.constant(0), tf.constant(0)])
        return i + 1, s + inner

    result = tf.while_loop(lambda i, s: i < n, outer, [tf.constant(0), tf.constant(0)])[1]
    with target.session(graph) as session:
        for size in (0, 6):
            same(session.run(result, {n: size}), size * (size - 1) // 2)


@check("While", "matrix-power")
def _while_matrix(target: Target, graph: Any) -> None:
    x = tf.placeholder(tf.float32, (3, 3))
    result = tf.while_loop(lambda i, m: i < 4, lambda i, m: (i + 1, tf.matmul(m, x)), [tf.constant(0), x])[1]
    a = np.array([[1, 2, 0], [0, 1, 1], [2, 0, 1]], np.float32)
    with target.session(graph) as session:
        same(session.run(result, {x: a}), np.linalg.matrix_power(a, 5))


@check("If", "both-branches")
def _if_both(target: Target, graph: Any) -> None:
    p = tf.placeholder(tf.bool, ())
    x = tf.placeholder(tf.float32, (2,))
    result = tf.cond(p, lambda: x + 1.0, lambda: x * 2.0)
    with target.session(graph) as session:
        same(session.run(result, {p: True, x: [3, 4]}), [4, 5])
        same(session.run(result, {p: False, x: [3, 4]}), [6, 8])


@check("Case", "every-branch")
def _case_branches(target: Target, graph: Any) -> None:
    i = tf.placeholder(tf.int32, ())
    x = tf.placeholder(tf.float32, (2,))
    result = tf.switch_case(i, [lambda: x + 1.0, lambda: x * 2.0, lambda: x - 3.0])
    with target.session(graph) as session:
        for index, expected in ((0, [4, 5]), (1, [6, 8]), (2, [0, 1]), (3, [0, 1]), (-1, [0, 1])):
            same(session.run(result, {i: index, x: [3, 4]}), expected, f"branch {index}")


@check("Case", "nested-in-while")
def _case_in_while(target: Target, graph: Any) -> None:
    n = tf.placeholder(tf.int32, ())

    def body(i: Any, s: Any) -> Any:
        return i + 1, tf.switch_case(i % 3, [lambda: s + 1, lambda: s * i, lambda: tf.constant(2)])

    result = tf.while_loop(lambda i, _: i < n, body, [tf.constant(0), tf.constant(0)])[1]
    with target.session(graph) as session:
        same([session.run(result, {n: k}) for k in range(6)], [0, 1, 1, 2, 3, 12])


@check("If", "nested-in-while")
def _if_in_while(target: Target, graph: Any) -> None:
    n = tf.placeholder(tf.int32, ())

    def collatz(x: Any, steps: Any) -> Any:
        even = tf.equal(x % 2, 0)
        return tf.cond(even, lambda: x // 2, lambda: 3 * x + 1), steps + 1

    result = tf.while_loop(lambda x, s: x > 1, collatz, [n, tf.constant(0)])[1]
    with target.session(graph) as session:
        same([session.run(result, {n: k}) for k in (1, 6, 27)], [0, 8, 111])


def _power(x: Any) -> Any:
    return tf.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, tf.sin(v) * x), [tf.constant(0), x])[1]


def _states(x: Any) -> Any:
    rows = tf.TensorArray(tf.float32, 3).unstack(x)
    states = tf.TensorArray(tf.float32, 3)

    def body(i: Any, v: Any, out: Any) -> Any:
        v = tf.tanh(v * rows.read(i) + 0.5)
        return i + 1, v, out.write(i, v)

    return tf.while_loop(lambda i, *_: i < 3, body, [tf.constant(0), tf.constant(0.2), states])[2].stack()


def _branches(x: Any) -> Any:
    def body(i: Any, v: Any) -> Any:
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: tf.tanh(v) * x, lambda: v * v)

    return tf.while_loop(lambda i, _: i < 4, body, [tf.constant(0), x])[1]


def _gradient(build: Callable[[Any], Any], target: Target, graph: Any) -> None:
    """Compares the gradient of the sum of what `build` makes, against central differences in
    float32: good to about 1e-3.
    """
    x = tf.placeholder(tf.float32, (3,))
    y = build(x)
    total = tf.reduce_sum(y)
    grad = tf.gradients(y, x)[0]
    at, step = np.array([0.3, -0.5, 0.8], np.float32), np.float32(1e-2)
    with target.session(graph) as session:
        got = session.run(grad, {x: at})
        for i in range(3):
            change = np.zeros(3, np.float32)
            change[i] = step
            wanted = (session.run(total, {x: at + change}) - session.run(total, {x: at - change})) / (2 * step)
            if not abs(got[i] - wanted) <= 2e-3:  # step^2 of the third derivative, which stays below 10 here
                raise CaseFailedError(f"gradient {i} is {got[i]}; differences give {wanted}")


for _name, _build in (("loop", _power), ("arrays", _states), ("branches-in-loop", _branches)):
    check("While", f"gradient-{_name}")(functools.partial(_gradient, _build))


@check("While", "gradient-of-variable")
def _gradient_of_variable(target: Target, graph: Any) -> None:
    v = tf.Variable(np.array([1, 2], np.float32), name="v")
    count = tf.placeholder(tf.int32, ())
    x = tf.constant(np.array([3, 1], np.float32))
    y = tf.while_loop(lambda i, _: i < count, lambda i, a: (i + 1, a * v), [tf.constant(0), x])[1]
    grad = tf.gradients(y, v)[0]
    with target.session(graph) as session:
        session.run(v.initializer)
        for iterations, wanted in ((0, [0, 0]), (1, [3, 1]), (3, [9, 12])):
            gradient = session.run(grad, {count: iterations})
            same(gradient, np.array(wanted, np.float32), f"the gradient after {iterations} iterations")


@check("TensorListStack", "accumulates")
def _accumulates(target: Target, graph: Any) -> None:
    x = tf.placeholder(tf.float32, (None, 2))
    sums = tf.scan(lambda a, r: a + r, x)
    with target.session(graph) as session:
        for rows in (1, 4, 70):
            a = np.arange(rows * 2, dtype=np.float32).reshape(rows, 2)
            same(session.run(sums, {x: a}), a.cumsum(0, dtype=np.float32))


@check("TensorListSplit", "pieces")
def _pieces(target: Target, graph: Any) -> None:
    x = tf.placeholder(tf.float32, (None, 2))
    lengths = tf.placeholder(tf.int64, (3,))
    array = tf.TensorArray(tf.float32, 3, infer_shape=False).split(x, lengths)
    with target.session(graph) as session:
        a = np.arange(12, dtype=np.float32).reshape(6, 2)
        for sizes in ([1, 2, 3], [6, 0, 0]):
            got = session.run([array.read(0), array.concat()], {x: a, lengths: sizes})
            same(got[0], a[: sizes[0]])
            same(got[1], a)


@check("AssignVariableOp", "read-assign-read")
def _variable_basics(target: Target, graph: Any) -> None:
    v = tf.Variable(np.array([1, 2, 3], np.float32), name="v")
    add = v.assign_add([1, 1, 1])
    sub = v.assign_sub([0, 1, 2])
    with target.session(graph) as session:
        session.run(v.initializer)
        same(session.run(v), [1, 2, 3])
        session.run(add)
        same(session.run(v), [2, 3, 4], "after assign_add the variable")
        session.run(sub)
        same(session.run(v), [2, 2, 2], "after assign_sub the variable")


@check("ReadVariableOp", "fetched-value-is-a-copy")
def _variable_copy(target: Target, graph: Any) -> None:
    v = tf.Variable(np.array([1, 2], np.float32), name="v")
    add = v.assign_add([1, 1])
    with target.session(graph) as session:
        session.run(v.initializer)
        before = session.run(v)
        session.run(add)
        same(before, [1, 2], "a value fetched before an assign")


@check("ReadVariableOp", "uninitialised")
def _variable_uninitialised(target: Target, graph: Any) -> None:
    v = tf.Variable(np.array([1, 2], np.float32), name="v")
    with target.session(graph) as session:
        try:
            session.run(v)
        except FailedPreconditionError:
            session.run(v.initializer)
            same(session.run(v), [1, 2])
        else:
            raise CaseFailedError(
                "reading a variable without a value raised nothing; FailedPreconditionError is required"
            )


@check("VarIsInitializedOp", "before-and-after")
def _variable_is_initialised(target: Target, graph: Any) -> None:
    v = tf.Variable(np.array([1, 2], np.int32), name="v")
    state = tf.is_variable_initialized(v) if hasattr(tf, "is_variable_initialized") else v.is_initialized()
    with target.session(graph) as session:
        same(session.run(state), False)
        session.run(v.initializer)
        same(session.run(state), True)


@check("AssignAddVariableOp", "threads")
def _variable_threads(target: Target, graph: Any) -> None:
    v = tf.Variable(np.zeros(100, np.float32), name="v")
    add = v.assign_add(np.ones(100, np.float32))
    with target.session(graph) as session:
        session.run(v.initializer)

        def work() -> None:
            for _ in range(25):
                session.run(add)
                value = session.run(v)
                if not np.all(value == value[0]):
                    raise CaseFailedError("a read in another thread saw a half-written variable")

        in_threads(lambda _: work(), 3)
        same(session.run(v), np.full(100, 75), "after 75 assign_add in three threads the variable")


@check("AssignVariableOp", "kept-after-error")
def _variable_after_error(target: Target, graph: Any) -> None:
    v = tf.Variable(np.array([8, 6], np.int32), name="v")
    d = tf.placeholder(tf.int32, (2,))
    update = v.assign(tf.floordiv(v.value() if hasattr(v, "value") else v, d))
    with target.session(graph) as session:
        session.run(v.initializer)
        with contextlib.suppress(tf.errors.OpError):
            session.run(update, {d: [2, 0]})
        same(session.run(v), [8, 6], "after a run that failed the variable")
        session.run(update, {d: [2, 3]})
        same(session.run(v), [4, 2])


@check("NoOp", "control-dependencies")
def _control(target: Target, graph: Any) -> None:
    v = tf.Variable(np.int32(1), name="v")
    with tf.control_dependencies([v.assign_add(10)]):
        after = tf.identity(v.read_value()) if hasattr(v, "read_value") else tf.identity(v)
    group = tf.group(v.assign_add(100))
    with target.session(graph) as session:
        session.run(v.initializer)
        same(session.run(after), 11)
        session.run(group)
        same(session.run(v), 111)


@check("Placeholder", "feeds-and-fetches")
def _fetches(target: Target, graph: Any) -> None:
    x = tf.placeholder(tf.float32, (None,), name="x")
    y = x * 2.0
    z = y + 1.0
    with target.session(graph) as session:
        got = session.run({"a": [x, z], "b": (y,)}, {x: [1, 2]})
        same(got["a"][0], [1, 2])
        same(got["a"][1], [3, 5])
        same(got["b"][0], [2, 4])
        same(session.run(z, {y: [10]}), [11], "with an intermediate tensor fed the result")
        same(session.run([z, z, y], {x: [5]})[1], [11])


@check("Placeholder", "results-stay")
def _results_stay(target: Target, graph: Any) -> None:
    x = tf.placeholder(tf.float32, (1000,))
    y = tf.tanh(x) * 0.0 + x
    with target.session(graph) as session:
        first = session.run(y, {x: np.full(1000, 1, np.float32)})
        kept = first.copy()
        for i in range(5):
            session.run(y, {x: np.full(1000, i, np.float32)})
        same(first, kept, "a fetched result after later runs")
        if not first.flags.writeable:
            raise CaseFailedError("a fetched result is read-only; it must be the caller's")


@check("Const", "shared-by-runs")
def _constants(target: Target, graph: Any) -> None:
    c = tf.constant(np.arange(6, dtype=np.float32))
    y = c + 1.0
    with target.session(graph) as session:
        got = session.run(c)
        if got.flags.writeable:
            got[:] = -1
        same(session.run([c, y])[1], np.arange(6) + 1, "a constant after its fetched value was written to")


@check("Graph", "deep-chain")
def _deep(target: Target, graph: Any) -> None:
    x = tf.placeholder(tf.float32, (4,))
    y = x
    for _ in range(1000):
        y = y + 1.0
    with target.session(graph) as session:
        same(session.run(y, {x: [0, 1, 2, 3]}), [1000, 1001, 1002, 1003])


@check("Graph", "wide-fan-out")
def _wide(target: Target, graph: Any) -> None:
    x = tf.placeholder(tf.int32, (5,))
    total = tf.add_n([x * k for k in range(100)])
    with target.session(graph) as session:
        same(session.run(total, {x: [1, 2, 3, 4, 5]}), np.arange(1, 6) * 4950)


@check("Graph", "threads")
def _threads(target: Target, graph: Any) -> None:
    x = tf.placeholder(tf.float32, (None,))
    y = tf.reduce_sum(x * x)
    with target.session(graph) as session:

        def work() -> None:
            for n in (1, 10, 1000):
                for _ in range(10):
                    same(session.run(y, {x: np.ones(n, np.float32)}), n)

        in_threads(lambda _: work(), 4)


@check("Graph", "grows-between-runs")
def _grows(target: Target, graph: Any) -> None:
    x = tf.placeholder(tf.float32, (2,))
    y = x + 1.0
    with target.session(graph) as session:
        same(session.run(y, {x: [1, 2]}), [2, 3])
        z = y * 3.0
        same(session.run(z, {x: [1, 2]}), [6, 9])


@check("Graph", "shape-arithmetic")
def _shapes(target: Target, graph: Any) -> None:
    x = tf.placeholder(tf.float32, (None, None))
    n = tf.shape(x)
    y = tf.reshape(x, tf.stack([n[1], n[0]]))
    with target.session(graph) as session:
        for shape in ((2, 3), (4, 1), (0, 5)):
            a = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
            same(session.run(y, {x: a}), a.reshape(shape[::-1]))


@check("Graph", "data-dependent-shapes")
def _dynamic(target: Target, graph: Any) -> None:
    x = tf.placeholder(tf.int32, (None,))
    indices = tf.where(x > 0)
    total = tf.reduce_sum(tf.gather(x, tf.reshape(indices, [-1])))
    with target.session(graph) as session:
        for values in ([1, -2, 3], [-1], [], [5, 5]):
            same(session.run(total, {x: np.array(values, np.int32)}), sum(v for v in values if v > 0))
