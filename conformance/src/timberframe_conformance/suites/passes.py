"""Passes: graphs with each registered pass off, one at a time, and passes that fail.

A pass changes no result, so each graph must be right with all passes, and without any one of them.
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_conformance.case import Case, CaseFailedError, Measured, generator
from timberframe_conformance.suites.checks import Checks, same, tf
from timberframe_conformance.suites.models import MODELS, Net
from timberframe_conformance.twin import Twin, Value
from timberframe_core.fallback import STRICT_VARIABLE
from timberframe_core.graph.apply import apply_op
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.plugin import loader
from timberframe_core.plugin.passes import PHASES, Pass, with_passes

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "passes"
F = np.float32
ALL, NONE = "all", "none"

check = Checks(SUITE)


def collect(target: Target, ops: Sequence[OpDef]) -> Iterator[Case]:
    """Yields each graph with all passes, without each one that it needs not, and without any; then passes that fail."""
    names = target.passes()
    settings = {"": (), **{f"-without-{name}": (name,) for name in names}, "-without-any": tuple(names)}
    for graph, build in GRAPHS.items():
        for detail, off in settings.items():
            yield Case(SUITE, "Graph", (), graph + detail, functools.partial(_of_known_values, build, off))
    for graph, run in ORDERED.items():
        for detail, off in settings.items():
            if NEEDED.get(graph) not in off:
                yield Case(SUITE, "Graph", (), graph + detail, functools.partial(_of_effects, run, off))
    yield from check.collect(target, ops)


def _of_known_values(build: Callable[[Net], list[Value]], off: Sequence[str], target: Target) -> Measured:
    twin = Twin(target)
    outputs = build(Net(twin, generator(f"{SUITE}/{build.__qualname__}"), "float32"))
    return twin.check(outputs, 2, optimizations=dict.fromkeys(off, False))


def _of_effects(run: Callable[[Any], None], off: Sequence[str], target: Target) -> None:
    graph = tf.Graph()
    scope = f"{SUITE}-{run.__name__}-{'-'.join(off)}"  # of its own, as variables of a target outlive sessions
    with graph.as_default(), tf.device(target.spec), tf.name_scope(scope.replace("-_", "-")):
        run(lambda: target.session(graph, optimizations=dict.fromkeys(off, False)))


# Graphs of known values


def _equal_nodes(net: Net) -> list[Value]:
    """Nodes of equal op and inputs: equal ones, ones whose attrs differ, and ones whose inputs are exchanged."""
    x = net.twin.feed(net.rng.normal(size=(4, 4)).astype(F))
    y = net.twin.feed(net.rng.normal(size=(4, 4)).astype(F))
    pairs = [
        [net.op("MatMul", x, y, transpose_a=a, transpose_b=b) for a in (False, True) for b in (False, True)],
        [net.op("Cumsum", x, net.twin.constant(0), reverse=r) for r in (False, True)],
        [net.op(op, *inputs) for op in ("AddV2", "Sub", "Maximum") for inputs in ((x, y), (y, x), (x, y))],
    ]
    return [v for pair in pairs for v in pair]


def _constants(net: Net) -> list[Value]:
    """Nodes of constants alone: several outputs of one dtype and shape, shapes, and what depends on them."""
    x = net.twin.feed(net.rng.normal(size=(2, 3)).astype(F))
    table = net.weights(6, 2)
    parts = net.twin.outputs("Split", [net.twin.constant(0), table], {"num_split": 2})
    best = net.twin.outputs("TopKV2", [table, net.twin.constant(2)])
    rows = net.twin.outputs("Unpack", [net.op("Transpose", table, net.shape(1, 0))], {"num": 2, "axis": 0})
    product = net.op("MatMul", x, net.op("Mul", parts[0], net.op("Exp", parts[1])))
    return [product, *parts, *best, *rows, net.op("Sub", *rows)]


def _chain(net: Net) -> list[Value]:
    """Elementwise nodes that may be one: values that are broadcast, read twice, fetched in between, and summed up."""
    x = net.twin.feed(net.rng.normal(size=(8, 5, 257)).astype(F))
    row, column = (net.twin.feed(net.rng.normal(size=s).astype(F)) for s in ((257,), (5, 1)))
    a = net.op("Tanh", net.op("AddV2", net.op("Mul", x, row), column))
    b = net.op("Sub", net.op("Square", a), net.op("Sigmoid", a))
    c = net.op("Maximum", b, net.op("Neg", a))
    return [a, net.op("RealDiv", c, net.op("Exp", b)), net.op("Sum", c, net.twin.constant([-1]))]


def _layers(net: Net) -> list[Value]:
    """Layers whose nodes a kernel may run as one, one of them fetched before its activation."""
    x = net.twin.feed(net.rng.normal(size=(2, 8, 8, 3)).astype(F))
    before = net.op("BiasAdd", net.conv(x, 4, 3), net.weights(4))
    hidden = net.op("Relu", net.op("BiasAdd", net.conv(net.op("Relu", before), 6, 3, 2), net.weights(6)))
    normed = net.op("Relu6", net.batch_norm(net.op("BiasAdd", net.conv(hidden, 5, 1), net.weights(5))))
    flat = net.op("Reshape", normed, net.shape(2, -1))
    return [before, net.dense(net.dense(flat, 9, "Relu"), 5)]


def _powers(net: Net) -> list[Value]:
    """Powers by whole numbers, by others, and by several of them, of numbers of either sign."""
    x = net.twin.feed(net.rng.normal(size=(3, 4)).astype(F))
    positive = net.op("Exp", x)
    whole = [net.op("Pow", x, net.twin.constant(n, "float32")) for n in (-2, -1, 0, 1, 2, 3, 4, 5)]
    others = [net.op("Pow", positive, net.twin.constant(n, "float32")) for n in (-0.5, 0.5, 2.5)]
    several = [net.twin.constant(n, "float32") for n in ((2, 3, 4, -1), (3,), ((2,), (3,), (1,)))]
    return [*whole, *others, *(net.op("Pow", x, n) for n in several)]


def _padded(net: Net) -> list[Value]:
    """Returns zeros around images, other amounts on each side, that convolutions may add themselves."""
    x = net.twin.feed(net.rng.normal(size=(2, 6, 5, 3)).astype(F))
    wide = net.op("Pad", x, net.twin.constant([[0, 0], [1, 2], [0, 3], [0, 0]]))
    strides = {"strides": (1, 2, 2, 1), "padding": "VALID"}
    both = [net.op("Conv2D", wide, net.weights(3, 2, 3, 4), **strides)]
    both.append(net.op("DepthwiseConv2dNative", wide, net.weights(3, 2, 3, 2), **strides))
    mirrored = net.op("MirrorPad", x, net.twin.constant([[0, 0], [1, 2], [0, 3], [0, 0]]), mode="REFLECT")
    both.append(net.op("Conv2D", mirrored, net.weights(3, 2, 3, 4), **strides))
    batch = net.op("Pad", x, net.twin.constant([[1, 0], [1, 0], [0, 1], [0, 0]]))
    return [*both, net.op("Conv2D", batch, net.weights(3, 2, 3, 4), **strides)]


def _attention(net: Net) -> list[Value]:
    return [MODELS["attention"](net, 2)]


GRAPHS: dict[str, Callable[[Net], list[Value]]] = {
    "equal-nodes": _equal_nodes, "constants": _constants, "chain": _chain, "layers": _layers, "padded": _padded,
    "powers": _powers, "attention": _attention,
}  # fmt: skip

# Graphs with effects, whose order counts


def _order(session_of: Callable[[], Any]) -> None:
    """Reads and updates of a variable in the order of control edges, through Identity nodes."""
    v, x = tf.Variable(1.0, name="v"), tf.placeholder(tf.float32, ())
    first = tf.identity(v.read_value())
    with tf.control_dependencies([first]), tf.control_dependencies([v.assign(x * 2.0)]):
        second = tf.identity(v.read_value())
    with tf.control_dependencies([second]):
        step = tf.identity(x)
        with tf.control_dependencies([tf.identity(step), v.assign_add(second)]):
            third = v.read_value() + 0.0 * step
    with session_of() as session:
        session.run(v.initializer)
        same(session.run([first, second, third], {x: 3}), np.array([1, 6, 12], F), "the values in their order")
        same(session.run([third, first], {x: 5}), np.array([20, 12], F), "the values in their order")


def _assertion(session_of: Callable[[], Any]) -> None:
    """Checks that what only a control edge ties to a check waits for it, though the check is made
    late and could be made after.
    """
    v, x = tf.Variable(1.0, name="v"), tf.placeholder(tf.float32, ())
    late = x
    for _ in range(3):
        late = tf.py_func(lambda a: a, [late + 0.0], tf.float32)
        late.set_shape(())
    with tf.control_dependencies([tf.Assert(tf.less(late, 4.0), [late])]):
        guarded = tf.identity(tf.identity(x))
    update = v.assign(guarded).op
    with session_of() as session:
        session.run(v.initializer)
        session.run(update, {x: 3})
        for fetch in (update, guarded):
            try:
                session.run(fetch, {x: 5})
            except tf.errors.InvalidArgumentError:
                same(session.run(v), F(3), "the variable after an assertion failed")
            else:
                raise CaseFailedError("5 passes an assertion that it is less than 4")


def _drawn(session_of: Callable[[], Any]) -> None:
    """Checks that random numbers are drawn afresh in each run, and once for each node,
    though op and inputs are equal.
    """
    a, b = (tf.random_uniform((8,)) for _ in range(2))
    with session_of() as session:
        first, second = session.run([a, b]), session.run([a, b])
    for x, y in ((first[0], first[1]), (first[0], second[0]), (first[1], second[1])):
        if np.array_equal(x, y):
            raise CaseFailedError("two draws of eight random numbers are equal")


def _nested(session_of: Callable[[], Any]) -> None:
    """In bodies of loops and branches: equal nodes, constants, and a value that the next iteration changes."""
    n = tf.placeholder(tf.int32, ())
    c = tf.constant([2.0, 3.0])

    def body(i: Any, a: Any) -> Any:
        b = tf.cond(tf.equal(i % 2, 0), lambda: a * (c + c) - c, lambda: a + tf.reverse(c * 2.0, [0]))
        return i + 1, b + tf.identity(a) - (a + 0.0)

    y = tf.while_loop(lambda i, _: i < n, body, [tf.constant(0), tf.constant([1.0, 1.0])])[1]
    value, wanted = np.array([2, 3], F), np.ones(2, F)
    with session_of() as session:
        for count in range(5):
            same(session.run(y, {n: count}), wanted, f"after {count} iterations")
            wanted = wanted * 2 * value - value if count % 2 == 0 else wanted + 2 * value[::-1]


def _lists(session_of: Callable[[], Any]) -> None:
    """Loops that read and write lists, one inside of the other, for several lengths."""
    x = tf.placeholder(tf.float32, (None, 2))
    sums = tf.scan(lambda total, row: total + row, x)
    y = tf.map_fn(lambda row: tf.map_fn(lambda e: e * 2.0, row), sums)
    with session_of() as session:
        for rows in (1, 3, 2, 3):
            value = np.arange(2 * rows, dtype=F).reshape(rows, 2)
            same(session.run(y, {x: value}), 2 * value.cumsum(0), f"the sums of {rows} rows")


def _frames(session_of: Callable[[], Any]) -> None:
    """TensorFlow 1's own loop of two variables, branch and reference variable, in the order of control edges."""
    graph, x, n, p = tf.get_default_graph(), *(tf.placeholder(t, ()) for t in (tf.float32, tf.int32, tf.bool))
    count, total = _old_loop(graph, n, x)
    otherwise, then = apply_op("Switch", [x, p])
    chosen, _ = apply_op("Merge", [[otherwise * 2.0, then + 1.0]])
    variable = apply_op("VariableV2", (), {"dtype": tf.float32, "shape": ()})
    first = apply_op("Assign", [variable, x]) + 0.0
    with graph.control_dependencies([first.op]):
        added = apply_op("AssignAdd", [variable, chosen])
    with graph.control_dependencies([added.op]):
        last = apply_op("Identity", [variable]) + 0.0
    with session_of() as session:
        for value, times, which in ((3, 2, True), (5, 0, False), (7, 3, True)):
            found = session.run([count, total, chosen, first, last], {x: value, n: times, p: which})
            branch = value + 1 if which else value * 2
            wanted = times, value * 3**times, branch, value, value + branch
            for got, right, name in zip(found, wanted, ("count", "total", "branch", "assigned", "sum"), strict=True):
                same(got, np.float32(right), f"the {name} for {value}, {times} and {which}")


