"""Draws programs of a family, runs them in several systems, and shrinks and stores those that fail."""

from __future__ import annotations

import hashlib
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from timberframe_conformance.fuzz.families.explained import Difference, explanation
from timberframe_conformance.fuzz.families.family import Drawer, Family
from timberframe_conformance.fuzz.families.shrinking import shrink
from timberframe_conformance.fuzz.families.system import OURS, THEIRS, Run, System
from timberframe_conformance.repro import array_source

SHRINKING = 60.0
"""Seconds for shrinking one program."""

OUTSIDE = re.compile(r"^(NotModelledError|NameError|SyntaxError|UnboundLocalError|AttributeError: module)")
"""Errors that say nothing of results: what a model leaves out, and what a shrunk program lacks."""

NO_KERNEL = re.compile(
    r"NoKernelError|No OpKernel was registered|No registered|Could not find device|UnimplementedError|has constraint on attr"
    r"|not in the list of allowed values|\bnot (yet |currently )?support|only supports?|currently supported"
)
"""Errors of a system that lacks the op in these dtypes: what has a kernel, `conformance todo` judges."""


@dataclass
class FamilyOutcome:
    """Outcome of the programs of a family. judged: those that another system or the program itself judged.

    refused: those that both systems refuse. explained: by the name of the known difference. failures: the messages of
    others, with the paths of their scripts.
    """

    family: str
    programs: int = 0
    judged: int = 0
    refused: int = 0
    compared: int = 0
    explained: Counter[str] = field(default_factory=Counter)
    failures: dict[str, Path] = field(default_factory=dict)
    repeated: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


@dataclass(frozen=True)
class Verdict:
    """Fault of a program, "" if there is none. expected: what the other system showed."""

    message: str
    expected: dict[str, np.ndarray] = field(default_factory=dict)
    judged: bool = True
    refused: bool = False


