"""What plugins may use, as text: what timberframe_sdk exports, the hooks, and the C structs of timberframe/kernel.h.

``python sdk/tests/contract_snapshot.py`` writes it to contract.txt beside this file, unless CONTRACT has to be raised
for what has changed since; test_contract_snapshot.py compares the two.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import timberframe_sdk
from timberframe_core.plugin.hooks import HookSpecs
from timberframe_sdk import include_directory

SNAPSHOT = Path(__file__).with_name("contract.txt")
_STRUCT = re.compile(r"(?:typedef )?struct (\w+) \{(.*?)\n\}", re.DOTALL)
_FIELD = re.compile(r"(?P<type>[\w ]+?)\s*(?P<pointer>\**)\s*(?P<name>\w+)(?:\[(?P<count>\w+)\])?$")
_CONSTANT = re.compile(r"(?:#define )?(TF_[A-Z0-9_]+)(?: = | )(\d+)")
_OPTIONAL = re.compile(r"(, \w+: '[^']*' = [^,]+)+")
_VERSION = re.compile(r"^CONTRACT = \((\d+), (\d+)\)$", re.MULTILINE)


def contract() -> str:
    """Returns one line for each name, member and field."""
    header = (Path(include_directory()) / "timberframe" / "kernel.h").read_text()
    return "\n".join([*_exports(), *_hooks(), *_header(header)]) + "\n"


def changes(before: str, after: str) -> list[str]:
    """Returns the lines that differ, as a diff shows them, without that of the version itself."""
    lines = [[x for x in text.splitlines() if not _VERSION.match(x)] for text in (before, after)]
    return list(difflib.unified_diff(*lines, n=0, lineterm=""))[2:]


def missing_version(before: str, after: str) -> str | None:
    """Returns what is wrong with the version of `after`, by the rule in the docstring of
    CONTRACT; None if it is right.
    """
    found = changes(before, after)
    old, new = (tuple(map(int, _VERSION.findall(text)[0])) for text in (before, after))
    added = [line[1:] for line in found if line.startswith("+")]
    if any(line.startswith("-") and not any(_extends(line[1:], new) for new in added) for line in found):
        wanted, what = (old[0] + 1, 0), "members have changed or gone"
    elif found:
        wanted, what = (old[0], old[1] + 1), "members have come"
    else:
        return None
    if new >= wanted:
        return None
    return f"{what} and CONTRACT is {new}; raise it to {wanted}:\n" + "\n".join(found)


def _extends(old: str, new: str) -> bool:
    """Returns whether a function has only gained parameters at its end, all with defaults."""
    end = old.rfind(") -> ")
    gained = new[end : len(new) - len(old[end:])]
    return end > 0 and new == old[:end] + gained + old[end:] and _OPTIONAL.fullmatch(gained) is not None


def _exports() -> Iterator[str]:
    for name in sorted(vars(timberframe_sdk)):
        value = getattr(timberframe_sdk, name)
        if name.startswith("_") or isinstance(value, types.ModuleType):
            continue
        if inspect.isclass(value):
            yield f"class {name}({', '.join(b.__name__ for b in value.__bases__)})"
            yield from (f"  {name}.{line}" for line in sorted(_members(value)))
        elif inspect.isroutine(value):
            yield f"def {name}{_signature(value)}"
        elif isinstance(value, int | str | tuple | frozenset):
            yield f"{name} = {_text(sorted(value, key=str) if isinstance(value, frozenset) else value)}"
        else:
            yield f"{name}: {type(value).__name__}"


def _hooks() -> Iterator[str]:
    for name, function in sorted(vars(HookSpecs).items()):
        if name.startswith("timberframe_"):
            yield f"hook {name}{_signature(function)}"


def _members(kind: type) -> Iterator[str]:
    fields = {f.name for f in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    if fields or "__init__" in vars(kind):
        yield f"__init__{_signature(kind)}"
    for name, text in vars(kind).get("__annotations__", {}).items():
        if not name.startswith("_"):
            yield f"{name}: {text if isinstance(text, str) else getattr(text, '__name__', text)}"
    for name, value in vars(kind).items():
        if name.startswith("_") or name in fields:
            continue
        if isinstance(value, property):
            yield f"{name}: property"
        elif inspect.isroutine(value) or isinstance(value, classmethod | staticmethod):
            yield f"{name}{_signature(getattr(kind, name))}"


def _signature(function: Any) -> str:
    try:
        return _text(str(inspect.signature(function)))
    except (TypeError, ValueError):
        return "(...)"


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def _header(text: str) -> Iterator[str]:
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    constants = {name: int(number) for name, number in _CONSTANT.findall(text)}
    yield from (f"{name} = {number}" for name, number in constants.items())
    sizes = {"uint32_t": 4, "int32_t": 4, "int64_t": 8}
    for name, body in _STRUCT.findall(text):
        at = 0
        for field, size in _fields(body, sizes, constants):
            step = min(size[0], 8)
            at = -(-at // step) * step
            yield f"struct {name}.{field}: {size[0] * size[1]} bytes at {at}"
            at += size[0] * size[1]
        sizes[name] = -(-at // 8) * 8
        yield f"struct {name}: {sizes[name]} bytes"


def _fields(body: str, sizes: dict[str, int], constants: dict[str, int]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yields names of fields, with the bytes of an element and how many there are."""
    for declaration in (d.strip() for d in body.split(";")):
        function = re.match(r"\w+ \(\*(\w+)\)", declaration)
        if function:
            yield function[1], (8, 1)
        elif declaration:
            found = _FIELD.match(re.sub(r"\b(const|volatile)\b ?", "", " ".join(declaration.split())))
            assert found is not None, declaration
            count = found["count"] or "1"
            element = 8 if found["pointer"] else sizes[found["type"].strip()]
            yield found["name"], (element, constants.get(count) or int(count))


def write() -> None:
    """Writes the snapshot; ends the process with the reason where CONTRACT has to be raised first."""
    now = contract()
    wrong = missing_version(SNAPSHOT.read_text(), now)
    if wrong is not None:
        sys.exit(wrong)
    SNAPSHOT.write_text(now)


if __name__ == "__main__":
    write()
