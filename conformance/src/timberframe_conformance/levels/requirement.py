"""What each level asks of a device: the entries of its data file, as requirements and as ways to call their ops."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from timberframe_conformance.case import LEVELS, Types
from timberframe_conformance.cases.types import type_attrs
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.ops.definition.samples import Arg, Sample
from timberframe_core.ops.definition.signature import AttrDef

BREADTH = LEVELS[-1]
"""The level of what no network of the others needs."""


@dataclass(frozen=True)
class Requirement:
    """An op with dtypes and attrs that networks need. inputs: what each example of it gets, see `derive`."""

    level: str
    op: str
    types: Types
    attrs: Mapping[str, Any]
    inputs: Sequence[Sequence[Any]]
    networks: Sequence[str]

    def samples(self) -> Iterator[Sample]:
        """Yields the examples, with values of the kinds that the op's own samples have."""
        op = registry.get(self.op)
        template = next(s for s in op.samples() if len(s.inputs) == len(op.inputs) and not s.implementation_defined)
        own = {n: _frozen(v) for n, v in self.attrs.items() if op.attrs[n].required or v != plain(op.attrs[n].default)}
        types = {name: (dtype,) for name, dtype in self.types}
        for example in self.inputs:
            yield Sample([_like(t, x) for t, x in zip(template.inputs, example, strict=True)], own, types)


def data_file(level: str) -> Any:
    """Returns where the requirements of a level are kept."""
    return files("timberframe_conformance") / "data" / "levels" / f"{level}.json"


@functools.cache
def requirements(level: str) -> Sequence[Requirement]:
    """Returns what a level asks for beyond the levels below it; nothing by name for the last one."""
    if level == BREADTH:
        return ()
    below: dict[str, set[str]] = {}
    for r in (r for lower in LEVELS[: LEVELS.index(level)] for r in requirements(lower)):
        below.setdefault(_key(r), set()).update(map(kind_of, r.inputs))
    found = []
    for entry in json.loads(data_file(level).read_text()):
        asked = _requirement(level, entry)
        fresh = [x for x in asked.inputs if kind_of(x) not in below.get(_key(asked), ())]
        if fresh:
            found.append(dataclasses.replace(asked, inputs=fresh))
    return tuple(found)


@functools.cache
def ops_of(level: str) -> frozenset[str]:
    """Returns the ops that a level of networks, or one below it, asks for."""
    return frozenset(r.op for lower in LEVELS[: LEVELS.index(level) + 1] for r in requirements(lower))


def level_of(op: OpDef, types: Types, attrs: Mapping[str, Any] | None = None) -> str:
    """Returns the lowest level with a network that calls the op in these dtypes and with such attrs.

    attrs: those that are set, each of which must have a value that one of the level's networks uses, if it selects how
    the op computes; None: any.
    """
    given = {n: plain(a.default) for n, a in op.attrs.items() if not a.required} if attrs is not None else {}
    given.update((n, plain(v)) for n, v in (attrs or {}).items())
    for level, used in _used().get((op.name, types), {}).items():
        if all(given[n] in values for n, values in used.items() if n in given and _selects(op.attrs[n])):
            return level
    return BREADTH


def _selects(attr: AttrDef) -> bool:
    """Returns whether an attr selects how an op computes, such as a layout.

    Others are numbers that it computes with, such as strides: a device need not take others than those of the networks,
    and must be right with all that it takes.
    """
    return attr.kind not in ("int", "list(int)") and attr.name != "padding"  # which stands for numbers of pixels


@functools.cache
def _used() -> Mapping[tuple[str, Types], Mapping[str, Mapping[str, Sequence[Any]]]]:
    """By op and dtypes, for each level that has them: the values of each attr in its networks and those below."""
    table: dict[tuple[str, Types], dict[str, dict[str, list[Any]]]] = {}
    for level in LEVELS[:-1]:
        for r in requirements(level):
            levels = table.setdefault((r.op, r.types), {})
            before = list(levels.values())[-1] if levels else {}
            values = levels.setdefault(level, {n: list(vs) for n, vs in before.items()})
            for name, value in r.attrs.items():
                values.setdefault(name, []).append(value)
    return table


def _requirement(level: str, entry: Mapping[str, Any]) -> Requirement:
    types = tuple((a.name, entry["types"][a.name]) for a in type_attrs(registry.get(entry["op"])))
    return Requirement(level, entry["op"], types, entry["attrs"], entry["inputs"], tuple(entry["networks"]))


def _key(r: Requirement) -> str:
    return json.dumps([r.op, r.types, r.attrs], sort_keys=True)


def _like(template: Arg | Sequence[Arg], example: Any) -> Any:
    """Returns an input of the example's shape or values whose other values are those that the op's own sample has."""
    if isinstance(example, list):
        assert isinstance(template, Sequence)
        return [_like(template[0], x) for x in example]
    assert isinstance(template, Arg)
    if "values" in example:
        return dataclasses.replace(template, values=example["values"])
    shape = tuple(example["shape"])
    if template.values is None:
        return dataclasses.replace(template, shape=shape)
    values = np.asarray(template.values)
    if values.shape == shape:
        return template
    low, high = (float(values.min()), float(values.max())) if values.dtype.kind == "f" else (0.0, 1.0)
    return dataclasses.replace(template, shape=shape, values=None, low=low, high=high)


def kind_of(inputs: Any) -> str:
    """Returns what distinguishes inputs for a kernel: ranks, dimensions of 1, and the values
    that a node is planned by.
    """
    if isinstance(inputs, list):
        return "[" + ",".join(dict.fromkeys(map(kind_of, inputs))) + "]" if inputs else "[]"
    if "values" in inputs:
        return json.dumps(inputs["values"])
    return "x".join("1" if d == 1 else "n" for d in inputs["shape"])


def plain(value: Any) -> Any:
    """Returns an attr's value as JSON holds it: with lists in place of tuples."""
    return [plain(v) for v in value] if isinstance(value, tuple | list) else value


def _frozen(value: Any) -> Any:
    return tuple(_frozen(v) for v in value) if isinstance(value, list) else value
