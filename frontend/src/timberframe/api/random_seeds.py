"""Seeds of random ops: of the graph and of each op."""

from __future__ import annotations

import operator

from timberframe_core.errors import InvalidTypeError
from timberframe_core.graph.graph import get_default_graph

__all__ = ["get_seed", "set_random_seed"]

NAMESPACES = {"random": ("get_seed", "set_random_seed")}

DEFAULT_GRAPH_SEED = 87654321
_LARGEST = 2**31 - 1


def set_random_seed(seed: int | None) -> None:
    """Sets the default graph's seed, which all its random ops that are made from now on use; None: none."""
    get_default_graph().seed = None if seed is None else _integer(seed)


def get_seed(op_seed: int | None) -> tuple[int | None, int | None]:
    """Returns the pair of seeds that a new op of the default graph takes: the graph's and its own.

    An op without a seed takes the number of such ops made before in the graph, those in branches and loops included,
    and in eager execution a number drawn from the global seed; both are None where the graph has no seed either. A
    graph without a seed counts as one with a fixed seed where the op has one.
    """
    graph = get_default_graph()
    if graph.seed is None and op_seed is None:
        return None, None
    if op_seed is None:
        op_seed = graph.next_op_seed()
    seed = DEFAULT_GRAPH_SEED if graph.seed is None else graph.seed
    pair = seed % _LARGEST, _integer(op_seed) % _LARGEST
    return pair if pair != (0, 0) else (0, _LARGEST)  # two zeros would mean that no seed is given


def seed_attrs(op_seed: int | None) -> dict[str, int]:
    """Returns the attrs seed and seed2 of a new op."""
    seed, seed2 = get_seed(op_seed)
    return {"seed": seed or 0, "seed2": seed2 or 0}


def _integer(seed: int) -> int:
    try:
        return operator.index(seed)
    except TypeError:
        raise InvalidTypeError(f"seed: {seed!r} of type {type(seed).__name__}; an integer is required") from None
