"""A mutated file as a case: made from its id alone, so that it is the same in every process."""

from __future__ import annotations

import random
import tempfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

Files = dict[str, bytes]
"""The content of files by name, relative to a folder."""

STEPS = (1, 1, 1, 1, 2, 2, 3, 5)  # how many mutations one file gets
ATTEMPTS = 20  # mutators that find nothing to change, after which a step does nothing
PROCESS = 8  # times the memory of a session that its process may take


@dataclass(frozen=True)
class Limits:
    """What using one file may take. seconds: of the whole use; run_ms: of each run of a graph.

    memory: bytes that a session may take on its device; a process may take PROCESS times as much. device_type: of the
    device that graphs run on; that of highest priority if empty.
    """

    seconds: float = 30.0
    run_ms: int = 300
    memory: int = 256 << 20
    device_type: str = ""


@dataclass(frozen=True)
class Format:
    """A kind of file. make: an undamaged one. mutate: changes one thing in place. use: all that a user does with it.

    `use(files, folder, rng, limits)` returns where everything was right or an OpError, and raises otherwise.
    """

    name: str
    make: Callable[[random.Random], Files]
    mutate: Callable[[random.Random, Files], None]
    use: Callable[[Files, Path, random.Random, Limits], None]


@dataclass(frozen=True)
class HostileCase:
    """The `number`th file of a format and seed. kept: which of its mutations are made; None for all."""

    format: str
    seed: int
    number: int
    kept: tuple[int, ...] | None = None

    @property
    def _origin(self) -> str:
        return f"{self.format}/{self.seed}/{self.number}"

    @property
    def id(self) -> str:
        return self._origin if self.kept is None else f"{self._origin}/{'+'.join(map(str, self.kept))}"

    @staticmethod
    def parse(text: str) -> HostileCase:
        """The case of an id."""
        name, seed, number, *kept = text.split("/")
        steps = tuple(int(k) for k in kept[0].split("+") if k) if kept else None
        return HostileCase(name, int(seed), int(number), steps)

    @property
    def steps(self) -> tuple[int, ...]:
        """The mutations that are made."""
        count = random.Random(f"{self._origin}/steps").choice(STEPS)
        return tuple(range(count)) if self.kept is None else self.kept

    def files(self) -> Files:
        """The mutated files."""
        from timberframe_conformance.hostile.formats import FORMATS
        from timberframe_conformance.hostile.mutators.values import NothingToChangeError

        kind = FORMATS[self.format]
        made = kind.make(random.Random(self._origin))
        for step in self.steps:
            rng = random.Random(f"{self._origin}/{step}")
            for _ in range(ATTEMPTS):
                try:
                    kind.mutate(rng, made)
                    break
                except NothingToChangeError:
                    continue
        return made


def use(name: str, files: Mapping[str, bytes], limits: Limits) -> None:
    """Does with files of a format all that a user does with them; what is fetched follows from their content."""
    from timberframe_conformance.hostile.formats import FORMATS

    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        rng = random.Random(zlib.crc32(b"".join(files[n] for n in sorted(files))))
        FORMATS[name].use(dict(files), Path(folder), rng, limits)
