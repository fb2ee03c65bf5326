"""Which plugin is being loaded: the process that outlives this one learns so which plugin crashed or hung."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from timberframe_conformance.isolation.journal import Journal, open_entry, read_trace
from timberframe_core.plugin import loader

LIMIT_IN_CASES = 4
"""A plugin may take as many times longer to load than a case may run."""

_EXCLUDED = "TIMBERFRAME_CONFORMANCE_EXCLUDED"


class Culprit(NamedTuple):
    """A plugin that ended the process which loaded it, and how."""

    plugin: str
    reason: str


def watch_loading(folder: Path, process: str, timeout: float) -> None:
    """Makes this process write into the folder which plugin's code runs, and end when one takes too long to load.

    timeout: seconds for one case.
    """
    journal = Journal(folder, loading_journal(process), LIMIT_IN_CASES * timeout)
    loader.registry.watch = lambda plugin: journal.begin(plugin.name) if plugin is not None else journal.end()


def loading_over() -> None:
    """From now on a device that is made has the time limit of the case that makes it."""
    loader.registry.watch = None


def find_culprit(folder: Path, process: str, status: int | None = None) -> Culprit | None:
    """Returns the plugin in whose code a process ended; None where it ran other code. status: its exit status."""
    plugin = open_entry(folder / f"{loading_journal(process)}.journal")
    if plugin is None or " " in plugin:  # a question to a device
        return None
    death = read_trace(folder / f"{loading_journal(process)}.trace")
    if death.verdict == "timeout":
        words = f"did not end within {death.reason} while it was loaded"
    elif death.reason:
        words = f"ended the process while it was loaded: {death.reason}"
    else:
        words = "ended the process while it was loaded" + ("" if status is None else f", with status {status}")
    return Culprit(plugin, words + (f", at {death.innermost}" if death.innermost else ""))


def how_it_ended(folder: Path, process: str) -> str:
    """Returns the fatal error of a process that watched its loading, and where it was; "without a
    message" if there is none.
    """
    death = read_trace(folder / f"{loading_journal(process)}.trace")
    return (death.reason or "without a message") + (f" at {death.location}" if death.frames else "")


def exclude(culprit: Culprit) -> None:
    """Makes processes that are started from now on leave the plugin out."""
    os.environ[_EXCLUDED] = json.dumps({**excluded(), culprit.plugin: culprit.reason})


def excluded() -> Mapping[str, str]:
    """Returns the plugins that this process is to leave out, with the reasons."""
    found: dict[str, str] = json.loads(os.environ.get(_EXCLUDED, "{}"))
    return found


def heed_exclusions() -> None:
    """Leaves out the plugins that ended a process before this one."""
    for name, reason in excluded().items():
        if name not in loader.registry.plugins or not loader.registry.plugins[name].loaded:
            loader.registry.exclude(name, reason)


def loading_journal(process: str) -> str:
    """Returns the name of the journal, and of the trace, of what a process loads."""
    return f"{process}-loading"