def _old_loop(graph: Any, limit: Any, start: Any) -> tuple[Any, Any]:
    """Returns how often a loop ran, and `start` times three to that power."""
    zero = tf.constant(0.0)
    entered = [apply_op("Enter", [t], {"frame_name": "loop"}) for t in (zero, start)]
    bound = apply_op("Enter", [tf.cast(limit, tf.float32)], {"frame_name": "loop", "is_constant": True})
    (count, _), (total, _) = (apply_op("Merge", [[t, t]]) for t in entered)
    more = apply_op("LoopCond", [apply_op("Less", [count, bound])])
    (left, counted), (result, summed) = (apply_op("Switch", [t, more]) for t in (count, total))
    with graph.control_dependencies([counted.op]):
        one, three = tf.constant(1.0), tf.constant(3.0)
    graph.close_loop(count.op, 1, apply_op("NextIteration", [apply_op("AddV2", [counted, one])]))
    graph.close_loop(total.op, 1, apply_op("NextIteration", [apply_op("Mul", [summed, three])]))
    return apply_op("Exit", [left]), apply_op("Exit", [result])


def _steps(session_of: Callable[[], Any]) -> None:
    """Loops over rows, from either end, with products by weights, columns and sums of them, all whole numbers."""
    rng = np.random.default_rng(3)
    rows, weights, bias, start = (rng.integers(-2, 3, s).astype(F) for s in ((5, 2, 3), (7, 4), (4,), (3, 4)))
    x, first = tf.placeholder(tf.float32, rows.shape), tf.placeholder(tf.float32, start.shape)
    given = tf.TensorArray(tf.float32, len(rows)).unstack(x)
    for order in (range(5), range(4, -1, -1)):

        def body(t: Any, h: Any, total: Any, order: range = order) -> Any:
            row = given.read(t if order.step > 0 else len(rows) - 1 - t)
            product = tf.matmul(tf.concat([row, h], 1), tf.constant(weights))
            z = tf.nn.bias_add(product, tf.constant(bias))
            back = tf.slice(tf.matmul(z, tf.constant(weights), transpose_b=True), (0, 3), (2, 4))
            h = tf.floormod(z + back, 8.0)
            return t + 1, h, total + tf.matmul(row, h, transpose_a=True)

        found = tf.while_loop(lambda t, *_: t < len(rows), body, [0, tf.zeros((2, 4)), first])[1:]
        h: np.ndarray = np.zeros((2, 4), F)
        total = start
        for row in rows[list(order)]:
            z = np.concatenate([row, h], 1) @ weights + bias
            h = (z + (z @ weights.T)[:, 3:]) % 8
            total = total + row.T @ h
        with session_of() as session:
            for got, right, name in zip(
                session.run(found, {x: rows, first: start}), (h, total), ("state", "sum"), strict=True
            ):
                same(got, right, f"the {name} after rows {order}")


