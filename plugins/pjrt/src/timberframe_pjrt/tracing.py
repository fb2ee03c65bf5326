"""A cluster as one function of JAX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from timberframe_pjrt.checks import no_rows
from timberframe_pjrt.translations.table import ROLES, TABLE, checks_of
from timberframe_sdk import Cluster, ClusterFunction, KernelNode, role

SCOPE = "timberframe_node_"
"""Begins the names of scopes, by which the operations of a node are found in a module."""


class Tracer:
    """Translates the nodes of clusters while JAX traces them, and keeps the rows of their checks.

    precision: of products and convolutions.
    """

    def __init__(self, precision: str) -> None:
        self.precision = precision
        self._rows: list[Any] = []

    def translate(self, node: KernelNode, inputs: Sequence[Any]) -> Any:
        """Returns the outputs of a node; see ClusterFunction."""
        if role(node.op) in ROLES:
            return ROLES[role(node.op) or ""](self, node, *inputs)
        found = TABLE[node.op]
        if found.check is not None:
            self._rows.append(found.check.row(node, *inputs)[None])
        with jax.default_matmul_precision(self.precision):
            return found.function(node, *inputs)

    def inside(self, cluster: Cluster, inputs: Sequence[Any]) -> tuple[list[Any], Any]:
        """Returns the results of a cluster of a node, as arrays, and the rows of its checks."""
        own = Tracer(self.precision)
        results = [jnp.asarray(x) for x in ClusterFunction(cluster)(own.translate, inputs)]
        return results, own.rows()

    def add_rows(self, rows: Any) -> None:
        """Keeps rows of clusters inside a node."""
        self._rows.append(rows)

    def rows(self) -> Any:
        """Returns the rows of all checks so far."""
        return jnp.concatenate([no_rows(), *self._rows])


def traced_function(function: ClusterFunction, precision: str) -> Any:
    """Returns the function of arrays that JAX is to compile: it gives the results, and last the rows of its checks.

    Where nothing is checked there are no rows.
    """
    numbers = {id(node): i for i, node in enumerate(function.cluster.nodes)}
    is_checked = bool(checks_of(function.cluster))

    def run(*arrays: Any) -> list[Any]:
        tracer = Tracer(precision)

        def translate(node: KernelNode, inputs: Sequence[Any]) -> Any:
            with jax.named_scope(f"{SCOPE}{numbers[id(node)]}"):
                return tracer.translate(node, inputs)

        results = function(translate, arrays)
        return [*results, tracer.rows()] if is_checked else results

    return run
