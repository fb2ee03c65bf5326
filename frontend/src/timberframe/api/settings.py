"""Settings of sessions and runs under their public names."""

from __future__ import annotations

from timberframe_core.config import RunMetadata, RunOptions, SessionConfig

__all__ = [
    "RunMetadata", "RunOptions", "SessionConfig", "disable_eager_execution", "disable_resource_variables",
    "disable_v2_behavior", "enable_resource_variables",
]  # fmt: skip


def disable_v2_behavior() -> None:
    """Does nothing: graphs and sessions are what there is."""


def disable_eager_execution() -> None:
    """Does nothing: programs build graphs."""


def enable_resource_variables() -> None:
    """Does nothing: every variable is a resource."""


def disable_resource_variables() -> None:
    """Does nothing: every variable is a resource, whose reads are ordered as those of other variables."""