def _arrays(session_of: Callable[[], Any]) -> None:
    """Runs a loop over TensorFlow 1's arrays: rows in another order, and an error where it reads an element twice."""
    x, order = tf.placeholder(tf.float32, (3, 2)), (2, 0, 1)
    float32 = {"dtype": tf.float32}

    def sums(times: int) -> Any:
        (rows, filled), (sums, empty) = (apply_op("TensorArrayV3", [3], float32) for _ in range(2))
        filled = apply_op("TensorArrayScatterV3", [rows, order, x, filled])

        def body(t: Any, total: Any, flow: Any) -> Any:
            for _ in range(times):
                row = apply_op("TensorArrayReadV3", [rows, t, filled], float32)
                row.set_shape((2,))
                total = total + row
            return t + 1, total, apply_op("TensorArrayWriteV3", [sums, t, total, flow])

        flow = tf.while_loop(lambda t, *_: t < 3, body, [0, tf.zeros((2,)), empty])[2]
        return apply_op("TensorArrayGatherV3", [sums, (0, 1, 2), flow], float32)

    once, twice = sums(1), sums(2)
    value = np.arange(6, dtype=F).reshape(3, 2)
    with session_of() as session:
        same(session.run(once, {x: value}), value[np.argsort(order)].cumsum(0), "the sums of rows of an array")
        try:
            session.run(twice, {x: value})
        except tf.errors.InvalidArgumentError:
            return
    raise CaseFailedError("an element of an array, which reading clears, is read twice")


