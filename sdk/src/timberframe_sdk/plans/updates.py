"""What kernels of optimizers have in common: which input of an op is what, and the ops."""

from __future__ import annotations

from dataclasses import dataclass

from timberframe_core.ops.definition import registry
from timberframe_core.plugin.contracts import KernelNode


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
    """Returns which input of an optimizer's node is what."""
    from timberframe_ops.training.updates import UPDATE_OPS

    op = registry.get(node.op)
    names = [a.name for a in op.inputs]
    gradient = names.index("delta" if "delta" in names else "grad")
    indices = names.index("indices") if "indices" in names else None
    states = len(op.updates)
    scalars = tuple(i for i in range(states, len(names)) if i not in (gradient, indices))
    update = UPDATE_OPS[node.op]
    flag = bool(node.attrs.get(update.flag, False))
    return UpdateInputs(update.rule, states, len(names), gradient, indices, scalars, flag)


def updating_ops(sparse: bool) -> list[tuple[str, tuple[str, ...], int]]:
    """Returns the ops of dense or of sparse gradients: name, dtypes, and how many tensors each changes."""
    from timberframe_ops.training.updates import UPDATE_OPS

    prefix = "ResourceSparseApply" if sparse else "ResourceApply"
    ops = [(registry.get(name), op.dtypes) for name, op in UPDATE_OPS.items() if name.startswith(prefix)]
    return [(op.name, dtypes, len(op.updates)) for op, dtypes in ops]
