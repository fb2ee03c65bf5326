"""Stands for your compiler: takes the text of a function, gives a program. Here the language is Python on NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from timberframe_acmecompiler import library


class Source:
    """The text of a function, as it is written: one statement for each node."""

    def __init__(self, parameters: int) -> None:
        self.parameters = [f"p{i}" for i in range(parameters)]
        self.constants: dict[str, np.ndarray] = {}
        self._lines: list[str] = []
        self._numbers = itertools.count()

    def name(self, x: str | np.ndarray) -> str:
        """The name of an input, which is one already, or a constant that becomes part of the program."""
        if isinstance(x, str):
            return x
        found = f"c{next(self._numbers)}"
        self.constants[found] = x
        return found

    def assign(self, expression: str) -> str:
        """Appends a statement, and gives the name of its result."""
        name = f"t{next(self._numbers)}"
        self._lines.append(f"    {name} = np.asarray({expression})\n")
        return name

    def text(self, results: Sequence[str]) -> str:
        """The whole function."""
        head = f"def program({', '.join(self.parameters)}):\n"
        return f"{head}{''.join(self._lines)}    return [{', '.join(results)}]\n"


def build(text: str, constants: Mapping[str, np.ndarray]) -> Callable[..., list[np.ndarray]]:
    """Compiles a text that `Source` made."""
    names: dict[str, Any] = {"np": np, "library": library, **constants}
    exec(compile(text, "<program of acmecompiler>", "exec"), names)

    def run(*arrays: np.ndarray) -> list[np.ndarray]:
        with np.errstate(all="ignore"):
            found: list[np.ndarray] = names["program"](*arrays)
            return found

    return run
