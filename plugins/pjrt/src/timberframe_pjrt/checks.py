"""Values that TensorFlow refuses and XLA takes otherwise: indices outside a tensor, which it clamps.

A program has one more output than its cluster: a row of integers for each check of its nodes, those in loops and
branches included. The first is 1 where values were refused, the others say which; the host looks at them when the
program has run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from timberframe_sdk import KernelNode

WIDTH = 3
"""Integers of a row: whether values were refused, and two that the message shows."""


@dataclass(frozen=True)
class Check:
    """A condition that a node's inputs must meet.

    row: of a node and its inputs, as they are traced, the row. message: of the node and the row's last integers; an
    index and where it is, or a place and what is there.
    """

    row: Callable[..., Any]
    message: Callable[[KernelNode, int, int], str]


class RefusedError(Exception):
    """A program has met values that one of its nodes refuses; the nodes run one by one say which."""


def no_rows() -> Any:
    """Returns the rows of no checks."""
    return jnp.zeros((0, WIDTH), jnp.int64)


def row_of(refused: Any, first: Any, second: Any) -> Any:
    """Returns a row of three integers."""
    return jnp.stack([jnp.asarray(x, jnp.int64).reshape(()) for x in (refused, first, second)])


def outside_row(indices: Any, size: int) -> Any:
    """Returns the row of a check that indices are below a size: the first that is not, and its position."""
    flat = jnp.asarray(indices).reshape(-1)
    if not flat.size:
        return jnp.zeros(WIDTH, jnp.int64)
    wide = flat.astype(jnp.int64)
    outside = (wide < 0) | (wide >= size)
    at = jnp.argmax(outside)
    return row_of(jnp.any(outside), wide[at], at)


def raise_refused(checks: Sequence[tuple[KernelNode, Check]], rows: np.ndarray) -> None:
    """Raises RefusedError for the first row that says so."""
    for (node, check), (refused, first, second) in zip(checks, rows.tolist(), strict=True):
        if refused:
            raise RefusedError(check.message(node, first, second))
