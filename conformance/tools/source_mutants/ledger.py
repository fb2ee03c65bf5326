"""The result of each fault, by seed and number, and people's judgements of those that nothing noticed."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from faults import Fault

JUDGED = Path(__file__).with_name("judged.toml")
VERDICTS = {
    "killed": "something noticed",
    "survived": "nothing noticed; to be judged",
    "unfinished": "nothing noticed within the time limit; to be judged",
    "equivalent": "judged: no result can change",
    "equal": "the object code is the same",
    "invalid": "it does not compile",
}


@dataclass
class Result:
    """One fault: where and what it was, and its verdict. by: the case or test that noticed, or why it is equivalent."""

    seed: str
    number: int
    file: str
    fault: Fault
    verdict: str
    by: str = ""
    seconds: float = 0.0
    details: dict[str, Any] = field(default_factory=dict)

    def line(self) -> str:
        location = f"{self.file}:{self.fault.line}"
        return f"{self.seed}/{self.number} {self.verdict:10} {location}  {self.fault.describe()}  {self.by}"


class Ledger:
    """Results in a JSON file, which every run adds to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.results: list[Result] = []
        if path.exists():
            for entry in json.loads(path.read_text()):
                self.results.append(Result(**{**entry, "fault": Fault(**entry["fault"])}))

    def numbers(self, seed: str) -> set[int]:
        """Returns the numbers of a seed that have a result."""
        return {r.number for r in self.results if r.seed == seed}

    def add(self, result: Result) -> None:
        """Adds a result, which replaces an older one of its number, and writes the file."""
        self.results = [r for r in self.results if (r.seed, r.number) != (result.seed, result.number)] + [result]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps([asdict(r) for r in self.results], indent=1) + "\n")

    def summary(self) -> str:
        """Returns how many of each verdict, and the share of those killed among all that are not equivalent."""
        counts = Counter(r.verdict for r in self.results)
        verdicts = ", ".join(f"{counts[v]} {v}" for v in VERDICTS if counts[v])
        tried = counts["killed"] + counts["survived"] + counts["unfinished"]
        return f"{len(self.results)} faults: {verdicts}; {counts['killed']} of {tried} noticed"


Key = tuple[Any, ...]
_KEY = ("file", "text", "column", "before", "after")


class Judged:
    """The faults that people have looked at: equivalent ones are not tried again."""

    def __init__(self, path: Path = JUDGED) -> None:
        entries = tomllib.loads(path.read_text()).get("equivalent", []) if path.exists() else []
        self._reasons = {tuple(e[name] for name in _KEY): e["reason"] for e in entries}

    def entries(self) -> list[Key]:
        """File, line, column in it, and what becomes what, of each."""
        return list(self._reasons)

    def reason(self, file: str, fault: Fault) -> str | None:
        """Returns why a fault changes no result, where somebody found that."""
        return self._reasons.get((file, fault.text, fault.column, fault.before, fault.after))