ORDERED: dict[str, Callable[[Any], None]] = {
    "order": _order, "assertion": _assertion, "drawn": _drawn, "nested": _nested, "lists": _lists,
    "frames": _frames, "steps": _steps, "arrays": _arrays,
}  # fmt: skip
NEEDED = {"frames": "functionalize"}
"""A pass without which a graph cannot run."""

# Passes that fail


def _nothing(record: logging.LogRecord) -> bool:
    return False


@contextmanager
def _left_out() -> Iterator[None]:
    """What fails is left out, as for users, without a word in the log."""
    before, log = os.environ.get(STRICT_VARIABLE), logging.getLogger("timberframe")
    os.environ[STRICT_VARIABLE] = "0"
    log.addFilter(_nothing)
    try:
        yield
    finally:
        log.removeFilter(_nothing)
        if before is None:
            del os.environ[STRICT_VARIABLE]
        else:
            os.environ[STRICT_VARIABLE] = before


def _raise(rewriter: Any) -> None:
    if hasattr(rewriter, "nodes"):
        for node in rewriter.nodes:
            if len(node.inputs) == 1:  # with a change recorded before
                rewriter.erase(node)
    else:
        rewriter.substitute(rewriter.graph, rewriter.fetches, rewriter.feeds, rewriter.operations)
    raise KeyError("a pass of the suite")


