"""Examples of ops that are written by hand, in the Markdown files of the folder examples.

A heading names the ops that the program below it shows; a sentence instead of a program says why they have no example.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "examples"
_PROGRAM = re.compile(r"```python\n(.*?)```", re.DOTALL)


@dataclass
class Written:
    """By op, its program; by op, why it has none."""

    programs: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def read(self, text: str) -> None:
        """Adds the examples of a file."""
        for part in text.split("\n## ")[1:]:
            names, _, body = part.partition("\n")
            program = _PROGRAM.search(body)
            found = self.programs if program else self.reasons
            found.update(dict.fromkeys(names.split(", "), program[1] if program else " ".join(body.split())))


@cache
def written() -> Written:
    """Returns all that the folder has."""
    found = Written()
    for file in sorted(FOLDER.glob("*.md")):
        found.read(file.read_text(encoding="utf-8"))
    return found
