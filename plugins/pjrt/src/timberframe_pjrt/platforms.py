"""Finds a PJRT device: one of a platform that JAX has or a package registers, or of a plugin in a library."""

from __future__ import annotations

import importlib
import threading
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from timberframe_core.errors import InvalidArgumentError, NotFoundError, UnavailableError
from timberframe_core.failures import describe_failure
from timberframe_pjrt.settings import TYPE, Settings
from timberframe_sdk import module_of_file

_registered: dict[str, str] = {}
"""The platform under which this process has registered each library."""
_lock = threading.Lock()


@dataclass(frozen=True)
class Platform:
    """A platform of PJRT. devices: all that it has here. version: in its own words. library: "" for none."""

    name: str
    devices: tuple[Any, ...]
    version: str
    library: str = ""


def import_jax() -> None:
    """Imports jax; UnavailableError says how to install it."""
    try:
        importlib.import_module("jax")
    except Exception as e:
        raise UnavailableError(
            f"{TYPE}: jax cannot be imported: {describe_failure(e)}; JAX is required, which the package of a PJRT "
            "plugin asks for, or `pip install jax`"
        ) from e


def find_platform(settings: Settings) -> Platform:
    """Returns the platform that the options name.

    NotFoundError lists those that there are; UnavailableError: its plugin cannot be loaded, or finds no hardware.
    """
    name = settings.hardware.lower()
    if settings.library:
        _register(name, settings)
    import jax

    try:
        devices = tuple(jax.local_devices(backend=name))
    except Exception as e:  # each plugin has its own way to say that there is no hardware
        raise _absent(name, settings, e) from e
    if settings.device_index >= len(devices):
        raise InvalidArgumentError(
            f"{TYPE}: device option device_index is {settings.device_index}; {name} has {len(devices)} device(s) here"
        )
    version = " ".join(str(devices[0].client.platform_version).split())
    return Platform(name, devices, version, settings.library and str(Path(settings.library).resolve()))


def modules_of(platform: Platform) -> list[str]:
    """Returns the modules of Python that devices of a platform compute with: JAX's, and those of plugins."""
    plugins = [entry.module for entry in entry_points(group="jax_plugins")]
    return ["jax", "jaxlib", *plugins, *filter(None, [module_of_file(platform.library)])]


def _register(name: str, settings: Settings) -> None:
    """Registers the plugin in a library, once in a process."""
    path = Path(settings.library).resolve()
    if not path.is_file():
        raise NotFoundError(f"{TYPE}: library {path} does not exist; the path of a PJRT plugin's library is required")
    bridge = importlib.import_module("jax._src.xla_bridge")  # where JAX's own documentation for plugins has it
    with _lock:
        if _registered.get(str(path)) == name:
            return
        if bridge.backends_are_initialized():
            raise UnavailableError(
                f"{TYPE}: library {path} comes too late: this process uses JAX already; a plugin's library must be "
                "the first that a process asks JAX for"
            )
        try:
            bridge.register_plugin(name, library_path=str(path), options=dict(settings.plugin_options) or None)
        except Exception as e:  # what the library or its plugin raises
            raise UnavailableError(
                f"{TYPE}: library {path} cannot be used: {_words(e)}; a library with GetPjrtApi is required, for a "
                "version of PJRT that the installed jaxlib has"
            ) from e
        _registered[str(path)] = name


def _absent(name: str, settings: Settings, error: Exception) -> NotFoundError | UnavailableError:
    """Returns what it means that JAX has no devices of a platform."""
    bridge = importlib.import_module("jax._src.xla_bridge")
    known = sorted(set(bridge._backend_factories))
    if settings.library or name in known:
        return UnavailableError(f"{TYPE}: platform '{name}' cannot be used: {_words(error)}")
    return NotFoundError(
        f"{TYPE}: no platform '{name}'; JAX knows {', '.join(known)}; the name of one, the package of a plugin that "
        "registers it (entry point jax_plugins), or the option library is required"
    )


def _words(e: Exception) -> str:
    text = " ".join(str(e).split())
    return f"{type(e).__name__}: {text or 'without a message'}"
