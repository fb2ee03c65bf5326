"""A device's profile: what its vendor declares about it, and which failures are known.

A TOML file:

    flushes_subnormals = true
    rewrites_arithmetic = true

    [[waiver]]
    cases = "forward/Lgamma/float16/*"    # a glob over case ids
    reason = "table too coarse near 2, fixed in driver 7.1"
    expires = 2027-03-01
"""

from __future__ import annotations

import datetime
import fnmatch
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

_DECLARATIONS = ("flushes_subnormals", "rewrites_arithmetic")


class ProfileError(ValueError):
    """A profile that cannot be read; the message says where and what is required."""


@dataclass(frozen=True)
class Waiver:
    """Cases that are known to fail, why, and until when that is accepted."""

    cases: str
    reason: str
    expires: datetime.date

    def matches(self, case_id: str) -> bool:
        return fnmatch.fnmatchcase(case_id, self.cases)


@dataclass(frozen=True)
class Profile:
    """What is declared about a device.

    flushes_subnormals: it may treat subnormal numbers as zero. rewrites_arithmetic: its compiler may compute several
    ops by another formula, such as a / b / b as a / (b * b), so that a program of them need not give the bits that
    separate programs give; its results are held to the truth instead.
    """

    flushes_subnormals: bool = False
    rewrites_arithmetic: bool = False
    waivers: Sequence[Waiver] = field(default=())

    def waiver(self, case_id: str, today: datetime.date | None = None) -> Waiver | None:
        """The waiver that covers a case and has not expired."""
        day = today or datetime.date.today()
        return next((w for w in self.waivers if w.matches(case_id) and w.expires >= day), None)


def load_profile(path: Path | None) -> Profile:
    """The profile in a file; the empty one without a file. Raises ProfileError."""
    if path is None:
        return Profile()
    try:
        data = tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError) as e:
        raise ProfileError(f"profile {path}: {e}; a TOML file is required") from e
    unknown = set(data) - {*_DECLARATIONS, "waiver"}
    if unknown:
        known = ", ".join(_DECLARATIONS)
        raise ProfileError(f"profile {path}: has {', '.join(sorted(unknown))}; known are {known} and waiver")
    declared = {name: bool(data.get(name, False)) for name in _DECLARATIONS}
    return Profile(**declared, waivers=tuple(_waiver(path, w) for w in data.get("waiver", ())))


def _waiver(path: Path, entry: dict[str, object]) -> Waiver:
    missing = [k for k in ("cases", "reason", "expires") if not entry.get(k)]
    if missing:
        raise ProfileError(f"profile {path}: a waiver lacks {', '.join(missing)}; it needs cases, reason and expires")
    expires = entry["expires"]
    if not isinstance(expires, datetime.date):
        raise ProfileError(f"profile {path}: a waiver expires {expires!r}; a date such as 2027-03-01 is required")
    return Waiver(str(entry["cases"]), str(entry["reason"]), expires)
