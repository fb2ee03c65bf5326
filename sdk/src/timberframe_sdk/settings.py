"""A session's settings as the hook `timberframe_devices` is told them, read for one device type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from timberframe.config import ACCELERATORS


def memory_limit(config: Mapping[str, Any], device_type: str, total: int, accelerator: bool = True) -> int | None:
    """Bytes that a device of this type may use out of `total`; None where nothing is set.

    A fraction is taken of `total`. What is set for all accelerators holds where the type itself is not named.
    """
    limits = config["memory_limit"]
    limit = limits.get(device_type, limits.get(ACCELERATORS) if accelerator else None)
    return int(limit * total) if isinstance(limit, float) else limit


def memory_growth(config: Mapping[str, Any], device_type: str, accelerator: bool = True) -> bool | None:
    """Whether a device of this type takes memory as needed; None where nothing is set."""
    growth = config["memory_growth"]
    found: bool | None = growth.get(device_type, growth.get(ACCELERATORS) if accelerator else None)
    return found