def _erase_all(rewriter: Any) -> None:
    """Leaves out what others read; of a graph what is fetched."""
    if not hasattr(rewriter, "nodes"):
        rewriter.substitute(rewriter.graph, (), rewriter.feeds, rewriter.operations)
        return
    for node in rewriter.nodes:
        if node.inputs and (not hasattr(rewriter, "may_erase") or rewriter.may_erase(node)):
            rewriter.erase(node)


def _with_pass(phase: str, run: Callable[[Any], None], target: Target, graph: Any) -> None:
    x = tf.placeholder(tf.float32, (3,))
    y = tf.exp(tf.identity(tf.square(x) * tf.constant([1.0, 2.0, 3.0])) * 0.0) + x
    a, name = np.array([1, 2, 3], F), "conformance_fails"
    failing = Pass(name, phase, run, "fails")
    with with_passes(loader.registry.passes, [failing]), _left_out(), target.session(graph) as session:
        for _ in range(2):
            same(session.run(y, {x: a}), a + 1, f"the result with a pass of phase {phase} that fails")
        reports = [p for p in session.explain(y, {x: a}).passes if p.name == name]
        if not reports or not all(p.failure for p in reports):
            raise CaseFailedError(f"explain says {reports}; it must say that the pass failed, and why")


for _phase in PHASES:
    check("Graph", f"pass-raises-{_phase}")(functools.partial(_with_pass, _phase, _raise))
    check("Graph", f"pass-erases-{_phase}")(functools.partial(_with_pass, _phase, _erase_all))
