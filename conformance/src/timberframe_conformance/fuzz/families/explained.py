"""Where TensorFlow is at fault, or differs for a reason: `data/family_differences.toml`."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files

TWO_NUMBERS = re.compile(r"np\.(\w+)\((\S+)\), the other gives np\.\w+\((\S+)\)$")
"""Floating results that differ, at the end of a message."""


@dataclass(frozen=True)
class Difference:
    """A known difference of a family's programs.

    program, message: patterns of the program's text and of what is said about it; both must be found. within: by how
    much results of these dtypes may differ at most, where it is a matter of digits; other dtypes may not.
    """

    name: str
    family: str
    reason: str
    program: str = ""
    message: str = ""
    within: Mapping[str, float] = field(default_factory=dict)

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
    return next((d for d in differences() if d.explains(family, source, message)), None)
