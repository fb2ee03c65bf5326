"""A mutated file as a case: it follows from its id alone, so that it is the same in every process."""

from __future__ import annotations

import contextlib
import random
import tempfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from timberframe_conformance.hostile.formats import FORMATS
from timberframe_conformance.hostile.kinds import Files, Limits
from timberframe_conformance.hostile.mutators.values import NothingToChangeError

STEPS = (1, 1, 1, 1, 2, 2, 3, 5)  # how many mutations one file gets
ATTEMPTS = 20  # mutators that find nothing to change, after which a step does nothing


@dataclass(frozen=True)
class HostileCase:
    """The `number`th file of a format and seed. kept: which of its mutations are applied; None for all."""

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
        """Returns the case of an id."""
        name, seed, number, *kept = text.split("/")
        steps = tuple(int(k) for k in kept[0].split("+") if k) if kept else None
        return HostileCase(name, int(seed), int(number), steps)

    @property
    def steps(self) -> tuple[int, ...]:
        """The mutations that are made."""
        count = random.Random(f"{self._origin}/steps").choice(STEPS)
        return tuple(range(count)) if self.kept is None else self.kept

    def files(self) -> Files:
        """Returns the mutated files."""
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
    """Uses files of a format as a user would; what is fetched follows from their content."""
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder, contextlib.chdir(folder):  # graphs may write files
        rng = random.Random(zlib.crc32(b"".join(files[n] for n in sorted(files))))
        FORMATS[name].use(dict(files), Path(folder), rng, limits)
