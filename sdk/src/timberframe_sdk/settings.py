"""Settings of a session, as the hook `timberframe_devices` gets them, and of the user's machine."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from timberframe_core.config import ACCELERATORS
from timberframe_core.errors import InvalidArgumentError

HARDWARE = "hardware"
"""The option by which a plugin learns which of several kinds of hardware its devices are; `conformance run
--device=TYPE:CHOICE` sets it to CHOICE."""
ANY_ACCELERATOR = "GPU"
"""What TensorFlow's programs call every accelerator in `device_count`."""
CACHE_VARIABLE = "TIMBERFRAME_CACHE"
"""Names the folder where devices keep what they compiled; by default it is in the user's cache directory."""


def cache_folder(name: str) -> Path:
    """Returns the folder of this name in the cache, which need not exist yet; several processes may use it."""
    own = os.environ.get(CACHE_VARIABLE)
    if own:
        return Path(own) / name
    from platformdirs import user_cache_path  # here, since most programs compile nothing

    return user_cache_path("timberframe") / name


def module_of_file(file: str) -> str:
    """Returns the top-level module of Python in whose folder a file is; "" where it is in none, or "" is given."""
    for folder in (Path(p).resolve() for p in sys.path if p):
        if file and Path(file).is_relative_to(folder):
            first = Path(file).relative_to(folder).parts[0]
            return first if first.isidentifier() else ""
    return ""


def private_folder(folder: Path) -> Path:
    """Returns a folder of code that this machine runs; it is made for its user alone where it is not there.

    PermissionError where another user owns it or may write to it.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_private(folder)
    return folder


def check_private(folder: Path) -> None:
    """Raises PermissionError where another user owns a folder or may write to it, as far as the system knows users."""
    if not hasattr(os, "getuid"):
        return
    status = folder.stat()
    if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(
            f"others may write to {folder}: it belongs to user {status.st_uid} and has mode "
            f"{stat.filemode(status.st_mode)}; a folder of user {os.getuid()} alone is required"
        )


def device_count(config: Mapping[str, Any], device_type: str, found: int, accelerator: bool = True) -> int:
    """Returns how many devices of this type to make on a machine that has `found`.

    A count of the type itself may be more, for further queues on the same hardware; one of ANY_ACCELERATOR is the most
    of each type of accelerator.
    """
    counts = config["count"]
    count: int = counts.get(device_type, min(found, counts.get(ANY_ACCELERATOR, found)) if accelerator else found)
    return count


def device_options(
    config: Mapping[str, Any], device_type: str, known: Mapping[str, Sequence[Any] | None]
) -> dict[str, Any]:
    """Returns the options that a session has for devices of this type.

    known: by name the values that an option may have, None for any, which the device checks itself. A value may be
    given as text, such as "true" for True: so command lines give it. InvalidArgumentError where an option or its value
    is not known.
    """
    options = dict(config.get("options", {}).get(device_type, {}))
    if unknown := sorted(map(str, options.keys() - known.keys())):
        raise InvalidArgumentError(
            f"{device_type}: options {', '.join(unknown)} are not known; known are {', '.join(known)}"
        )
    for name, value in options.items():
        values = known[name]
        if values is not None and isinstance(value, str):
            value = options[name] = next((v for v in values if str(v).lower() == value.lower()), value)
        if values is not None and not any(type(value) is type(v) and value == v for v in values):
            raise InvalidArgumentError(
                f"{device_type}: device option {name} is {value!r}; one of {', '.join(map(repr, values))} is required"
            )
    return options


def memory_limit(config: Mapping[str, Any], device_type: str, total: int, accelerator: bool = True) -> int | None:
    """Returns bytes that a device of this type may use out of `total`; None where nothing is set.

    A fraction is taken of `total`. What is set for all accelerators holds where the type itself is not named.
    """
    limits = config["memory_limit"]
    limit = limits.get(device_type, limits.get(ACCELERATORS) if accelerator else None)
    return int(limit * total) if isinstance(limit, float) else limit
