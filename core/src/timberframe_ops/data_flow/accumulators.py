"""Accumulators of gradients that several replicas compute: TensorFlow's data_flow_ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from timberframe_core.ops.definition.opdef import InferenceContext, NotDifferentiable, define_op
from timberframe_core.shapes import Shape, format_shape

_STATE = NotDifferentiable("what an accumulator holds is no function of tensors")
_DTYPE = "dtype: numbertype"


def _scalars(c: InferenceContext, *names: str) -> None:
    """Raises where an input of these names, which follow the handle, is no scalar."""
    for name, shape in zip(names, c.shapes[1:], strict=False):
        if shape not in (None, ()):
            raise c.error(f"{name} has shape {format_shape(shape)}; it must be a scalar")


def _none(name: str) -> Any:
    def shape(c: InferenceContext) -> Sequence[Shape]:
        _scalars(c, name)
        return []

    return shape


def _average(c: InferenceContext) -> Sequence[Shape]:
    _scalars(c, "num_required")
    return [None]


def _slices(c: InferenceContext) -> Sequence[Shape]:
    _scalars(c, "num_required")
    return [(None,), None, (None,)]


def _define_kind(name: str, what: str) -> None:
    define_op(
        name,
        outputs=["handle: resource"],
        attrs=[
            _DTYPE,
            "shape: shape",
            "container: string = ''",
            "shared_name: string = ''",
            "reduction_type: {'MEAN', 'SUM'} = 'MEAN'",
        ],
        doc=f"An accumulator of {what}, which has a step and drops those that were computed for an earlier one.",
        shape=lambda c: [()],
        gradient=_STATE,
        on_host=True,
        resource="accumulator",
        stateful=True,
    )


def _define(name: str, doc: str, inputs: Sequence[str], outputs: Sequence[str], shape: Any, *attrs: str) -> None:
    define_op(
        name,
        inputs=["handle: resource", *inputs],
        outputs=outputs,
        attrs=attrs,
        doc=doc,
        shape=shape,
        gradient=_STATE,
        on_host=True,
        kinds={"handle": "accumulator"},
        blocks="Take" in name,
        stateful=True,
    )


_TAKEN = (
    "once as many were added as are required, waiting for that; the accumulator is empty then, and its step one more."
)

# TensorFlow's dense accumulators have two forms, which do the same: the older one's handle is a reference to a string.
for _kind in ("", "Resource"):
    _define_kind(f"{_kind}ConditionalAccumulator", "tensors of one shape")
    _define(
        f"{_kind}AccumulatorApplyGradient",
        "Adds a gradient, unless local_step is less than the accumulator's step.",
        ["local_step: int64", "gradient: dtype"],
        [],
        _none("local_step"),
        _DTYPE,
    )
    _define(
        f"{_kind}AccumulatorTakeGradient",
        f"Takes the mean, or the sum, of the gradients {_TAKEN}",
        ["num_required: int32"],
        ["average: dtype"],
        _average,
        _DTYPE,
    )
    _define(
        f"{_kind}AccumulatorNumAccumulated",
        "How many gradients were added since the last were taken.",
        [],
        ["num_accumulated: int32"],
        lambda c: [()],
    )
    _define(
        f"{_kind}AccumulatorSetGlobalStep",
        "Sets the accumulator's step.",
        ["new_global_step: int64"],
        [],
        _none("new_global_step"),
    )

_define_kind("SparseConditionalAccumulator", "some rows of tensors")
_define(
    "SparseAccumulatorApplyGradient",
    "Adds a gradient of some rows, unless local_step is less than the accumulator's step.",
    ["local_step: int64", "gradient_indices: int64", "gradient_values: dtype", "gradient_shape: int64"],
    [],
    _none("local_step"),
    _DTYPE,
    "has_known_shape: bool",
)
_define(
    "SparseAccumulatorTakeGradient",
    f"Takes for each row the mean, or the sum, of the gradients that have it, {_TAKEN}",
    ["num_required: int32"],
    ["indices: int64", "values: dtype", "shape: int64"],
    _slices,
    _DTYPE,
)
