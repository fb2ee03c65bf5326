"""Loops and branches, whose bodies are clusters of the node: parts of the same program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from timberframe_pjrt.checks import WIDTH
from timberframe_pjrt.translations.table import ROLES, checks_of
from timberframe_sdk import Cluster, KernelNode

if TYPE_CHECKING:
    from timberframe_pjrt.tracing import Tracer


def while_loop(tracer: Tracer, node: KernelNode, *inputs: Any) -> list[Any]:
    """Returns the state after the last iteration; rows of checks are part of it until one has refused values."""
    condition, body = node.inner
    count = len(node.outputs)
    start, fixed = [jnp.asarray(x) for x in inputs[:count]], inputs[count:]

    def decide(state: list[Any]) -> tuple[Any, Any]:
        (going,), rows = tracer.inside(condition, [*state, *fixed])
        return going != 0, rows

    def step(carry: tuple[list[Any], Any, Any]) -> tuple[list[Any], Any, Any]:
        state, _, before = carry
        made, rows = tracer.inside(body, [*state, *fixed])
        going, deciding = decide(made)
        return made, going, _first_refused(before, jnp.concatenate([deciding, rows]))

    going, deciding = decide(start)
    rows = jnp.concatenate([deciding, _none_refused(body)])
    made, _, rows = jax.lax.while_loop(lambda carry: carry[1], step, (start, going, rows))
    tracer.add_rows(rows)
    return list(made)


def if_else(tracer: Tracer, node: KernelNode, predicate: Any, *inputs: Any) -> list[Any]:
    """Returns what one of two bodies gives."""
    return _switch(tracer, node, jnp.where(jnp.asarray(predicate) != 0, 0, 1), inputs)


def case(tracer: Tracer, node: KernelNode, index: Any, *inputs: Any) -> list[Any]:
    """Returns what the body with a number gives, the last one where there is none."""
    last = len(node.inner) - 1
    index = jnp.asarray(index)
    return _switch(tracer, node, jnp.where((index < 0) | (index > last), last, index), inputs)


def _switch(tracer: Tracer, node: KernelNode, index: Any, inputs: tuple[Any, ...]) -> list[Any]:
    def branch(number: int) -> Any:
        def run(*arrays: Any) -> tuple[list[Any], Any]:
            made, rows = tracer.inside(node.inner[number], arrays)
            others = [_none_refused(c) for c in node.inner]
            return made, jnp.concatenate([*others[:number], rows, *others[number + 1 :]])

        return run

    branches = [branch(i) for i in range(len(node.inner))]
    made, rows = jax.lax.switch(index, branches, *map(jnp.asarray, inputs))
    tracer.add_rows(rows)
    return list(made)


def _none_refused(cluster: Cluster) -> Any:
    """Returns the rows of a cluster that does not run."""
    return jnp.zeros((len(checks_of(cluster)), WIDTH), jnp.int64)


def _first_refused(before: Any, now: Any) -> Any:
    """Returns rows of an earlier iteration where it refused values, else those of this one."""
    return jnp.where(before[:, :1] != 0, before, now)


ROLES.update({"loop": while_loop, "branch": if_else, "case": case})
