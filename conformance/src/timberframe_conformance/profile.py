"""A device's profile: what its vendor declares about it, and which failures are known.

A TOML file:

    flushes_subnormals = true
    fuses_arithmetic = true
    rewrites_arithmetic = true
    orders_zeros = true

    [[tolerance]]
    op = "Tanh"                           # a glob over names of ops
    dtypes = ["float64"]                  # of the outputs; all if left out
    ulp = 8                               # in place of the op's own limit, if that is lower
    reason = "the function unit has a table of 1,024 entries"
    expires = 2027-03-01

    [[waiver]]
    cases = "forward/Lgamma/float16/*"    # a glob over case ids
    reason = "table too coarse near 2, fixed in driver 7.1"
    expires = 2027-03-01
"""

from __future__ import annotations

import dataclasses
import datetime
import fnmatch
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from timberframe_core.dtypes import BY_NAME

_DECLARATIONS = ("flushes_subnormals", "fuses_arithmetic", "rewrites_arithmetic", "orders_zeros")
_TABLES = ("tolerance", "waiver")


class ProfileError(ValueError):
    """A profile that cannot be read; the message says where and what is required."""


class _Expiring:
    """An entry that is in force until a day, that day included."""

    expires: datetime.date

    def in_force(self, today: datetime.date | None = None) -> bool:
        return self.expires >= (today or datetime.date.today())


@dataclass(frozen=True)
class Waiver(_Expiring):
    """Cases that are known to fail, why, and until when that is accepted."""

    cases: str
    reason: str
    expires: datetime.date

    @property
    def name(self) -> str:
        return f"waiver {self.cases}"

    def matches(self, case_id: str) -> bool:
        return fnmatch.fnmatchcase(case_id, self.cases)


@dataclass(frozen=True)
class Tolerance(_Expiring):
    """A wider limit for an op's results, why, and until when that is accepted. dtypes: of the results; empty is all."""

    op: str
    ulp: float
    reason: str
    expires: datetime.date
    dtypes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"tolerance {self.op}{'/' if self.dtypes else ''}{','.join(self.dtypes)}"

    def matches(self, op: str, dtype: str) -> bool:
        return fnmatch.fnmatchcase(op, self.op) and (not self.dtypes or dtype in self.dtypes)


