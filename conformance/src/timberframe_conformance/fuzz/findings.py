"""Findings: failing programs, as they are stored, printed and compared."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from timberframe_conformance.fuzz.program import Program, from_json, to_json
from timberframe_conformance.fuzz.script import script
from timberframe_conformance.options import Options, device_arguments


@dataclass(frozen=True)
class Finding:
    """A program that fails.

    oracle: which one failed, or `build`, `run`, `crash`, `timeout`. seed, number: with which it was drawn. mutant: the
    known bug that was put into the framework. settings, profile: of the device, as of a run.
    """

    program: Program
    oracle: str
    message: str
    device: str
    seed: int = 0
    number: int = 0
    mutant: str = ""
    settings: tuple[tuple[str, str], ...] = ()
    profile: str = ""

    @property
    def kind(self) -> str:
        """The oracle and its message without what differs from program to program; a smaller program keeps it."""
        return kind(self.oracle, RESULT.sub("", self.message))

    @property
    def cause(self) -> str:
        """Equal for findings that probably have the same cause: of one kind, with a wrong result of the same op."""
        return kind(self.oracle, self.message)

    @property
    def name(self) -> str:
        """The name of its files."""
        digest = hashlib.sha256(to_json(self.program).encode()).hexdigest()[:8]
        return f"{re.sub('[^a-z]+', '-', self.oracle.lower())}-{digest}"

    def to_json(self) -> str:
        data = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "program"}
        return json.dumps({**data, "program": json.loads(to_json(self.program))})

    @staticmethod
    def from_json(text: str) -> Finding:
        data = json.loads(text)
        settings = tuple((name, value) for name, value in data.get("settings", ()))  # none in failures of before
        return Finding(**{**data, "program": from_json(json.dumps(data["program"])), "settings": settings})

    def script(self, spec: str) -> str:
        """Returns a script that shows the failure and exits with status 1 for as long as
        there is one; see `script.py`.
        """
        mutant = f" --mutant {self.mutant}" if self.mutant else ""
        device = device_arguments(Options(self.device, profile=self.profile, settings=self.settings))
        arguments = ["fuzz", *device, *(["--vs=tensorflow"] if self.oracle == "tensorflow" else [])]
        command = f"conformance {shlex.join(arguments)}"
        title = (
            f"{self.oracle}: {self.message}\n\nFound by `{command} --seed {self.seed}{mutant}`, program {self.number}."
            f"\n\n`{command} --replay {self.name}.json`, in this file's folder, lets the oracle judge it again."
        )
        return script(self.program, title, spec, self.oracle, self.mutant, arguments)


RESULT = re.compile(r" \(\w+, \w+\)")
"""What an oracle says of a wrong result: its op and dtype."""


def kind(oracle: str, message: str) -> str:
    """Returns an oracle and its message without names, numbers and values."""
    plain = re.sub(r"'[^']*'|\[[^\]]*\]|[-\d.]+(e[-+]\d+)?|\b(nan|inf)\b", "", message)
    return f"{oracle}: {' '.join(plain.split())[:60]}"


class Store:
    """A folder with the findings of one device, each as JSON and as a script."""

    def __init__(self, folder: Path, device: str) -> None:
        self.folder = folder / re.sub(r"\W+", "_", device)

    def add(self, finding: Finding, spec: str) -> Path:
        """Writes a finding; returns the path of its script."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"{finding.name}.json").write_text(finding.to_json())
        path = self.folder / f"{finding.name}.py"
        path.write_text(finding.script(spec))
        return path

    def all(self) -> list[Finding]:
        """Returns the findings, oldest first."""
        paths = sorted(self.folder.glob("*.json"), key=lambda p: (p.stat().st_mtime, p.name))
        return [Finding.from_json(p.read_text()) for p in paths]

    def remove(self, finding: Finding) -> None:
        """Removes a finding that no longer fails."""
        for suffix in (".json", ".py"):
            (self.folder / f"{finding.name}{suffix}").unlink(missing_ok=True)


def regressions() -> list[Path]:
    """Failures of the past, which every session replays: no device may have them again."""
    return sorted((Path(__file__).parent / "regressions").glob("*.json"))
