"""What a kind of file is that can be damaged, and what its use may take."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Files = dict[str, bytes]
"""The content of files by name, relative to a folder."""

PROCESS = 8  # memory limit of a process, as a multiple of a session's


@dataclass(frozen=True)
class Limits:
    """What using one file may take. seconds: of the whole use; run_ms: of each run of a graph.

    memory: bytes that a session may take on its device; a process may take PROCESS times as much. device_type: of the
    device that graphs run on; that of highest priority if empty. config: what sessions have of SessionConfig for that
    device to exist.
    """

    seconds: float = 30.0
    run_ms: int = 300
    memory: int = 256 << 20
    device_type: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Format:
    """A kind of file. make: an undamaged one. mutate: changes one thing in place. use: all that a user does with it.

    `use(files, folder, rng, limits)` returns where everything was right or an OpError, and raises otherwise.
    """

    name: str
    make: Callable[[random.Random], Files]
    mutate: Callable[[random.Random, Files], None]
    use: Callable[[Files, Path, random.Random, Limits], None]
