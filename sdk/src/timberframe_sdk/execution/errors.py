"""Errors of what is done for a node: all name the node, in the same way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from timberframe_core.errors import OpError, UnknownError
from timberframe_core.failures import raised
from timberframe_core.plugin.contracts import KernelNode

E = TypeVar("E", bound=OpError)


def at_node(error: E, node: KernelNode | None) -> E:
    """Returns the error with the node that it is of, where it names none."""
    if node is None or error.node:
        return error
    return type(error)(f"{node.op} '{node.name}': {error}", node.name)


@contextmanager
def naming(node: KernelNode, what: str) -> Iterator[None]:
    """Makes every error of the block name a node.

    what: runs there, for those that are no OpErrors: they are unknown.
    """
    try:
        yield
    except OpError as e:
        if e.node:
            raise
        raise at_node(e, node) from e
    except Exception as e:
        raise UnknownError(f"{node.op} '{node.name}': {what} raised {raised(e)}", node.name) from e
