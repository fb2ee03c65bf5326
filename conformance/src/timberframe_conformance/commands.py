"""What the subcommands of `conformance` share: how they read their options, and how they refuse a wrong call."""

from __future__ import annotations

import argparse
import math
import os
import random
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from timberframe_conformance.commit import commit_number

if TYPE_CHECKING:
    from timberframe_conformance.options import Options
    from timberframe_conformance.target import Target


SEEDS = 1 << 31
"""How many seeds are drawn from."""


class UsageError(Exception):
    """A wrong call of a command."""


def cores() -> int:
    """Returns how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def worker_processes(given: int | None, url: str) -> int:
    """Returns how many processes judge a device: as many as given, else one a core.

    url: of the target that has the device. Several processes may share its variables and memory there: one is the
    default.
    """
    if given is not None:
        return given
    return 1 if url else cores()


def split_names(text: str) -> tuple[str, ...]:
    """Returns the names in a list with commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def select(text: str, known: Iterable[str], noun: str) -> tuple[str, ...]:
    """Returns the names in a list with commas, each of which must be known; UsageError names the others."""
    chosen, known = split_names(text), tuple(known)
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise UsageError(f"{noun} {', '.join(unknown)} is not known; {noun}s are {', '.join(known)}")
    return chosen


def parse_seed(text: str) -> int:
    """Returns the seed that an option gives: a number, or 'commit' for one that follows from the checked-out commit."""
    if text == "commit":
        return current_commit("--seed commit") % SEEDS
    if not text.isdecimal():
        raise UsageError(f"seed {text!r} is no number; a number of at least 0, or 'commit', is required")
    return int(text)


def parse_share(text: str) -> tuple[int, int]:
    """K/N as numbers; which share "commit" is follows from the hash of the commit that is checked out."""
    part, _, of = text.partition("/")
    count = int(of) if of.isdecimal() else 0
    if count and part == "commit":
        return current_commit("--share commit/N") % count, count
    if not part.isdecimal() or int(part) >= count:
        raise UsageError(f"--share {text} is no share; K/N with 0 <= K < N, or commit/N, is required")
    return int(part), count


def random_seed() -> int:
    """Returns another seed each time."""
    return random.SystemRandom().randrange(SEEDS)


def current_commit(option: str) -> int:
    """Returns the number of the checked-out commit; UsageError, which names the option, where there is none."""
    number = commit_number()
    if not number:
        raise UsageError(f"{option}: the current folder is in no git checkout with a commit; a number is required")
    return number


def whole(least: int) -> Callable[[str], int]:
    """Returns what argparse calls for a whole number of at least this; its error names the option."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise argparse.ArgumentTypeError(f"{text!r} is given; a whole number of at least {least} is required")
        return value

    return read


def refuse_ignored(given: argparse.Namespace, names: Iterable[str], context: str) -> None:
    """UsageError where options are given that a call does not read.

    names: of the options, as in ``given``; those that are left out are None, False or empty there. context: which call
    it is, as in "without --models".
    """
    ignored = [
        f"--{n.replace('_', '-')}"
        for n in names
        if getattr(given, n) not in (None, "") and getattr(given, n) is not False
    ]
    if ignored:
        raise UsageError(f"{', '.join(ignored)} {context}: no effect; only options that have one are allowed")


def require_folders(*files: Path | None) -> None:
    """UsageError where a file that is to be written at the end of a call has no folder; None is no file."""
    for path in files:
        if path is not None and not path.resolve().parent.is_dir():
            raise UsageError(f"report {path}: its folder does not exist; an existing one is required")


def duration(text: str) -> float:
    """Returns what argparse calls for seconds; its error names the option."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is given; a finite number above 0 is required")
    return value


def writable(option: str, folder: Path) -> Path:
    """Returns the folder, made if need be; UsageError where files cannot be written into it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as e:
        raise UsageError(f"{option} {folder}: {e.strerror or e}; a folder that can be written is required") from e


def shortened(text: str, length: int) -> str:
    """Returns the text, cut after a word with "..." if it is longer."""
    return text if len(text) <= length else text[: length - 3].rpartition(" ")[0] + "..."


def add_device(
    parser: argparse.ArgumentParser, default: str | None = None, also: str = "", judges: bool = True
) -> None:
    """Adds the options that name a device, and the hardware that it is to be; `names.py` has the rule.

    default: the name where none is given; None where one must be. also: said of it in the help. judges: whether the
    command's verdicts depend on what a profile declares of the device.
    """
    parser.add_argument(
        "--device",
        required=default is None,
        default=default,
        metavar="NAME",
        help=f"acme, acme:1, acme:CHOICE of hardware, or the URL of a target{also}",
    )
    parser.add_argument("--library", metavar="FILE", help="the option `library` of the device: the vendor's")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="an option of the device; may be repeated"
    )
    parser.set_defaults(device_profile="")
    if judges:
        parser.add_argument(
            "--profile", dest="device_profile", metavar="FILE", help="what the vendor declares, and waivers (TOML)"
        )


def device_options(given: argparse.Namespace, device: str = "") -> Options:
    """Returns the options of a run on the device that a command line names, with what `add_device` has of it.

    device: the name where the command line has none.
    """
    from timberframe_conformance.options import Options  # late: the help needs none

    settings = _settings(given)
    if settings and not given.device:
        names = ", ".join(name for name, _ in settings)
        raise UsageError(f"option {names} of a device without --device; the name of the device is required")
    return Options(given.device or device, profile=given.device_profile, settings=settings)


def _settings(given: argparse.Namespace) -> tuple[tuple[str, str], ...]:
    """Returns the device's options of a command line; UsageError names one without a value, or given twice."""
    pairs = [("library", os.path.abspath(given.library))] if given.library else []
    for text in given.option:
        name, sign, value = text.partition("=")
        if not name or not sign:
            raise UsageError(f"--option {text}: NAME=VALUE is required")
        pairs.append((name, value))
    names = [name for name, _ in pairs]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise UsageError(f"--option {', '.join(twice)} is given twice; one value for each name is required")
    return tuple(pairs)


def open_device(options: Options) -> Target:
    """Returns the device under test; UsageError where it is absent or its profile cannot be read."""
    # Imported late: the help needs no device.
    from timberframe_conformance.profile import ProfileError
    from timberframe_conformance.target import NoSuchDeviceError, open_target
    from timberframe_core.errors import OpError

    try:
        if options.mutant:
            from timberframe_conformance.mutants.activate import open_planted  # which declares all mutants

            return open_planted(options)
        return open_target(options)
    except (NoSuchDeviceError, ProfileError, OpError) as e:
        raise UsageError(str(e)) from e


def cache_folder(name: str) -> Path:
    """Returns where a subcommand keeps its findings by default: a folder of the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "timberframe" / name
