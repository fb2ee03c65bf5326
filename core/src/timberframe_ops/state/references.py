"""Reference variables of TensorFlow 1, whose tensors are the variables themselves.

No device runs these ops: the compiler puts the `resource_op` of each in its place. Outputs that are references
stand for the variable after the write.
"""

from __future__ import annotations

from collections.abc import Sequence

from timberframe_core.ops.definition.opdef import InferenceContext, MissingGradient, NotDifferentiable, define_op
from timberframe_core.shapes import Shape, compatible, format_shape

_STATE = NotDifferentiable("state is not a function of the inputs")
_WRITE = MissingGradient("TensorFlow does not differentiate this write to a variable, either")
_CONSTANT_WRITES = {
    *("ScatterAdd", "ScatterSub", "ScatterMul", "ScatterDiv"),
    *("ScatterNdAdd", "ScatterNdSub", "ScatterNdUpdate"),
}
"""Writes that TensorFlow takes for constants, as Assign; others stop a gradient with an error."""
_LOCKED = "use_locking: bool = true"
_UNLOCKED = "use_locking: bool = false"


def _declared(c: InferenceContext) -> list[Shape]:
    shape: Shape = c.attrs["shape"]
    # Graphs that were written before VariableV2 say "unknown" by the shape of a scalar.
    return [None if c.op.name == "Variable" and shape == () else shape]


def _same(c: InferenceContext) -> list[Shape]:
    return [c.shapes[0]]


def _assigned(c: InferenceContext) -> list[Shape]:
    ref, value = c.shapes
    if not c.attrs["validate_shape"]:
        return [value]
    if not compatible(ref, value):
        raise c.late_error(f"value has shape {format_shape(value)}; the variable needs {format_shape(ref)}")
    return [value if ref is None else ref]


def _updated(c: InferenceContext) -> list[Shape]:
    if not compatible(c.shapes[0], c.shapes[1]):
        what = f"value has shape {format_shape(c.shapes[1])}; the variable needs {format_shape(c.shapes[0])}"
        raise c.late_error(what)
    return [c.shapes[0]]


for _name in ("VariableV2", "Variable"):
    define_op(
        _name,
        outputs=["ref: Ref(dtype)"],
        attrs=["shape: shape", "dtype: type", "container: string = ''", "shared_name: string = ''"],
        doc="The session's variable `shared_name` of `container` (by default: of this node's name).",
        shape=_declared,
        role="reference",
        gradient=_STATE,
        stateful=True,
    )

define_op(
    "TemporaryVariable",
    outputs=["ref: Ref(dtype)"],
    attrs=["shape: shape", "dtype: type", "var_name: string = ''"],
    doc="A variable of this run, until DestroyTemporaryVariable of the same var_name (by default: this node's name).",
    shape=_declared,
    role="reference",
    gradient=_STATE,
    stateful=True,
)

define_op(
    "DestroyTemporaryVariable",
    inputs=["ref: Ref(T)"],
    outputs=["value: T"],
    attrs=["T: type", "var_name: string"],
    doc="The last value of a temporary variable, which is gone then.",
    shape=_same,
    role="reference",
    gradient=_WRITE,
)

define_op(
    "Assign",
    inputs=["ref: Ref(T)", "value: T"],
    outputs=["output_ref: Ref(T)"],
    attrs=["T: type", "validate_shape: bool = true", _LOCKED],
    doc="Makes `value` the variable's value. With validate_shape its shape must be the variable's.",
    shape=_assigned,
    role="reference",
    resource_op="AssignVariableOp",
    gradient=_STATE,
)

for _name, _verb in (("AssignAdd", "Adds `value` to"), ("AssignSub", "Subtracts `value` from")):
    define_op(
        _name,
        inputs=["ref: Ref(T)", "value: T"],
        outputs=["output_ref: Ref(T)"],
        attrs=["T: numbertype", _UNLOCKED],
        doc=f"{_verb} the variable.",
        shape=_updated,
        role="reference",
        resource_op=f"{_name}VariableOp",
        gradient=_STATE,
    )

define_op(
    "IsVariableInitialized",
    inputs=["ref: Ref(dtype)"],
    outputs=["is_initialized: bool"],
    attrs=["dtype: type"],
    doc="Whether the variable has a value.",
    shape=lambda c: [()],
    role="reference",
    resource_op="VarIsInitializedOp",
    gradient=_STATE,
)

define_op(
    "RefIdentity",
    inputs=["input: Ref(T)"],
    outputs=["output: Ref(T)"],
    attrs=["T: type"],
    doc="The reference itself.",
    shape=_same,
    role="reference",
    gradient=_STATE,
)

define_op(
    "CountUpTo",
    inputs=["ref: Ref(T)"],
    outputs=["output: T"],
    attrs=["limit: int", "T: {int32, int64}"],
    doc="The value of a scalar variable, which is then one more; OutOfRangeError where it has reached `limit`.",
    shape=lambda c: [()],
    role="reference",
    resource_op="ResourceCountUpTo",
    gradient=_STATE,
)

define_op(
    "Stack",
    outputs=["handle: Ref(string)"],
    attrs=["elem_type: type", "stack_name: string = ''"],
    doc="A stack, the older form of StackV2.",
    shape=lambda c: [(2,)],
    role="reference",
    gradient=_STATE,
    stateful=True,
)

define_op(
    "StackPush",
    inputs=["handle: Ref(string)", "elem: T"],
    outputs=["output: T"],
    attrs=["T: type", "swap_memory: bool = false"],
    doc="Puts `elem` on the stack, and passes it on.",
    shape=lambda c: [c.shapes[1]],
    role="reference",
    resource_op="StackPushV2",
    gradient=_STATE,
)

