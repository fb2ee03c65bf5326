"""Variables: resource handles, reads and assigns.

In the references a handle stands for the variable's current value (None while it has none), and an assign returns the
new value. Shape functions know dtype and shape of a handle's variable from `InferenceContext.handles`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_core.dtypes import DType
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.shapes import Shape, compatible, format_shape

_STATE = NotDifferentiable("state is not a function of the inputs")
_TYPES = ("float32", "float64", "int32", "int64", "bool", "complex64")


def _handle(c: InferenceContext, i: int = 0) -> tuple[DType | None, Shape]:
    """Dtype and shape of the variable of input i, which must be a 0-d handle."""
    c.require_rank(i, 0)
    found = c.handles[i] if i < len(c.handles) else None
    return found or (None, None)


def _typed_handle(c: InferenceContext) -> Shape:
    """Returns the shape of the variable of input 0, whose dtype must be the attr's."""
    dtype, shape = _handle(c)
    wanted = c.attrs["dtype"]
    if dtype is not None and dtype is not wanted:
        raise c.error(f"variable has dtype {dtype}; attr dtype {wanted} must be the same")
    return shape


def _handle_shape(c: InferenceContext) -> list[Shape]:
    c.output_handles[0] = (c.attrs["dtype"], c.attrs["shape"])
    return [()]


def _read_shape(c: InferenceContext) -> list[Shape]:
    return [_typed_handle(c)]


def _assign_shape(c: InferenceContext) -> list[Shape]:
    _check_value(c, _typed_handle(c))
    return []


def _check_value(c: InferenceContext, shape: Shape) -> None:
    if not compatible(shape, c.shapes[1]):
        raise c.error(f"value has shape {format_shape(c.shapes[1])}; the variable needs {format_shape(shape)}")


def _is_initialized_shape(c: InferenceContext) -> list[Shape]:
    _handle(c)
    return [()]


def _variable_shape_shape(c: InferenceContext) -> list[Shape]:
    shape = _handle(c)[1]
    return [(None,) if shape is None else (len(shape),)]


def _destroy_shape(c: InferenceContext) -> list[Shape]:
    _handle(c)
    return []


def _variable_shape_reference(attrs: Attrs, resource: Any) -> np.ndarray:
    return np.array(np.shape(resource), attrs["out_type"].numpy)


_HANDLE_ATTRS = (
    "container: string = ''",
    "shared_name: string = ''",
    "debug_name: string = ''",
    "dtype: type",
    "shape: shape",
    "allowed_devices: list(string) = []",
)

define_op(
    "VarHandleOp",
    outputs=["resource: resource"],
    attrs=_HANDLE_ATTRS,
    doc="A handle to the session's variable `shared_name` of `container` (by default: of this node's name).",
    shape=_handle_shape,
    role="variable",
    gradient=_STATE,
    stateful=True,
    samples=lambda: [Sample(attrs={"shape": (2, 3), "shared_name": "v"}, types={"dtype": _TYPES})],
)

define_op(
    "ReadVariableOp",
    inputs=["resource: resource"],
    outputs=["value: dtype"],
    attrs=["dtype: type"],
    doc="The variable's value when the node runs; FailedPreconditionError where it has none yet.",
    shape=_read_shape,
    reference=lambda attrs, resource: resource,
    role="read_variable",
    gradient=lambda op, grad: [grad],
    gradient_takes_slices=True,
    stateful=True,
    samples=lambda: [Sample([Arg(shape)], types={"dtype": _TYPES}) for shape in ((), (0,), (7, 13))],
)

define_op(
    "AssignVariableOp",
    inputs=["resource: resource", "value: dtype"],
    attrs=["dtype: type", "validate_shape: bool = false"],
    doc="Makes `value` the variable's value. With validate_shape its shape must suit the one that the handle declares.",
    shape=_assign_shape,
    reference=lambda attrs, resource, value: value,
    role="assign_variable",
    gradient=_STATE,
    stateful=True,
    samples=lambda: [
        Sample([Arg(shape), Arg(shape)], {"validate_shape": check}, {"dtype": _TYPES})
        for shape in ((), (0,), (7, 13))
        for check in (False, True)
    ],
    errors=lambda: [
        ErrorSample([Arg((2,)), Arg((3,))], r"value has shape \(3,\); .* needs \(2,\)", types={"dtype": _TYPES})
    ],
)


def _define_update(name: str, update_op: str, verb: str, reference: Any) -> None:
    define_op(
        name,
        inputs=["resource: resource", "value: dtype"],
        attrs=["dtype: type"],
        doc=f"{verb} the variable; the shapes must be equal. FailedPreconditionError where it has no value yet.",
        shape=_assign_shape,
        reference=reference,
        role="assign_variable",
        update_op=update_op,
        gradient=_STATE,
        stateful=True,
        samples=lambda: [
            Sample([Arg(shape), Arg(shape)], types={"dtype": ("float32", "float64", "int32", "int64", "complex64")})
            for shape in ((), (0,), (7, 13), (65_537,))
        ],
        errors=lambda: [ErrorSample([Arg((2,)), Arg((3,))], r"value has shape \(3,\); .* needs \(2,\)")],
    )


_define_update("AssignAddVariableOp", "AddV2", "Adds `value` to", lambda attrs, resource, value: resource + value)
_define_update("AssignSubVariableOp", "Sub", "Subtracts `value` from", lambda attrs, resource, value: resource - value)

define_op(
    "VarIsInitializedOp",
    inputs=["resource: resource"],
    outputs=["is_initialized: bool"],
    doc="Whether the variable has a value.",
    shape=_is_initialized_shape,
    reference=lambda attrs, resource: np.array(resource is not None),
    role="inspect_variable",
    gradient=_STATE,
    stateful=True,
    samples=lambda: [Sample([Arg((2, 3), dtype="float32")])],
)

variable_shape = define_op(
    "VariableShape",
    inputs=["input: resource"],
    outputs=["output: out_type"],
    attrs=["out_type: {int32, int64} = DT_INT32"],
    doc="The shape of the variable's value; FailedPreconditionError where it has none yet.",
    shape=_variable_shape_shape,
    reference=_variable_shape_reference,
    role="inspect_variable",
    gradient=NotDifferentiable("a shape does not depend on the values"),
    stateful=True,
    samples=lambda: [Sample([Arg(shape, dtype="float32")]) for shape in ((), (0,), (7, 13))],
)

define_op(
    "DestroyResourceOp",
    inputs=["resource: resource"],
    attrs=["ignore_lookup_error: bool = true"],
    doc="Forgets the variable's value; where it has none, an error unless ignore_lookup_error is set.",
    shape=_destroy_shape,
    role="destroy_variable",
    gradient=_STATE,
    stateful=True,
)

define_op(
    "DisableCopyOnRead",
    inputs=["resource: resource"],
    doc="Nothing: reads of variables copy nothing in any case.",
    shape=lambda c: [],
    reference=lambda attrs: (),
    gradient=_STATE,
    on_host=True,
    stateful=True,
)
