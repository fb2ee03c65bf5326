"""Docstrings begin as they are read: those of functions with a verb, those of values with what the value is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("core", "frontend", "sdk", "plugins", "conformance", "serving", "examples", "release", "docs")
NO_VERBS = {
    *(
        "A",
        "All",
        "An",
        "Another",
        "Both",
        "Each",
        "Every",
        "None",
        "Nothing",
        "One",
        "Some",
        "The",
        "These",
        "Those",
        "Two",
    ),
    *("How", "What", "When", "Where", "Whether", "Which", "Who", "Why"),
}
VALUES = {"property", "cached_property"}
PLAIN = {"abstractmethod", "cache", "classmethod", "lru_cache", "override", "staticmethod", "wraps"}
"""Decorators that leave a function what it is; others make it an entry of a table, whose docstring names the entry."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions() -> Iterator[tuple[str, Function, str]]:
    """Yields each function of the tree that has a docstring, with its place and the first word of that."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if {"build", "tests", "templates"} & set(path.relative_to(ROOT).parts):
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, Function) and (text := ast.get_docstring(node)):
                    word = text.split(maxsplit=1)[0].rstrip(".,:;")
                    yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}: {text.splitlines()[0]}", node, word


def decorators(node: Function) -> set[str]:
    """Returns the last names of a function's decorators."""
    called = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
    return {d.attr if isinstance(d, ast.Attribute) else ast.unparse(d) for d in called}


def test_docstrings_of_functions_begin_with_a_verb() -> None:
    wrong = [place for place, node, word in functions() if word in NO_VERBS and decorators(node) <= PLAIN]
    assert not wrong, "\n".join(wrong)


def test_docstrings_of_values_begin_with_what_they_are() -> None:
    wrong = [p for p, node, word in functions() if word in ("Returns", "Yields") and decorators(node) & VALUES]
    assert not wrong, "\n".join(wrong)
