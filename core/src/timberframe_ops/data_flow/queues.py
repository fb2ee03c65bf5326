"""Queues of tuples of tensors: TensorFlow's data_flow_ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from timberframe_core.ops.definition.opdef import InferenceContext, NotDifferentiable, define_op
from timberframe_core.shapes import Shape, format_shape

_STATE = NotDifferentiable("what a queue holds is no function of tensors")
_TYPES = "component_types: list(type) >= 1"
_NAMES = ("container: string = ''", "shared_name: string = ''")
_SHAPES = ("shapes: list(shape) >= 0 = []", "capacity: int = -1")

for _name, _order, _attrs in (
    ("FIFOQueueV2", "in the order in which they came", (_TYPES, *_SHAPES)),
    ("PaddingFIFOQueueV2", "in the order in which they came; batches are padded to one shape", (_TYPES, *_SHAPES)),
    (
        "RandomShuffleQueueV2",
        "in random order, drawn from more than min_after_dequeue",
        (_TYPES, *_SHAPES, "min_after_dequeue: int = 0", "seed: int = 0", "seed2: int = 0"),
    ),
    (
        "PriorityQueueV2",
        "with the least priority first, an int64 that precedes the other components",
        ("component_types: list(type) >= 0 = []", "shapes: list(shape) >= 0", "capacity: int = -1"),
    ),
):
    define_op(
        _name,
        outputs=["handle: resource"],
        attrs=[*_attrs, *_NAMES],
        doc=f"A queue of tuples of tensors, which it gives {_order}. It holds at most `capacity` (-1: any number).",
        shape=lambda c: [()],
        gradient=_STATE,
        on_host=True,
        resource="queue",
        stateful=True,
    )


def _components(c: InferenceContext) -> Sequence[Shape]:
    return [None] * len(c.attrs["component_types"])


def _batches(c: InferenceContext) -> Sequence[Shape]:
    if c.shapes[1] not in (None, ()):
        raise c.error(f"n has shape {format_shape(c.shapes[1])}; it must be a scalar")
    return _components(c)


def _define(name: str, doc: str, shape: Any, inputs: Sequence[str] = (), output: str = "", *attrs: str) -> None:
    define_op(
        name,
        inputs=["handle: resource", *inputs],
        outputs=[output] if output else [],
        attrs=attrs,
        doc=doc,
        shape=shape,
        gradient=_STATE,
        on_host=True,
        kinds={"handle": "queue"},
        blocks=name not in ("QueueIsClosedV2", "QueueSizeV2"),
        stateful=True,
    )


_GIVEN = ("Tcomponents: list(type) >= 1", "timeout_ms: int = -1")
_TAKEN = (_TYPES, "timeout_ms: int = -1")

_define(
    "QueueEnqueueV2",
    "Adds one element; waits while the queue is full. An error if the queue is closed.",
    lambda c: [],
    ["components: Tcomponents"],
    "",
    *_GIVEN,
)
_define(
    "QueueEnqueueManyV2",
    "Adds an element for each row of the components; waits while the queue is full. An error if the queue is closed.",
    lambda c: [],
    ["components: Tcomponents"],
    "",
    *_GIVEN,
)
_define(
    "QueueDequeueV2",
    "Takes one element; waits until there is one. OutOfRangeError if the queue is closed and empty.",
    _components,
    [],
    "components: component_types",
    *_TAKEN,
)
_define(
    "QueueDequeueManyV2",
    "Takes n elements as rows; waits until there are as many. OutOfRangeError if the queue is closed and has fewer.",
    _batches,
    ["n: int32"],
    "components: component_types",
    *_TAKEN,
)
_define(
    "QueueDequeueUpToV2",
    "Takes n elements as rows, or those that are left in a queue that is closed. OutOfRangeError if none are.",
    _batches,
    ["n: int32"],
    "components: component_types",
    *_TAKEN,
)
_define(
    "QueueCloseV2",
    "Closes the queue when what waits to be added has been, or with cancel_pending_enqueues at once.",
    lambda c: [],
    [],
    "",
    "cancel_pending_enqueues: bool = false",
)
_define("QueueIsClosedV2", "Whether the queue is closed.", lambda c: [()], [], "is_closed: bool")
_define("QueueSizeV2", "How many elements the queue has.", lambda c: [()], [], "size: int32")