@dataclass(frozen=True)
class Profile:
    """What is declared about a device.

    flushes_subnormals: it may treat subnormal numbers as zero, as inputs, results and in between. fuses_arithmetic: a
    program of several ops may round less often than separate programs, such as by fused multiply-adds; its results are
    held to the truth instead of the bits of separate programs. rewrites_arithmetic: its compiler may also compute
    several ops by another formula, such as a / b / b as a / (b * b). orders_zeros: -0 is less than 0 for its Maximum
    and Minimum; without it they may return either. path: of the file, for reports.
    """

    flushes_subnormals: bool = False
    fuses_arithmetic: bool = False
    rewrites_arithmetic: bool = False
    orders_zeros: bool = False
    waivers: Sequence[Waiver] = ()
    tolerances: Sequence[Tolerance] = ()
    path: str = ""

    def waiver(self, case_id: str, today: datetime.date | None = None) -> Waiver | None:
        """Returns the waiver that covers a case and has not expired."""
        return next((w for w in self.waivers if w.matches(case_id) and w.in_force(today)), None)

    def expired_waiver(self, case_id: str) -> Waiver | None:
        """Returns the waiver that covered a case until it expired."""
        return next((w for w in self.waivers if w.matches(case_id) and not w.in_force()), None)

    def tolerance(self, op: str, dtype: str, today: datetime.date | None = None) -> Tolerance | None:
        """Returns the widest tolerance for an op's results of a dtype that has not expired."""
        found = [t for t in self.tolerances if t.matches(op, dtype) and t.in_force(today)]
        return max(found, key=lambda t: t.ulp, default=None)

    @property
    def keeps_bits(self) -> bool:
        """Whether a program of several ops gives the bits that separate programs give."""
        return not (self.fuses_arithmetic or self.rewrites_arithmetic)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for reports, dates as text."""
        data: dict[str, Any] = {name: getattr(self, name) for name in _DECLARATIONS}
        data["path"] = self.path
        for name, entries in (("waivers", self.waivers), ("tolerances", self.tolerances)):
            data[name] = [
                {**dataclasses.asdict(e), "expires": e.expires.isoformat(), "name": e.name, "expired": not e.in_force()}
                for e in entries
            ]
        return data


def load_profile(path: Path | None) -> Profile:
    """Returns the profile in a file; the empty one without a file. Raises ProfileError."""
    if path is None:
        return Profile()
    try:
        data = tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError) as e:
        raise ProfileError(f"profile {path}: {e}; a TOML file is required") from e
    unknown = set(data) - {*_DECLARATIONS, *_TABLES}
    if unknown:
        known = ", ".join((*_DECLARATIONS, *_TABLES))
        raise ProfileError(f"profile {path}: has {', '.join(sorted(unknown))}; known are {known}")
    return Profile(
        **{name: _truth(path, name, data.get(name, False)) for name in _DECLARATIONS},
        waivers=tuple(_waiver(path, w) for w in _entries(path, "waiver", data)),
        tolerances=tuple(_tolerance(path, t) for t in _entries(path, "tolerance", data)),
        path=str(path),
    )


def _truth(path: Path, name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ProfileError(f"profile {path}: {name} is {value!r}; true or false is required")
    return value


def _entries(path: Path, what: str, data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    entries = data.get(what, [])
    if not isinstance(entries, list) or not all(isinstance(e, Mapping) for e in entries):
        raise ProfileError(f"profile {path}: {what} is {entries!r}; tables that begin with [[{what}]] are required")
    return entries


def _text(path: Path, what: str, name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ProfileError(f"profile {path}: a {what} has {name} {value!r}; a text is required")
    return value


def _waiver(path: Path, entry: Mapping[str, Any]) -> Waiver:
    expires = _expiry(path, "waiver", entry, ("cases", "reason", "expires"))
    cases, reason = (_text(path, "waiver", name, entry[name]) for name in ("cases", "reason"))
    return Waiver(cases, reason, expires)


def _tolerance(path: Path, entry: Mapping[str, Any]) -> Tolerance:
    expires = _expiry(path, "tolerance", entry, ("op", "ulp", "reason", "expires"), ("dtypes",))
    ulp, dtypes = entry["ulp"], entry.get("dtypes", [])
    if not isinstance(ulp, int | float) or not 0 < ulp < 2**24:
        raise ProfileError(f"profile {path}: a tolerance has ulp {ulp!r}; a number above 0 and below 2^24 is required")
    if not isinstance(dtypes, list) or not all(isinstance(d, str) and d in BY_NAME for d in dtypes):
        raise ProfileError(
            f"profile {path}: a tolerance has dtypes {dtypes!r}; a list of names such as float32 is required"
        )
    op, reason = (_text(path, "tolerance", name, entry[name]) for name in ("op", "reason"))
    return Tolerance(op, float(ulp), reason, expires, tuple(BY_NAME[d].name for d in dtypes))


def _expiry(
    path: Path, what: str, entry: Mapping[str, Any], keys: Sequence[str], optional: Sequence[str] = ()
) -> datetime.date:
    """Returns when an entry expires that has all these keys, and no others but the optional ones."""
    missing = [k for k in keys if not entry.get(k)]
    if missing:
        needed = f"{', '.join(keys[:-1])} and {keys[-1]}"
        raise ProfileError(f"profile {path}: a {what} lacks {', '.join(missing)}; it needs {needed}")
    known = (*keys, *optional)
    unknown = set(entry) - set(known)
    if unknown:
        raise ProfileError(f"profile {path}: a {what} has {', '.join(sorted(unknown))}; known are {', '.join(known)}")
    expires = entry["expires"]
    if not isinstance(expires, datetime.date) or isinstance(expires, datetime.datetime):
        raise ProfileError(f"profile {path}: a {what} expires {expires!r}; a date such as 2027-03-01 is required")
    return expires
