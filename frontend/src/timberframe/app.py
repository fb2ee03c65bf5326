"""`tf.app`: the start of a program."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from timberframe import flags as flags
from timberframe_core.extras import extra

with extra("absl", "tf.app"):
    from absl import app as _absl


def run(main: Callable[[Sequence[str]], Any] | None = None, argv: list[str] | None = None) -> None:
    """Reads the flags, calls `main` with what is left of the command line, and ends the process with what it returns.

    main: the program's function `main` if None. argv: sys.argv if None. Flags that are not known stay in what is left.
    """
    program = main or getattr(sys.modules["__main__"], "main")  # noqa: B009 - mypy knows no such name there
    _absl.run(program, argv=argv, flags_parser=lambda args: flags.FLAGS(args, known_only=True))
