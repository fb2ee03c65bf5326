"""Descriptions of parameters: those in a docstring, and those that it leaves to the docstring of something else."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import timberframe as tf

_SENTENCE = re.compile(r"(?<=\.) (?=[A-Z`])")
_DESCRIBED = re.compile(r"(?:^|(?<=[.;)] ))(\w+(?:, \w+)*): ", re.MULTILINE)
_LEFT_TO = re.compile(
    r"`([A-Za-z_][\w.]*)`|\b(?:[Tt]hose of|[Ss]ee|[Aa]s(?: of)?|like) ([a-z]\w*_\w+|[A-Z]\w+[a-z]\w*)"
)


def doc(value: Any) -> str:
    """Returns the docstring of a function, class or module; of an object that stands for a module its class's."""
    return inspect.getdoc(value) or ""


def parameters(value: Any) -> Mapping[str, inspect.Parameter]:
    """Returns the parameters of a function or class by name; none where it has no signature."""
    try:
        return inspect.signature(value).parameters
    except (TypeError, ValueError):
        return {}


def described(value: Any) -> dict[str, str]:
    """Returns the description of each parameter that the docstring of a function or class itself describes."""
    known, found = parameters(value), {}
    for paragraph in doc(value).split("\n\n"):
        starts = [m for m in _DESCRIBED.finditer(paragraph) if all(name in known for name in m[1].split(", "))]
        for i, start in enumerate(starts):
            end = starts[i + 1].start() if i + 1 < len(starts) else len(paragraph)
            text = " ".join(paragraph[start.end() : end].split())
            found.update(dict.fromkeys(start[1].split(", "), text))
    return found


def described_elsewhere(value: Any) -> dict[str, tuple[str, str]]:
    """Returns for each parameter that the docstring neither describes nor names a sentence on it, and whose that is."""
    text = doc(value)
    wanted = [name for name in parameters(value) if not re.search(rf"\b{name}\b", text)]
    found: dict[str, tuple[str, str]] = {}
    for source in _sources(value, {id(value)}):
        for name, description in described(source).items():
            if name in wanted:
                found.setdefault(name, (_SENTENCE.split(description)[0], source.__name__))
    return {name: found[name] for name in wanted if name in found}


def _sources(value: Any, seen: set[int]) -> Iterator[Any]:
    """Yields what a docstring leaves descriptions to, then what that leaves them to, and the bases of a class."""
    names = [quoted or named for quoted, named in _LEFT_TO.findall(doc(value))]
    linked = [found for name in names if (found := _find(name, value)) is not None]
    bases = [base for base in value.__mro__[1:] if base is not object] if inspect.isclass(value) else []
    for found in (*linked, *bases):
        if id(found) not in seen:
            seen.add(id(found))
            yield found
            yield from _sources(found, seen)


def _find(name: str, value: Any) -> Any:
    """Returns the function or class that a docstring means by a name; None where there is none."""
    module = sys.modules.get(getattr(value, "__module__", ""))
    for space, path in ((module, name), (tf, name.removeprefix("tf."))):
        found: Any = space
        for part in path.split("."):
            found = getattr(found, part, None)
        if inspect.isroutine(found) or inspect.isclass(found):
            return found
    return None
