"""A case: one check of a device, with a stable readable id; and its result."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from timberframe_conformance.hypotheses.wrong import Wrong
    from timberframe_conformance.target import Target

VERDICTS = ("pass", "fail", "crash", "timeout", "unsupported", "not applicable", "waived")
NOT_RUN = "not run"
"""How the message of a case begins that was not tried, since others of its op hung or its op fails anyway."""
FAILING = frozenset({"fail", "crash", "timeout"})
SKIPPED = frozenset({"unsupported", "not applicable"})
"""Verdicts of cases that judged nothing."""
LEVELS = ("core", "inference", "training", "breadth")
"""In the order in which they build on each other; the last is what no network of the others needs."""
SUBJECTS = ("Device", "Graph", "Model")
"""In place of an op's name in cases that are about no single op."""


def is_subject(name: str) -> bool:
    """Returns whether a name in the place of an op's is no op's: one of SUBJECTS, or an installed suite's own."""
    return name in SUBJECTS or ":" in name


Types = tuple[tuple[str, str], ...]
"""Type attrs with the names of their dtypes, in the op's order."""


class CaseFailedError(AssertionError):
    """The device did not do what the case asks; the message says what it did and what was required."""

    def __init__(self, message: str, measured: Measured | None = None) -> None:
        super().__init__(message)
        self.measured = measured


class WrongValuesError(CaseFailedError):
    """The device gave other values than the case asks for. wrong: the output, for hypotheses on the cause."""

    def __init__(self, message: str, measured: Measured | None = None, wrong: Wrong | None = None) -> None:
        super().__init__(message, measured)
        self.wrong = wrong


class WrongShapeError(CaseFailedError):
    """The device gave an output of another shape. number: of the output. shape: of what the device gave."""

    def __init__(self, message: str, number: int, shape: tuple[int, ...]) -> None:
        super().__init__(message)
        self.number, self.shape = number, shape


class UnsupportedError(Exception):
    """The device has no kernel for this: a fact, not a failure."""


class NotApplicableError(Exception):
    """The device has nothing that the case could judge, such as a mode that it does not offer; the message says what.

    Nothing went wrong as far as the case could look.
    """


@dataclass(slots=True)
class Measured:
    """What a case measured: the worst error and its limit in ULP at that element, and the input that gave it.

    waiver: what of the device's profile let it pass. fallback: what computed it in place of the device, if anything.
    """

    max_ulp: float | None = None
    limit: float | None = None
    worst: str = ""
    note: str = ""
    waiver: str = ""
    fallback: str = ""


def label_of(types: Types) -> str:
    """Returns dtypes as ids show them: ``float32`` or ``int32,float64``; ``-`` where the op has no type attr."""
    return ",".join(dtype for _, dtype in types) or "-"


def id_of(suite: str, op: str, types: Types, detail: str) -> str:
    """Returns the id of a case, by which it is found again, and which chooses its random numbers."""
    return f"{suite}/{op}/{label_of(types)}/{detail}"


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One case. `run(target)` raises CaseFailedError or UnsupportedError, or returns what it measured.

    types: dtypes of the op's type attrs. level: the conformance level that a failure keeps from being reached.
    expected: whether a level is incomplete when the device has no kernel for it; asked_by: which one. networks: those
    that need it. isolate: run it in a process of its own. script: stand-alone Python that shows the same, where the
    case can be written so. time_limits: how many times as long as others it may take. of_graph: ops of a graph that the
    case is about, by each of which it can be chosen.
    """

    suite: str
    op: str
    types: Types
    detail: str
    run: Callable[[Target], Measured | None]
    level: str = LEVELS[-1]
    expected: bool = True
    isolate: bool = False
    script: Callable[[str], str] | None = None
    asked_by: str = LEVELS[-1]
    networks: tuple[str, ...] = ()
    time_limits: int = 1
    of_graph: tuple[str, ...] = ()

    @property
    def dtype_label(self) -> str:
        """The dtypes as the id shows them."""
        return label_of(self.types)

    @property
    def id(self) -> str:
        return id_of(self.suite, self.op, self.types, self.detail)


@dataclass(slots=True)
class Result:
    """The verdict on one case, as reports hold it.

    cause: what failures for the same reason have in common. kernels: those that ran, by plugin and builder. fallback:
    they computed by the op's reference, which counts for no level. waiver: what of the profile applied.
    """

    id: str
    suite: str
    op: str
    dtypes: dict[str, str]
    verdict: str
    max_ulp: float | None = None
    limit: float | None = None
    seconds: float = 0.0
    message: str = ""
    repro: str = ""
    level: str = LEVELS[-1]
    expected: bool = True
    worst: str = ""
    note: str = ""
    asked_by: str = LEVELS[-1]
    networks: Sequence[str] = ()
    cause: str = ""
    kernels: Sequence[str] = ()
    fallback: bool = False
    waiver: str = ""

    @staticmethod
    def of(case: Case, verdict: str) -> Result:
        """Returns the result of a case, with what the case itself says."""
        return Result(
            case.id, case.suite, case.op, dict(case.types), verdict, level=case.level, expected=case.expected,
            asked_by=case.asked_by, networks=case.networks,
        )  # fmt: skip


def seed(case_id: str) -> int:
    """Returns the seed that belongs to an id: the same on every machine and in every run."""
    return zlib.crc32(case_id.encode())


def generator(case_id: str) -> np.random.Generator:
    """Returns random numbers that depend on the case's id alone."""
    return np.random.Generator(np.random.PCG64(seed(case_id)))
