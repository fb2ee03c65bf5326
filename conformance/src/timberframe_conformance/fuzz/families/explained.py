"""Where TensorFlow is at fault, or differs for a reason: `data/family_differences.toml`."""

from __future__ import annotations

import functools
import re
import tomllib
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True)
class Difference:
    """A known difference of a family's programs.

    program, message: patterns of the program's text and of what is said about it; both must be found.
    """

    name: str
    family: str
    reason: str
    program: str = ""
    message: str = ""

    def explains(self, family: str, source: str, message: str) -> bool:
        """Returns whether a program of a family fails because of it."""
        if self.family != family:
            return False
        return re.search(self.program, source) is not None and re.search(self.message, message) is not None


@functools.cache
def differences() -> tuple[Difference, ...]:
    """Returns the known differences."""
    text = (files("timberframe_conformance") / "data" / "family_differences.toml").read_text()
    return tuple(Difference(**d) for d in tomllib.loads(text).get("difference", ()))


def explanation(family: str, source: str, message: str) -> Difference | None:
    """Returns the known difference that explains a failure, None if none does."""
    return next((d for d in differences() if d.explains(family, source, message)), None)
