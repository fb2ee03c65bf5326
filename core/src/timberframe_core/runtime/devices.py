"""The devices of the process, made by plugins; sessions of equal settings share them."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from timberframe_core.config import ACCELERATORS, SessionConfig
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.plugin import loader
from timberframe_core.plugin.contracts import Device


class UnknownDeviceTypeError(InvalidArgumentError):
    """Settings for a type of devices that a session has none of."""


_sets: dict[str, list[Device]] = {}
_lock = threading.Lock()


def plugin_config(config: SessionConfig) -> Mapping[str, Any]:
    """Returns what the hook `timberframe_devices` is given: counts, threads, limits and
    options, each by device type.
    """
    return {
        "count": dict(config.device_count),
        "threads": config.intra_op_parallelism_threads or None,
        "memory_limit": dict(config.memory_limit),
        "deterministic": config.deterministic,
        "compile": config.compile,
        "options": {k: dict(v) for k, v in config.device_options.items()},
    }


def devices_for(config: SessionConfig) -> list[Device]:
    """Returns the devices for these settings, best priority first; InvalidArgumentError where a
    plugin gives a name twice.
    """
    given = plugin_config(config)
    key = json.dumps([given, config.plugins, loader.registry.generation], sort_keys=True, default=str)
    with _lock:
        found = _sets.get(key)
        if found is None:
            plugins = loader.registry.load(config.plugins)
            kernels = loader.registry.kernels_of(plugins)
            made = [d for p in plugins for d in loader.registry.make_devices(p, given, kernels)]
            _check_names(made)
            _check_types(made, {k.device for k in kernels.kernels()}, config)
            found = _sets[key] = sorted(made, key=lambda d: -d.priority)
        return found


def _check_names(devices: Sequence[Device]) -> None:
    names = [d.name for d in devices]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise InvalidArgumentError(f"devices {', '.join(twice)} are given by two plugins; names of devices must differ")


def _check_types(devices: Sequence[Device], known: set[str], config: SessionConfig) -> None:
    """Raises UnknownDeviceTypeError for options of a type that no device of the session has; known: further types."""
    known = {d.type for d in devices} | known
    for setting in ("device_options", "memory_limit"):
        unknown = sorted(set(getattr(config, setting)) - known - {ACCELERATORS})
        if unknown:
            raise UnknownDeviceTypeError(
                f"SessionConfig.{setting} names {', '.join(unknown)}; "
                f"the device types are {', '.join(sorted(known)) or 'none'}"
            )
