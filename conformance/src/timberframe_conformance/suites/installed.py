"""Suites of installed packages: an entry point of the group `timberframe.suites` names each, and who collects it.

Such a suite runs where `--suite` names it, and belongs to no level. Its cases are about ops of the registry, or about
subjects of its own, which read ``<suite>:<name>``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from timberframe_conformance.commands import UsageError
from timberframe_core.failures import describe_failure

if TYPE_CHECKING:
    from timberframe_conformance.suites import Collector

ENTRY_POINT_GROUP = "timberframe.suites"


@cache
def installed_suites() -> Mapping[str, EntryPoint]:
    """Returns the entry points of installed suites by their names."""
    return {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}


def load_suite(name: str) -> Collector:
    """Returns what collects the cases of an installed suite; UsageError where its package cannot be imported."""
    try:
        collector: Collector = installed_suites()[name].load()
    except Exception as e:  # whatever a package raises when it is imported
        raise UsageError(f"suite {name} of {installed_suites()[name].value}: {describe_failure(e)}") from e
    return collector
