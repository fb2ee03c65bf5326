"""Ops that write to the standard error or output: TensorFlow's logging_ops."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from timberframe_core.ops.definition.opdef import InferenceContext, NotDifferentiable, define_op
from timberframe_core.shapes import Shape, format_shape


def _print_gradient(op: Any, gradient: Any) -> list[Any]:
    return [gradient, *[None] * (len(op.inputs) - 1)]


def _text_shape(c: InferenceContext) -> list[Shape]:
    if c.shapes[0] not in (None, ()):
        raise c.error(f"input has shape {format_shape(c.shapes[0])}; it must be a scalar")
    return []


define_op(
    "Print",
    inputs=["input: T", "data: U"],
    outputs=["output: T"],
    attrs=[
        "T: type",
        "U: list(type) >= 0",
        "message: string = ''",
        "first_n: int = -1",
        "summarize: int = 3",
    ],
    doc="The input; writes the message and the first `summarize` elements (-1: all) of each of `data` to the standard "
    "error, the first `first_n` times (-1: always) in a session.",
    shape=lambda c: [c.shapes[0]],
    reference=lambda attrs, x, *data: x,
    gradient=_print_gradient,
    on_host=True,
    stateful=True,
)

define_op(
    "Timestamp",
    outputs=["ts: double"],
    doc="Seconds since 1970-01-01 00:00 UTC.",
    shape=lambda c: [()],
    reference=lambda attrs: np.array(time.time()),
    gradient=NotDifferentiable("time is no function of tensors"),
    on_host=True,
    stateful=True,
)

define_op(
    "PrintV2",
    inputs=["input: string"],
    attrs=["output_stream: string = 'stderr'", "end: string = '\\n'"],
    doc="Writes a string and `end` to the stream: stderr, stdout, log(info), log(warning), log(error), or file://path.",
    shape=_text_shape,
    gradient=NotDifferentiable("it has no output"),
    on_host=True,
    stateful=True,
)
