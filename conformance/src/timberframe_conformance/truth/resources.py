"""What the host carries out, by plain Python: queues, tables, functions of the program, and random streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe.host_ops.python_functions import function_of
from timberframe_ops.random.philox import Philox
from timberframe_sdk.reference import widen

if TYPE_CHECKING:
    from timberframe_conformance.truth.interpreter import Interpreter

Run = Callable[["Interpreter", Any, Sequence[Any]], tuple[Any, ...]]


def draw(i: Interpreter, op: Any, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Returns the next numbers of a node's stream. ValueError where it has no seed."""
    seeds = op.attrs["seed"], op.attrs["seed2"]
    if not any(seeds):
        raise ValueError(f"{op.type} '{op.name}': has no seed")
    stream, offset = op.op_def.stream, i.drawn.get(op.name, 0)
    value = stream.sample(op.attrs, Philox.seeded(*seeds).skip(offset), *inputs)
    i.drawn[op.name] = offset + stream.blocks(op.attrs, [np.shape(x) for x in inputs], np.shape(value))
    return (widen(np.asarray(value).astype(op.outputs[0].dtype.numpy)),)


def _enqueue(i: Interpreter, op: Any, inputs: Sequence[Any]) -> tuple[Any, ...]:
    i.resources.setdefault(inputs[0].name, []).append(tuple(inputs[1:]))
    return ()


def _dequeue(i: Interpreter, op: Any, inputs: Sequence[Any]) -> tuple[Any, ...]:
    element: tuple[Any, ...] = i.resources[inputs[0].name].pop(0)
    return element


def _dequeue_many(i: Interpreter, op: Any, inputs: Sequence[Any]) -> tuple[Any, ...]:
    elements = [i.resources[inputs[0].name].pop(0) for _ in range(int(inputs[1]))]
    return tuple(np.stack(parts) for parts in zip(*elements, strict=True))


def _fill(i: Interpreter, op: Any, inputs: Sequence[Any]) -> tuple[Any, ...]:
    table, keys, values = inputs
    i.resources[table.name] = dict(zip(keys.tolist(), values, strict=True))
    return ()


def _find(i: Interpreter, op: Any, inputs: Sequence[Any]) -> tuple[Any, ...]:
    table, keys, default = inputs
    entries = i.resources[table.name]
    found = [entries.get(key, default) for key in np.ravel(keys).tolist()]
    return (np.array(found, default.dtype).reshape(keys.shape),)


def _python(i: Interpreter, op: Any, inputs: Sequence[Any]) -> tuple[Any, ...]:
    made = function_of(op.attrs["token"])(*inputs)
    return tuple(map(np.asarray, made if isinstance(made, list | tuple) else [made]))


RESOURCES: dict[str, Run] = {
    "QueueEnqueueV2": _enqueue, "QueueDequeueV2": _dequeue, "QueueDequeueManyV2": _dequeue_many,
    "InitializeTableV2": _fill, "LookupTableFindV2": _find, "PyFunc": _python,
}  # fmt: skip
"""By op; those that make a handle are the interpreter's."""
