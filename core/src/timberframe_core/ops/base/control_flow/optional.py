"""Values that may be missing (Optional*): TensorFlow 2's gradients of branches pass intermediates in them."""

from __future__ import annotations

from typing import Any

from timberframe_core.ops.definition.gradients import apply_op
from timberframe_core.ops.definition.opdef import InferenceContext, NotDifferentiable, define_op
from timberframe_core.shapes import Shape

define_op(
    "OptionalNone",
    outputs=["optional: variant"],
    doc="A value that is missing.",
    shape=lambda c: [()],
    gradient=NotDifferentiable("there is no value"),
)


def _from_value_gradient(op: Any, grad: Any) -> list[Any]:
    attrs = {"output_types": op.attrs["Toutput_types"], "output_shapes": [t.static_shape for t in op.inputs]}
    return list(apply_op("OptionalGetValue", [grad], attrs))


define_op(
    "OptionalFromValue",
    inputs=["components: Toutput_types"],
    outputs=["optional: variant"],
    attrs=["Toutput_types: list(type) >= 1"],
    doc="A value that is there: some tensors.",
    shape=lambda c: [()],
    gradient=_from_value_gradient,
)


def _value_shapes(c: InferenceContext) -> list[Shape]:
    count = len(c.attrs["output_types"])
    shapes = c.attrs["output_shapes"]
    if len(shapes) != count:
        raise c.error(f"output_shapes has {len(shapes)} shapes for {count} output_types; each needs one")
    for i in range(count):
        c.output_handles[i] = (None, None)
    return list(shapes)


define_op(
    "OptionalGetValue",
    inputs=["optional: variant"],
    outputs=["components: output_types"],
    attrs=["output_types: list(type) >= 1", "output_shapes: list(shape) >= 1"],
    doc="The tensors of a value that is there.",
    shape=_value_shapes,
    gradient=lambda op, *grads: [apply_op("OptionalFromValue", [list(grads)])],
)

define_op(
    "OptionalHasValue",
    inputs=["optional: variant"],
    outputs=["has_value: bool"],
    doc="Whether the value is there.",
    shape=lambda c: [()],
    gradient=NotDifferentiable("a truth value has no derivative"),
)
