"""The settings by which a session says which PJRT device it wants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from timberframe_core.errors import InvalidArgumentError
from timberframe_sdk import HARDWARE, device_options

TYPE = "PJRT"
_OWN: Mapping[str, Any] = {
    HARDWARE: None,
    "library": None,
    "device_index": None,
    "matmul_precision": ("highest", "high", "default"),
}


@dataclass(frozen=True)
class Settings:
    """The options of a session for devices of this type.

    hardware: the platform's name, as jax.devices has it. library: the path of a PJRT plugin, "" where the platform is
    built into JAX or comes with a package. device_index: which of its devices. matmul_precision: of products and
    convolutions, `jax.lax.Precision`. plugin_options: all others; the plugin in the library gets them.
    """

    hardware: str = "cpu"
    library: str = ""
    device_index: int = 0
    matmul_precision: str = "highest"
    plugin_options: Mapping[str, str] = field(default_factory=dict)


def settings_of(config: Mapping[str, Any]) -> Settings:
    """Returns what a session's options say; InvalidArgumentError where an option or its value is not known."""
    given = dict(config.get("options", {}).get(TYPE, {}))
    others: dict[str, str] = {}
    if given.get("library"):  # without one nobody takes them
        others = {name: str(given.pop(name)) for name in list(given) if name not in _OWN}
    own = device_options({"options": {TYPE: given}}, TYPE, _OWN)
    index = str(own.get("device_index", 0))
    if not index.isdecimal():
        raise InvalidArgumentError(
            f"{TYPE}: device option device_index is {own['device_index']!r}; a whole number from 0 is required"
        )
    return Settings(**(own | {"device_index": int(index)}), plugin_options=others)
