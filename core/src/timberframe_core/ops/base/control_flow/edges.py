"""Ops that the compiler puts into graphs: edges between clusters, and the ends of function bodies."""

from __future__ import annotations

from timberframe_core.ops.definition.opdef import InferenceContext, NotDifferentiable, define_op
from timberframe_core.shapes import Shape

_INTERNAL = NotDifferentiable("added after gradients were built")

_RENDEZVOUS_ATTRS = (
    "tensor_name: string",
    "send_device: string",
    "send_device_incarnation: int",
    "recv_device: string",
    "client_terminated: bool = false",
)


def _nothing(c: InferenceContext) -> list[Shape]:
    return []


def _unknown(c: InferenceContext) -> list[Shape]:
    return [None]


define_op(
    "_Send",
    inputs=["tensor: T"],
    attrs=["T: type", *_RENDEZVOUS_ATTRS],
    doc="Sends a tensor to the _Recv with the same tensor_name and devices.",
    shape=_nothing,
    gradient=_INTERNAL,
    stateful=True,
)

define_op(
    "_Recv",
    outputs=["tensor: tensor_type"],
    attrs=["tensor_type: type", *_RENDEZVOUS_ATTRS],
    doc="The tensor that the _Send with the same tensor_name and devices sends.",
    shape=_unknown,
    gradient=_INTERNAL,
    stateful=True,
)

arg = define_op(
    "_Arg",
    outputs=["output: T"],
    attrs=["T: type", "index: int >= 0"],
    doc="Argument number `index` of the function whose body this is in.",
    shape=_unknown,
    gradient=_INTERNAL,
    stateful=True,
)

define_op(
    "_Retval",
    inputs=["input: T"],
    attrs=["T: type", "index: int >= 0"],
    doc="Makes the input result number `index` of the function whose body this is in.",
    shape=_nothing,
    gradient=_INTERNAL,
    stateful=True,
)
