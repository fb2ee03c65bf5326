"""Builds steps that the host carries out: functions of arrays, queues, tables; and random streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import timberframe
from timberframe_conformance.fuzz.program import Step
from timberframe_core.graph.apply import apply_op

if TYPE_CHECKING:
    from timberframe_conformance.fuzz.build import Builder

tf: Any = timberframe

FUNCTIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "keep": (lambda x: x, "lambda x: x"),
    "twice": (lambda x: x + x, "lambda x: x + x"),
    "swap": (lambda x, y: [y, x], "lambda x, y: [y, x]"),
}
"""What a host op does, with its source: functions of arrays of one dtype, and of values in float64."""


def _host(b: Builder, step: Step) -> list[Any]:
    given = b.inputs(step)
    count = 2 if step.op == "swap" else 1
    made = tf.py_func(FUNCTIONS[step.op][0], given, [given[0].dtype] * count)
    if step.attrs["shaped"]:
        for t, x in zip(made, reversed(given), strict=False):
            t.set_shape(x.shape)
    return list(made)


def _queue(b: Builder, step: Step) -> list[Any]:
    """Adds the inputs in their order and takes them, one by one or as rows."""
    given = b.inputs(step)
    shapes = [tuple(step.attrs["shape"])] if step.attrs["shaped"] else None
    queue = getattr(tf, step.op)(len(given), given[0].dtype, shapes=shapes, name=f"queue{len(b.built.steps)}")
    last: list[Any] = []
    for x in given:
        with tf.control_dependencies(last):
            last = [queue.enqueue(x)]
    made: list[Any] = []
    for _ in range(1 if step.attrs["many"] else len(given)):
        with tf.control_dependencies(last):
            made.append(queue.dequeue_many(len(given)) if step.attrs["many"] else queue.dequeue())
        last = [made[-1]]
    with tf.control_dependencies(last):  # whichever of them a run asks for, it takes all that it has added
        return [tf.identity(t) for t in made]


def _table(b: Builder, step: Step) -> list[Any]:
    """Returns the values of computed keys."""
    keys, values, default = step.attrs["keys"], step.attrs["values"], step.attrs["default"]
    entries = tf.lookup.KeyValueTensorInitializer(tf.constant(keys), tf.constant(values))
    table = tf.lookup.StaticHashTable(entries, default, name=f"table{len(b.built.steps)}")
    b.built.initializers.append(table.initializer)
    return [table.lookup(b.inputs(step)[0])]


def _random(b: Builder, step: Step) -> list[Any]:
    attrs = {"dtype": step.attrs["dtype"], "seed": step.attrs["seed"], "seed2": 1}
    return [apply_op(step.op, [tf.constant(step.attrs["shape"], tf.int32, shape=(len(step.attrs["shape"]),))], attrs)]


SEAMS: dict[str, Callable[[Builder, Step], list[Any]]] = {
    "host": _host, "queue": _queue, "table": _table, "random": _random,
}  # fmt: skip