define_op(
    "StackPop",
    inputs=["handle: Ref(string)"],
    outputs=["elem: elem_type"],
    attrs=["elem_type: type"],
    doc="Takes the last element off the stack.",
    shape=lambda c: [None],
    role="reference",
    resource_op="StackPopV2",
    gradient=_STATE,
)

define_op(
    "StackClose",
    inputs=["handle: Ref(string)"],
    doc="Drops the stack.",
    shape=lambda c: [],
    role="reference",
    resource_op="StackCloseV2",
    gradient=_STATE,
)


def _define_writer(name: str, refs: Sequence[str], inputs: Sequence[str], output: str, attrs: Sequence[str]) -> None:
    """Defines a reference op that changes the variables `refs` as its resource form does."""
    define_op(
        name,
        inputs=[*(f"{ref}: Ref(T)" for ref in refs), *inputs],
        outputs=[f"{output}: Ref(T)"],
        attrs=attrs,
        doc=f"What Resource{name} does, to reference variables; the output is the first of them after the write.",
        shape=_same,
        role="reference",
        resource_op=f"Resource{name}",
        gradient=_STATE if name in _CONSTANT_WRITES else _WRITE,
    )


_INDEX = "Tindices: {int32, int64}"
for _suffix in ("Add", "Sub", "Mul", "Div", "Min", "Max", "Update"):
    _types = "{half, bfloat16, float, double, int32, int64}" if _suffix in ("Min", "Max") else "numbertype"
    _define_writer(
        f"Scatter{_suffix}",
        ["ref"],
        ["indices: Tindices", "updates: T"],
        "output_ref",
        ["T: type", _INDEX, _LOCKED] if _suffix == "Update" else [f"T: {_types}", _INDEX, _UNLOCKED],
    )

for _suffix in ("Add", "Sub", "Min", "Max", "Update"):
    _define_writer(
        f"ScatterNd{_suffix}",
        ["ref"],
        ["indices: Tindices", "updates: T"],
        "output_ref",
        [
            *(["T: type", _INDEX, _LOCKED] if _suffix == "Update" else ["T: numbertype", _INDEX, _UNLOCKED]),
            "bad_indices_policy: string = ''",
        ],
    )

_define_writer(
    "StridedSliceAssign",
    ["ref"],
    ["begin: Index", "end: Index", "strides: Index", "value: T"],
    "output_ref",
    [
        "T: type",
        "Index: {int32, int64}",
        *(f"{kind}_mask: int = 0" for kind in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")),
    ],
)

_NUMBER = "T: numbertype"
_NESTEROV = "use_nesterov: bool = false"
_SLOTS = "update_slots: bool = true"
_LINEAR = "multiply_linear_by_lr: bool = false"
_FTRL = ("var accum linear", "lr l1 l2 lr_power")
_APPLIED: dict[str, tuple[str, str, Sequence[str]]] = {
    "Adadelta": ("var accum accum_update", "lr rho epsilon", ()),
    "Adagrad": ("var accum", "lr", (_SLOTS,)),
    "AdagradV2": ("var accum", "lr epsilon", (_SLOTS,)),
    "CenteredRMSProp": ("var mg ms mom", "lr rho momentum epsilon", ()),
    "Ftrl": (*_FTRL, (_LINEAR,)),
    "FtrlV2": ("var accum linear", "lr l1 l2 l2_shrinkage lr_power", (_LINEAR,)),
    "Momentum": ("var accum", "lr momentum", (_NESTEROV,)),
    "ProximalAdagrad": ("var accum", "lr l1 l2", ()),
    "ProximalGradientDescent": ("var", "alpha l1 l2", ()),
    "RMSProp": ("var ms mom", "lr rho momentum epsilon", ()),
}
"""Optimiser -> its variables, its hyperparameters, further attrs."""


def _optimizer_inputs(name: str, hyperparameters: str, sparse: bool) -> list[str]:
    """Returns the inputs: where the gradient stands among the hyperparameters differs from one op to the next."""
    values = [f"{h}: T" for h in hyperparameters.split()]
    grad = ["grad: T", "indices: Tindices"] if sparse else ["grad: T"]
    if name in ("Ftrl", "FtrlV2"):
        return [*grad, *values]
    if name == "Momentum":
        return [values[0], *grad, values[1]]
    if name == "ProximalGradientDescent" and not sparse:
        return [*values, "delta: T"]
    return [*values, *grad]


for _optimizer, (_refs, _hyperparameters, _more) in _APPLIED.items():
    for _sparse in (False, True):
        _define_writer(
            f"{'Sparse' if _sparse else ''}Apply{_optimizer}",
            _refs.split(),
            _optimizer_inputs(_optimizer, _hyperparameters, _sparse),
            "out",
            [_NUMBER, *([_INDEX] if _sparse else []), _UNLOCKED, *_more],
        )

_define_writer("ApplyGradientDescent", ["var"], ["alpha: T", "delta: T"], "out", [_NUMBER, _UNLOCKED])
_define_writer(
    "ApplyAdam",
    ["var", "m", "v"],
    [f"{h}: T" for h in ("beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad")],
    "out",
    [_NUMBER, _UNLOCKED, _NESTEROV],
)
for _sparse in (False, True):
    _define_writer(
        f"{'Sparse' if _sparse else ''}ApplyAdagradDA",
        ["var", "gradient_accumulator", "gradient_squared_accumulator"],
        [
            *(["grad: T", "indices: Tindices"] if _sparse else ["grad: T"]),
            *("lr: T", "l1: T", "l2: T", "global_step: int64"),
        ],
        "out",
        [_NUMBER, *([_INDEX] if _sparse else []), _UNLOCKED],
    )
