"""Where TensorFlow is at fault, or differs for a reason: `data/family_differences.toml`, and of one op that of graphs."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import numpy as np

import timberframe
from timberframe_conformance.fuzz.differences import UNDEFINED, incomparable, is_explained

ONE_OP = re.compile(r"show\('y', tf\.raw_ops\.(\w+)\(.*\)\)\n")
"""A program that shows the results of one op."""
TWO_NUMBERS = re.compile(r"np\.(\w+)\((\S+)\), the other gives np\.\w+\((\S+)\)$")
"""Floating results that differ, at the end of a message."""


@dataclass(frozen=True)
class Difference:
    """A known difference of a family's programs.

    program, message: patterns of the program's text and of what is said about it; both must be found. within: by how
    much results of these dtypes may differ at most, where it is a matter of digits; other dtypes may not. zeroed: a
    pattern of numbers that are 0 in TensorFlow; with 0 in their place the program must not fail.
    """

    name: str
    family: str
    reason: str
    program: str = ""
    message: str = ""
    within: Mapping[str, float] = field(default_factory=dict)
    zeroed: str = ""

    def explains(self, family: str, source: str, message: str) -> bool:
        """Returns whether a program of a family fails because of it."""
        if self.family != family:
            return False
        if re.search(self.program, source) is None or re.search(self.message, message) is None:
            return False
        return not self.within or self._is_near(message)

    def _is_near(self, message: str) -> bool:
        found = TWO_NUMBERS.search(message)
        if found is None:
            return False
        dtype, got, expected = found.groups()
        return dtype in self.within and abs(float(got) - float(expected)) <= self.within[dtype]


@functools.cache
def differences() -> tuple[Difference, ...]:
    """Returns the known differences."""
    text = (files("timberframe_conformance") / "data" / "family_differences.toml").read_text()
    return tuple(Difference(**d) for d in tomllib.loads(text).get("difference", ()))


def explanation(family: str, source: str, message: str) -> Difference | None:
    """Returns the known difference that explains a failure, None if none does."""
    found = next((d for d in differences() if d.explains(family, source, message)), None)
    return found or _of_one_op(family, source, message)


def _of_one_op(family: str, source: str, message: str) -> Difference | None:
    """Returns the difference that graphs with the program's op are known to have, None if that explains nothing."""
    one = ONE_OP.fullmatch(source)
    if one is None:
        return None
    with timberframe.Graph().as_default() as graph:
        exec(source, {"tf": timberframe, "np": np, "show": lambda *given: None})
    node = graph.get_operations()[-1]
    error = message.partition("only the other raises ")[2]
    shown = re.match(r"y(?:\[(\d+)\])?: ", message)
    if error:
        known = is_explained(graph, error, _value)
    else:
        known = shown is not None and node.outputs[int(shown[1] or 0)] in incomparable(graph, _value)
    if not known and not is_explained(graph, UNDEFINED, _value):
        return None
    return Difference(f"{node.type} in graphs", family, "data/tensorflow_differences.toml has the reason")


def _value(tensor: Any) -> Any:
    return tensor.host_value if tensor.op.type == "Const" else None