class FamilySession:
    """Runs a family's programs. vs: the interpreter of an environment with TensorFlow, "" for models alone."""

    def __init__(self, family: Family, folder: Path, vs: str = "", device: str = "", timeout: float = 60.0) -> None:
        self.family = family
        self.folder = folder
        self.ours = System(OURS, device=device, timeout=timeout)
        self.other: System | None = None
        if vs:
            self.other = System(THEIRS, vs, timeout=timeout)
        elif family.model:
            self.other = System(family.model, timeout=timeout)
        elif family.parts:
            self.other = System(OURS, device=device, timeout=timeout)
        self.outcome = FamilyOutcome(family.name)

    def close(self) -> None:
        """Ends the processes."""
        self.ours.close()
        if self.other is not None:
            self.other.close()

    def run(
        self,
        seed: int,
        first: int = 0,
        programs: int = 1 << 62,
        seconds: float = 1e9,
        report: Callable[[str], None] = print,
    ) -> FamilyOutcome:
        """Judges programs first, first + 1, ... of a seed until their number or the time is used up."""
        start = time.monotonic()
        number = first
        while number < first + programs and time.monotonic() - start < seconds:
            self._one(seed, number, report)
            number += 1
        self.outcome.seconds = time.monotonic() - start
        return self.outcome

    def _one(self, seed: int, number: int, report: Callable[[str], None]) -> None:
        source = self.family.draw(Drawer(seed, number))
        verdict = self.judge(source)
        self.outcome.programs += 1
        self.outcome.judged += verdict.judged
        self.outcome.refused += verdict.refused
        self.outcome.compared += len(verdict.expected)
        if not verdict.message:
            return
        known = self._known(source, verdict.message)
        if known is not None:
            self.outcome.explained[known.name] += 1
            return
        kind = kind_of(verdict.message)
        if kind in self.outcome.failures:
            self.outcome.repeated[kind] += 1
            return
        small = shrink(source, lambda s: kind_of(self.judge(s).message) == kind, SHRINKING)
        path = self._stored(small, self.judge(small), seed, number)
        self.outcome.failures[kind] = path
        report(f"FAILED {self.family.name}, program {number}: {verdict.message[:600]}\n       {path}\n{small}")

    def _known(self, source: str, message: str) -> Difference | None:
        """Returns the difference that explains a failure; one by numbers that are 0 there, if it is gone with zeros."""
        known = explanation(self.family.name, source, message)
        if known is None or not known.zeroed:
            return known
        zeroed = re.sub(known.zeroed, "0.0", source)
        again = self.judge(zeroed).message
        return explanation(self.family.name, zeroed, again) if again else known

    def judge(self, source: str) -> Verdict:
        """Runs a program in all systems and compares."""
        if self.family.parts:
            return self._judge_parts(source)
        got = self.ours.run(source)
        if got.wrong:
            return Verdict("; ".join(got.wrong))
        if self.other is None:
            return Verdict(got.error)
        return self.compare(got, self.other.run(source))

    def _judge_parts(self, source: str) -> Verdict:
        """Judges files both ways: each system writes what the other one reads."""
        assert self.other is not None
        verdict = Verdict("", judged=False)
        write, read = self.family.parts
        for writer, reader in ((self.ours, self.other), (self.other, self.ours)):
            with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
                written = writer.run(source, write, folder)
                found = reader.run(source, read, folder) if not written.error else written
            pair = (written, found) if writer is self.ours else (found, written)
            if written.error:  # both must be able to write
                pair = (written, reader.run(source, write, folder)) if writer is self.ours else pair
            verdict = self.compare(*pair, f"written by {writer.module}: ")
            if verdict.message:
                return verdict
        return verdict

    def compare(self, got: Run, other: Run, prefix: str = "") -> Verdict:
        """Compares two runs of a program."""
        if OUTSIDE.search(other.error) or OUTSIDE.search(got.error):
            return Verdict("", judged=False)
        if got.error and other.error and (not _is_death(got.error) or _are_endless(got, other)):
            return Verdict("", refused=True)
        if NO_KERNEL.search(got.error) or NO_KERNEL.search(other.error):
            return Verdict("", judged=False)
        if got.error or other.error:
            which = f"{prefix}raises {got.error}" if got.error else f"{prefix}only the other raises {other.error}"
            return Verdict(which)
        for name, expected in other.shown.items():
            if name not in got.shown:
                return Verdict(f"{prefix}{name} is missing", other.shown)
            message = self.family.mismatch(got.shown[name], expected)
            if message:
                return Verdict(f"{prefix}{name}: {message}", other.shown)
        return Verdict("", other.shown)

    def _stored(self, source: str, verdict: Verdict, seed: int, number: int) -> Path:
        title = f"{verdict.message}\n\nProgram {number} of --family {self.family.name} --seed {seed}."
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{self.family.name}-{hashlib.sha256(source.encode()).hexdigest()[:8]}.py"
        path.write_text(script(self.family, source, title, verdict.expected))
        return path


def _is_death(error: str) -> bool:
    return error.startswith(("crash:", "timeout:"))


def _are_endless(*runs: Run) -> bool:
    """Returns whether no system ends the program, as none does that looks for the next element of a dataset for ever."""
    return all(run.error.startswith("timeout:") for run in runs)


def kind_of(message: str) -> str:
    """Returns a message without names, numbers and values."""
    plain = re.sub(r"'[^']*'|\[[^\]]*\]|array\(.*|b?\"[^\"]*\"|[-+\d.]+(e[-+]\d+)?|\b(nan|inf)\b|\(line.*", "", message)
    return " ".join(plain.split())[:70]


def script(family: Family, source: str, title: str, expected: dict[str, np.ndarray]) -> str:
    """Returns a script that runs a program in Timberframe and fails where it does not show what the other system did."""
    docstring = title.replace("\\", "\\\\").replace('"""', "'''")
    lines = [f'"""{docstring}"""', "", "import tempfile" if family.parts else "", "import numpy as np", ""]
    lines += ["import timberframe as tf"]
    lines += [
        "from timberframe_conformance.fuzz.families.helpers import Shown, derivatives, elements, in_session, in_threads",
        "",
    ]
    lines += ["tf.enable_eager_execution()", "show = Shown()", source]
    lines += ["folder = tempfile.mkdtemp()", *(f"{part}(folder)" for part in family.parts)] if family.parts else []
    values = ", ".join(f"{n!r}: {array_source(v).split('  #')[0]}" for n, v in expected.items())
    lines += [f"show.check({{{values}}})", ""]
    return "\n".join(lines)
