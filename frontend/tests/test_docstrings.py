"""Whatever a user finds by `tf.` says what it is."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator
from typing import Any

import pytest

import timberframe as tf

OURS = ("timberframe", "timberframe_contrib", "timberframe_core")


def namespaces() -> Iterator[tuple[str, types.ModuleType]]:
    yield "tf", tf
    for name in sorted(dir(tf)):
        found = getattr(tf, name)
        if isinstance(found, types.ModuleType) and found.__name__.partition(".")[0] in OURS and name[0] != "_":
            yield f"tf.{name}", found


def undocumented(where: str, namespace: Any) -> Iterator[str]:
    """Yields the functions and classes of a namespace, and what belongs to the classes, that have no docstring."""
    for name in dir(namespace):
        found = getattr(namespace, name)
        if name.startswith("_") or not str(getattr(found, "__module__", "")).startswith(OURS):
            continue
        if inspect.isclass(found):
            members = [
                n for n, m in vars(found).items() if isinstance(m, property | types.FunctionType) and n[0] != "_"
            ]
            yield from (f"{where}.{name}.{n}" for n in members if not inspect.getdoc(getattr(found, n)))
        if (inspect.isclass(found) or inspect.isfunction(found)) and not inspect.getdoc(found):
            yield f"{where}.{name}"


@pytest.mark.parametrize(("where", "namespace"), [*namespaces()])
def test_all_that_is_public_has_a_docstring(where: str, namespace: Any) -> None:
    assert [*undocumented(where, namespace)] == []
