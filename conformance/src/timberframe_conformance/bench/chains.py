"""Chains of elementwise ops on tensors that no cache holds: what fusion is for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from timberframe_conformance.bench.workload import Workload

SIZE = 1 << 24

Step = tuple[str, float | None]
"""An op and its constant second operand; an op without one is unary."""

ARITHMETIC: Sequence[Step] = (
    ("Mul", 0.75), ("AddV2", 0.5), ("Mul", 1.25), ("Sub", 0.125), ("Maximum", -3.0), ("Minimum", 3.0),
    ("Mul", 0.5), ("AddV2", 1.5), ("Mul", -0.25), ("Sub", 2.0),
)  # fmt: skip
SPECIAL: Sequence[Step] = (
    ("Mul", 0.75), ("AddV2", 0.5), ("Tanh", None), ("Sub", 0.125), ("Maximum", -3.0), ("Minimum", 3.0),
    ("Mul", 0.5), ("Exp", None), ("Mul", -0.25), ("Sub", 2.0),
)  # fmt: skip

_NUMPY: dict[str, Callable[..., Any]] = {
    "Mul": np.multiply, "AddV2": np.add, "Sub": np.subtract, "Maximum": np.maximum, "Minimum": np.minimum,
    "Tanh": np.tanh, "Exp": np.exp,
}  # fmt: skip


def _in_numpy(steps: Sequence[Step]) -> Callable[[np.ndarray], np.ndarray]:
    def run(x: np.ndarray) -> np.ndarray:
        for name, operand in steps:
            x = _NUMPY[name](x) if operand is None else _NUMPY[name](x, np.float32(operand))
        return x

    return run


def _in_jax(steps: Sequence[Step]) -> Callable[[Any], Any]:
    made: list[Callable[[Any], Any]] = []

    def chain(x: Any) -> Any:
        import jax.numpy as jnp  # a peer that need not be there

        for name, operand in steps:
            function = getattr(jnp, _NUMPY[name].__name__)
            x = function(x) if operand is None else function(x, np.float32(operand))
        return x

    def run(x: Any) -> Any:
        if not made:
            import jax

            made.append(jax.jit(chain))
        return made[0](x).block_until_ready()

    return run


def chains(op: Callable[..., Any]) -> list[Workload]:
    """Ten arithmetic ops, against a copy of the same tensor; and ten with tanh and exp among them."""
    x = np.random.default_rng(7).uniform(-3, 3, SIZE).astype(np.float32)

    def workload(name: str, steps: Sequence[Step], *targets: tuple[str, float]) -> Workload:
        def build(tensor: Any) -> Any:
            for kind, operand in steps:
                tensor = op(kind, [tensor] if operand is None else [tensor, np.float32(operand)])
            return tensor

        peers = {"numpy": _in_numpy(steps), "jax": _in_jax(steps)}
        return Workload(name, [x], build, float(len(steps)) * SIZE, 8.0 * SIZE, peers, targets)

    return [
        workload("chain of 10, 16M", ARITHMETIC, ("copy", 0.7)),
        workload("chain with tanh, exp, 16M", SPECIAL, ("numpy", 5.0), ("jax", 2.0)),
    ]
