"""What the subcommands of `conformance` share: how they read their options, and how they refuse a wrong call."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from timberframe_conformance.commit import commit_number

if TYPE_CHECKING:
    from timberframe_conformance.options import Options
    from timberframe_conformance.target import Target


class UsageError(Exception):
    """A wrong call of a command."""


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def split_names(text: str) -> tuple[str, ...]:
    """The names in a list with commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def select(text: str, known: Iterable[str], noun: str) -> tuple[str, ...]:
    """The names in a list with commas, each of which must be known; UsageError names the others."""
    chosen, known = split_names(text), tuple(known)
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise UsageError(f"{noun} {', '.join(unknown)} is not known; {noun}s are {', '.join(known)}")
    return chosen


def parse_seed(text: str) -> int:
    """The seed that an option gives: a number, or 'commit' for one that follows from the checked-out commit."""
    if text == "commit":
        return commit_number() % (1 << 31)
    if not text.isdecimal():
        raise UsageError(f"seed {text!r} is no number; a number of at least 0, or 'commit', is required")
    return int(text)


def open_device(options: Options) -> Target:
    """The device under test; UsageError where it is absent or its profile cannot be read."""
    # Imported late: the help needs no device.
    from timberframe_conformance.profile import ProfileError
    from timberframe_conformance.target import NoSuchDeviceError, open_target

    try:
        return open_target(options)
    except (NoSuchDeviceError, ProfileError) as e:
        raise UsageError(str(e)) from e


def cache_folder(name: str) -> Path:
    """Where a subcommand keeps its findings by default: a folder of the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "timberframe" / name
