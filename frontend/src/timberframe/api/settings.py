"""Settings of sessions and runs under their public names."""

from __future__ import annotations

from timberframe_core.config import RunMetadata, RunOptions, SessionConfig

__all__ = ["RunMetadata", "RunOptions", "SessionConfig"]
