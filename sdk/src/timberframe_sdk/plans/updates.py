"""What kernels of optimizers have in common: the rule behind each op, its dtypes, and which input is what."""

from __future__ import annotations

import re
from dataclasses import dataclass

from timberframe_core.ops.definition import registry
from timberframe_core.plugin.contracts import KernelNode

_REALS = ("float16", "bfloat16", "float32", "float64")
_NUMBERS = (*_REALS, "complex64", "complex128")
_FLAGS = ("use_nesterov", "update_slots", "multiply_linear_by_lr")

RULES = {
    "GradientDescent": ("gradient_descent", _NUMBERS),
    "Momentum": ("momentum", _NUMBERS),
    "KerasMomentum": ("keras_momentum", _NUMBERS),
    "Adagrad": ("adagrad", _NUMBERS),
    "AdagradV2": ("adagrad_v2", _NUMBERS),
    "AdagradDA": ("adagrad_da", _REALS[2:]),
    "Adadelta": ("adadelta", _NUMBERS),
    "RMSProp": ("rmsprop", _NUMBERS),
    "CenteredRMSProp": ("centered_rmsprop", _NUMBERS),
    "Adam": ("adam", _NUMBERS),
    "AdamWithAmsgrad": ("adam_with_amsgrad", _REALS),
    "AdaMax": ("adamax", _REALS),
    "Ftrl": ("ftrl", _REALS),
    "FtrlV2": ("ftrl_v2", _REALS),
    "AddSign": ("add_sign", _REALS),
    "PowerSign": ("power_sign", _REALS),
    "ProximalGradientDescent": ("proximal_gradient_descent", _REALS[2:]),
    "ProximalAdagrad": ("proximal_adagrad", _REALS[2:]),
}
"""For each ending of ResourceApply* and ResourceSparseApply* the rule in ``timberframe/optimizer``, and its dtypes."""


@dataclass(frozen=True)
class UpdateInputs:
    """An optimizer op's inputs: first the `states`, which it changes; `scalars` are the indices of the scalars.

    indices: None where the gradient is dense. flag: the op's only bool attr that matters to a rule.
    """

    rule: str
    states: int
    count: int
    gradient: int
    indices: int | None
    scalars: tuple[int, ...]
    flag: bool


def update_inputs(node: KernelNode) -> UpdateInputs:
    """Which input of an optimizer's node is what."""
    op = registry.get(node.op)
    names = [a.name for a in op.inputs]
    gradient = names.index("delta" if "delta" in names else "grad")
    indices = names.index("indices") if "indices" in names else None
    states = len(op.updates)
    scalars = tuple(i for i in range(states, len(names)) if i not in (gradient, indices))
    flag = any(node.attrs.get(name, False) for name in _FLAGS)
    rule = RULES[re.sub("^Resource(Sparse)?Apply", "", node.op)][0]
    return UpdateInputs(rule, states, len(names), gradient, indices, scalars, flag)


def updating_ops(sparse: bool) -> list[tuple[str, tuple[str, ...], int]]:
    """The ops of dense or of sparse gradients: name, dtypes, and how many tensors each changes."""
    prefix = "ResourceSparseApply" if sparse else "ResourceApply"
    found = ((registry.find(prefix + ending), types) for ending, (_, types) in RULES.items())
    return [(op.name, types, len(op.updates)) for op, types in found if op is not None]
