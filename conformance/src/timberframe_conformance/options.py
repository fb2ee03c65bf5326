"""The options of one run of the suite, in a form that is sent to worker processes."""

from __future__ import annotations

import dataclasses
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from timberframe_conformance.case import LEVELS

DEFAULT_TIMEOUT = 30.0


@dataclass(frozen=True)
class Options:
    """device: a name such as ``acme``, ``acme:1`` or ``acme:choice``, see `names.py`.

    level: all cases up to this one; ``all`` is every level but soak. ops, suites: limit the run; empty is everything.
    timeout: seconds for one case. mutant: name of the known bug to put into the device's kernels. journal: directory of
    the journals. ids: only these cases, if there are any. keyword: only cases that match, see `keyword.py`. share:
    (k, n): only the kth of n shares of the ops. settings: the device options of sessions, by name, as text.
    """

    device: str
    level: str = "all"
    ops: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    timeout: float = DEFAULT_TIMEOUT
    profile: str = ""
    mutant: str = ""
    journal: str = ""
    ids: tuple[str, ...] = ()
    keyword: str = ""
    share: tuple[int, int] = (0, 1)
    settings: tuple[tuple[str, str], ...] = ()

    def wants_level(self, level: str) -> bool:
        """Returns whether cases of a level are part of the run."""
        if self.level == "soak":
            return level == "soak"
        if level == "soak":
            return False
        return self.level == "all" or (level in LEVELS and LEVELS.index(level) <= LEVELS.index(self.level))

    @property
    def highest_level(self) -> str:
        """The last of the levels that a run can reach."""
        return self.level if self.level in LEVELS else LEVELS[-1]

    def wants_op(self, op: str, of_graph: Sequence[str] = ()) -> bool:
        """Returns whether cases of an op are part of the run. of_graph: further ops by which they can be chosen."""
        chosen = not self.ops or op in self.ops or not set(self.ops).isdisjoint(of_graph)
        return chosen and in_share(op, self.share)

    def wants_suite(self, suite: str) -> bool:
        """Returns whether cases of a suite are part of the run."""
        return not self.suites or suite in self.suites

    @property
    def partial(self) -> bool:
        """Whether a level cannot be judged by this run; a level that was chosen is run as a whole."""
        return bool(self.ops or self.suites or self.keyword or self.share[1] > 1)

    @property
    def profile_path(self) -> Path | None:
        return Path(self.profile) if self.profile else None

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @staticmethod
    def from_json(text: str) -> Options:
        data = json.loads(text)
        for name in ("ops", "suites", "ids", "share"):
            data[name] = tuple(data[name])
        data["settings"] = tuple((name, value) for name, value in data.get("settings", ()))
        return Options(**data)


def device_arguments(options: Options) -> list[str]:
    """Returns the arguments of a command for the same device as that of the options."""
    arguments = [f"--device={options.device}"]
    for name, value in options.settings:
        arguments += ["--library", value] if name == "library" else ["--option", f"{name}={value}"]
    return arguments + (["--profile", options.profile] if options.profile else [])


def in_share(name: str, share: tuple[int, int]) -> bool:
    """Returns whether a name belongs to the kth of n shares (k, n): the same on every machine."""
    k, n = share
    return zlib.crc32(name.encode()) % n == k
