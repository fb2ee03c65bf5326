"""The update ops of optimizers: ResourceApply* for dense gradients, ResourceSparseApply* for some rows of them.

Each changes a variable and its slots in one go. In the references a handle stands for the variable's value, and the new
values are returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.accuracy import Bound
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.ops.definition.running_error import Approximate, stored_roundoff
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import late_errors, merge_shapes, variable_shape_of
from timberframe_core.ops.definition.value_checks import ROW_OUTSIDE, check_indices
from timberframe_core.shapes import Shape, StaticShape, format_shape
from timberframe_ops.training import rules

_UPDATE = NotDifferentiable("an update of variables is not a function of its inputs")
_SOURCE = "running error analysis (Higham, 2nd ed., section 3.3) of the formula"
_NUMBERS = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
_REALS = _NUMBERS[:4]
_GRADIENTS = ("grad", "delta")
_DOCS = {
    "use_nesterov": "use_nesterov takes Nesterov's variant.",
    "update_slots": "update_slots false leaves the accumulator as it is.",
    "multiply_linear_by_lr": "multiply_linear_by_lr keeps `linear` multiplied by lr.",
}

_VALUES = {
    "lr": 0.125, "alpha": 0.25, "rho": 0.875, "momentum": 0.75, "epsilon": 0.0078125, "beta1": 0.875, "beta2": 0.9375,
    "beta1_power": 0.5, "beta2_power": 0.75, "l1": 0.125, "l2": 0.25, "l2_shrinkage": 0.0625, "lr_power": -0.5,
    "logbase": 0.5, "sign_decay": 0.75, "beta": 0.875, "global_step": 3,
}  # fmt: skip
"""What samples give for the scalars, of which a rule needs each to be here; they are exact in every dtype."""

MOST_STATES, MOST_SCALARS = 4, 6
"""What the kernels of all devices have room for: variable and slots that a rule changes, scalars that it takes."""

_ONE_TYPE = {"T": ("float32",)}
_ERROR_TYPES = {"T": ("float32",), "Tindices": ("int32",)}
_SIGNED_SLOTS = ("linear", "m", "mg", "mom", "gradient_accumulator")  # samples give positive numbers to the others


@dataclass(frozen=True)
class UpdateOp:
    """What kernels share of an update op. rule: name of its function in `rules`; dtypes: those that it computes in.

    flag: the bool attr that the rule has in addition to use_locking; "" where it has none.
    """

    rule: str
    dtypes: tuple[str, ...]
    flag: str = ""


UPDATE_OPS: dict[str, UpdateOp] = {}
"""The update ops by name."""


class _Signature:
    """Where an update op has its states, its gradient and its scalars."""

    def __init__(self, states: str, others: str) -> None:
        self.states = tuple(states.split())
        self.others = tuple(others.split())
        self.names = (*self.states, *self.others)
        self.gradient = next(i for i, n in enumerate(self.names) if n in _GRADIENTS)
        self.indices = self.names.index("indices") if "indices" in self.names else None

    def with_indices(self) -> _Signature:
        """Returns the signature of the sparse form: indices come after the gradient, which is called grad."""
        names = ["grad" if n in _GRADIENTS else n for n in self.others]
        names.insert(names.index("grad") + 1, "indices")
        return _Signature(" ".join(self.states), " ".join(names))

    def declared(self) -> list[str]:
        types = {"indices": "Tindices", "global_step": "int64"}
        return [f"{n}: resource" for n in self.states] + [f"{n}: {types.get(n, 'T')}" for n in self.others]

    def shape(self, c: InferenceContext) -> Sequence[Shape]:
        """Checks that states and gradient agree and that the others are scalars."""
        variable: Shape = None
        for i, name in enumerate(self.states):
            variable = merge_shapes(c, variable, variable_shape_of(c, i, c.attrs["T"]), f"{self.states[0]} and {name}")
        for i in range(len(self.states), len(self.names)):
            if i not in (self.gradient, self.indices) and c.shapes[i] not in (None, ()):
                raise c.error(f"{self.names[i]} has shape {format_shape(c.shapes[i])}; it must be a scalar")
        if self.indices is None:
            merge_shapes(c, variable, c.shapes[self.gradient], f"{self.states[0]} and {self.names[self.gradient]}")
        else:
            self._check_rows(c, variable, c.shapes[self.gradient], c.shapes[self.indices])
        return []

    def _check_rows(self, c: InferenceContext, variable: Shape, grad: Shape, indices: Shape) -> None:
        if indices is not None and len(indices) != 1:
            raise c.error(f"indices has shape {format_shape(indices)}; it must be a vector")
        if variable is not None and not variable:
            raise c.error("var has rank 0; it must have rank 1 or more")
        if variable is not None and indices is not None:
            merge_shapes(c, indices + variable[1:], grad, "the rows that indices names and grad")

    def sample(
        self, shape: StaticShape, attrs: dict[str, Any], rows: Sequence[int] | None = None, **values: Any
    ) -> Sample:
        """Returns one call: states of this shape; with `rows` the gradient is of these.

        values: for some of the inputs.
        """
        args = []
        for name in self.names:
            if name in self.states:
                signed = name in _SIGNED_SLOTS or name == self.states[0]
                args.append(Arg(shape, low=-0.5 if signed else 0.5, high=0.5 if signed else 2, special=False))
            elif name in _GRADIENTS:
                given = shape if rows is None else (len(rows), *shape[1:])
                args.append(values.get(name) or Arg(given, low=-1, high=1, special=False))
            elif name == "indices":
                args.append(values.get(name) or Arg(values=np.array(rows or (), np.int32)))
            else:
                args.append(values.get(name) or Arg(values=_VALUES[name]))
        return Sample(args, attrs)


def _value(x: Any) -> np.ndarray:
    return np.asarray(x.value if isinstance(x, Approximate) else x)


def _sparse_reference(rule: Callable[..., Any], signature: _Signature) -> Callable[..., tuple[Any, ...]]:
    """Returns the rule applied to one row after the other."""
    count, at, rows = len(signature.states), signature.gradient, signature.indices

    def reference(attrs: Attrs, *inputs: Any) -> tuple[Any, ...]:
        states = [x if isinstance(x, Approximate) else np.array(x) for x in inputs[:count]]
        others = [x for i, x in enumerate(inputs) if i >= count and i != rows]
        indices = inputs[rows or 0]
        row_numbers = _value(indices)
        check_indices(row_numbers, _value(states[0]).shape[0], ROW_OUTSIDE)
        for i, row in enumerate(row_numbers):
            others[at - count] = inputs[at][i]
            new = rule(attrs, *(s[row] for s in states), *others)
            states = [_with_row(s, row, n) for s, n in zip(states, new, strict=True)]
        return tuple(states)

    return reference


def _with_row(x: Any, row: int, new: Any) -> Any:
    if not isinstance(x, Approximate):
        x[row] = new
        return x
    value, error = x.value.copy(), x.error.copy()
    value[row], error[row] = new.value, new.error
    return Approximate(value, x.u, error)


def _error_bound(reference: Callable[..., Any], sparse: bool) -> Bound:
    def error(attrs: Attrs, inputs: Sequence[Any], expected: Any, u: float) -> list[Any]:
        u = stored_roundoff(attrs["T"].name, u) if sparse else u
        return [x.error for x in reference(attrs, *(Approximate(x, u) for x in inputs))]

    return Bound(error, _SOURCE)


def _tried_attrs(flag: str) -> list[dict[str, Any]]:
    return [{flag: True}, {flag: False}] if flag else [{}]


def _extra(signature: _Signature) -> list[dict[str, Arg]]:
    """Returns values of the scalars at which a rule goes another way."""
    extra = []
    if "lr_power" in signature.names:
        extra.append({"lr_power": Arg(values=-0.25)})
    if "l1" in signature.names:
        extra.append({"l1": Arg(values=0.0)})
    return extra


def _dense_samples(signature: _Signature, flag: str, types: Sequence[str]) -> Iterator[Sample]:
    """Yields one shape in every dtype and with every attr, and what else matters in one of them."""
    chosen = {"T": types}
    for attrs in _tried_attrs(flag):
        yield Sample(signature.sample((257,), attrs).inputs, attrs, chosen)
        for values in _extra(signature):
            yield Sample(signature.sample((5, 7), attrs, None, **values).inputs, attrs, chosen)
    for shape in ((), (0,), (7, 13), (65_537,)):
        yield Sample(signature.sample(shape, {}).inputs, {}, _ONE_TYPE)
    yield Sample(signature.sample((3,), {}).inputs, {"use_locking": True}, _ONE_TYPE)


def _sparse_samples(signature: _Signature, flag: str, types: Sequence[str]) -> Iterator[Sample]:
    """Yields rows named twice in every dtype and with every attr, and what else matters in one of them."""
    chosen = {"T": types}
    for attrs in _tried_attrs(flag):
        yield Sample(signature.sample((5, 17), attrs, (1, 1, 4)).inputs, attrs, chosen)
        for values in _extra(signature):
            yield Sample(signature.sample((5, 7), attrs, (3, 1), **values).inputs, attrs, chosen)
    for shape, rows in (((5,), (4, 0)), ((3, 2, 17), (2, 0)), ((4, 3), ()), ((0, 3), ())):
        yield Sample(signature.sample(shape, {}, rows).inputs, {}, _ONE_TYPE)
    yield Sample(signature.sample((70_001, 2), {}, (70_000, 65_536)).inputs, {}, _ONE_TYPE)
    yield Sample(signature.sample((3,), {}, (1,)).inputs, {"use_locking": True}, _ONE_TYPE)


def _dense_errors(signature: _Signature) -> Iterator[ErrorSample]:
    def wrong(name: str, arg: Arg, match: str) -> ErrorSample:
        args = list(signature.sample((2, 3), {}).inputs)
        args[signature.names.index(name)] = arg
        return ErrorSample(args, match, types=_ERROR_TYPES)

    gradient = signature.names[signature.gradient]
    yield wrong(gradient, Arg((3, 2)), rf"{signature.states[0]} and {gradient} have shapes \(2, 3\) and \(3, 2\)")
    for slot in signature.states[1:]:
        yield wrong(slot, Arg((2,), low=1), rf"{signature.states[0]} and {slot} have shapes \(2, 3\) and \(2,\)")
    for scalar in signature.others:
        if scalar != gradient:
            yield wrong(scalar, Arg((1,), low=1, high=2), rf"{scalar} has shape \(1,\); it must be a scalar")


def _sparse_errors(signature: _Signature) -> Iterator[ErrorSample]:
    def wrong(rows: Sequence[int], match: str, **values: Arg) -> ErrorSample:
        return ErrorSample(signature.sample((4, 3), {}, rows, **values).inputs, match, types=_ERROR_TYPES)

    yield wrong((1, 4), r"index 4 at position 1 is outside \[0, 4\)")
    yield wrong((-1, 0), r"index -1 at position 0 is outside \[0, 4\)")
    yield wrong((1, 2), r"have shapes \(2, 3\) and \(2, 2\)", grad=Arg((2, 2)))
    yield wrong((1, 2), r"have shapes \(2, 3\) and \(3, 3\)", grad=Arg((3, 3)))
    yield wrong((1, 2), r"indices has shape \(1, 2\); it must be a vector", indices=Arg(values=[[1, 2]]))


def _define(
    name: str,
    signature: _Signature,
    rule: Callable[..., Any],
    *,
    flag: str = "",
    types: Sequence[str] = _NUMBERS,
) -> None:
    """Defines one op. flag: ``name = default`` of the bool attr that the rule has in addition to use_locking."""
    _check_rule(rule.__name__, signature)
    sparse = signature.indices is not None
    attr = flag.split(" ")[0]
    made = _sparse_reference(rule, signature) if sparse else rule
    attrs = ["T: numbertype", *(["Tindices: {int32, int64}"] if sparse else []), "use_locking: bool = false"]
    attrs += [flag.replace(" =", ": bool =")] if flag else []
    op = f"Resource{'Sparse' if sparse else ''}Apply{name}"
    UPDATE_OPS[op] = UpdateOp(rule.__name__, tuple(types), attr)
    kind = "each row of the variable that indices names, in their order," if sparse else "the variable"
    define_op(
        op,
        inputs=signature.declared(),
        attrs=attrs,
        doc=f"Changes {kind} and its slots by the rule {rule.__name__}. {_DOCS.get(attr, '')}".rstrip(),
        shape=late_errors(signature.shape),
        reference=made,
        gradient=_UPDATE,
        stateful=True,
        updates=signature.states,
        accuracy=_error_bound(made, sparse),
        samples=lambda: (_sparse_samples if sparse else _dense_samples)(signature, attr, types),
        errors=lambda: (_sparse_errors if sparse else _dense_errors)(signature),
    )


def _check_rule(rule: str, signature: _Signature) -> None:
    """InvalidArgumentError for a rule that samples or kernels have no room for."""
    scalars = [n for n in signature.others if n not in (*_GRADIENTS, "indices")]
    unknown = [n for n in scalars if n not in _VALUES]
    if unknown:
        raise InvalidArgumentError(
            f"rule {rule}: _VALUES lacks {', '.join(unknown)}; samples need a value of each scalar"
        )
    for what, names, most in (("states", signature.states, MOST_STATES), ("scalars", scalars, MOST_SCALARS)):
        if len(names) > most:
            raise InvalidArgumentError(f"rule {rule}: has {len(names)} {what}; kernels of updates take at most {most}")


def _define_both(
    name: str, states: str, others: str, rule: Callable[..., Any], flag: str = "", types: Sequence[str] = _NUMBERS,
    sparse: bool = True,
) -> None:  # fmt: skip
    """ResourceApply<name>, and with `sparse` ResourceSparseApply<name>, which changes the rows that have a gradient.

    states: the variable and its slots. others: the other inputs in TensorFlow's order. sparse: False where the slots of
    rows without a gradient change, too (Adam's averages decay): the optimizer then makes that of other ops.
    """
    signature = _Signature(states, others)
    _define(name, signature, rule, flag=flag, types=types)
    if sparse:
        _define(name, signature.with_indices(), rule, flag=flag, types=types)


_RMSPROP = "lr rho momentum epsilon grad"
_ADAM = "beta1_power beta2_power lr beta1 beta2 epsilon grad"
_FTRL, _FTRL_FLAG = "var accum linear", "multiply_linear_by_lr = false"
_WIDE = ("float32", "float64")
_ADAGRAD_DA = "var gradient_accumulator gradient_squared_accumulator"

_define_both("GradientDescent", "var", "alpha delta", rules.gradient_descent, sparse=False)
_define_both("Momentum", "var accum", "lr grad momentum", rules.momentum, "use_nesterov = false")
_define_both("KerasMomentum", "var accum", "lr grad momentum", rules.keras_momentum, "use_nesterov = false")
_define_both("Adagrad", "var accum", "lr grad", rules.adagrad, "update_slots = true")
_define_both("AdagradV2", "var accum", "lr epsilon grad", rules.adagrad_v2, "update_slots = true")
_define_both("AdagradDA", _ADAGRAD_DA, "grad lr l1 l2 global_step", rules.adagrad_da, types=_WIDE)
_define_both("Adadelta", "var accum accum_update", "lr rho epsilon grad", rules.adadelta)
_define_both("RMSProp", "var ms mom", _RMSPROP, rules.rmsprop)
_define_both("CenteredRMSProp", "var mg ms mom", _RMSPROP, rules.centered_rmsprop)
_define_both("Adam", "var m v", _ADAM, rules.adam, "use_nesterov = false", sparse=False)
_define_both("AdamWithAmsgrad", "var m v vhat", _ADAM, rules.adam_with_amsgrad, types=_REALS, sparse=False)
_define_both("AdaMax", "var m v", _ADAM.replace("beta2_power ", ""), rules.adamax, types=_REALS, sparse=False)
_define_both("Ftrl", _FTRL, "grad lr l1 l2 lr_power", rules.ftrl, _FTRL_FLAG, _REALS)
_define_both("FtrlV2", _FTRL, "grad lr l1 l2 l2_shrinkage lr_power", rules.ftrl_v2, _FTRL_FLAG, _REALS)
_define_both("AddSign", "var m", "lr alpha sign_decay beta grad", rules.add_sign, types=_REALS, sparse=False)
_define_both("PowerSign", "var m", "lr logbase sign_decay beta grad", rules.power_sign, types=_REALS, sparse=False)
_define_both("ProximalGradientDescent", "var", "alpha l1 l2 delta", rules.proximal_gradient_descent, types=_WIDE)
_define_both("ProximalAdagrad", "var accum", "lr l1 l2 grad", rules.proximal_adagrad, types=_WIDE)
