"""What a session says about the provider that it wants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx

from timberframe_core.errors import InvalidArgumentError
from timberframe_onnx.exporting.export import DEFAULT_OPSET
from timberframe_onnx.exporting.writer import OLDEST_OPSET
from timberframe_sdk import HARDWARE, device_options

TYPE = "ORT"
DEFAULT_PROVIDER = "CPUExecutionProvider"
_OWN: Mapping[str, Any] = {
    HARDWARE: None,
    "library": None,
    "opset": None,
    "weights": ("inputs", "initializers"),
    "optimization": ("all", "none"),
    "fallback": ("refused", "allowed"),
    "device_index": None,
}


@dataclass(frozen=True)
class Settings:
    """The options of a session for devices of this type.

    hardware: the provider's name, or that of its package. library: the path of a provider's library, "" where it is
    built in or of a package. opset: of ONNX, in which clusters are written. weights: whether what nodes take besides
    their first input is fed to a session or part of its model. optimization: what ONNX Runtime may rewrite. fallback:
    whether its own CPU provider may run what this one does not take. device_index: which of the provider's devices.
    provider_options: all others; they are the provider's own. threads: of each session.
    """

    hardware: str = DEFAULT_PROVIDER
    library: str = ""
    opset: int = DEFAULT_OPSET
    weights: str = "inputs"
    optimization: str = "all"
    fallback: str = "refused"
    device_index: int = 0
    provider_options: Mapping[str, str] = field(default_factory=dict)
    threads: int = 1


def settings_of(config: Mapping[str, Any]) -> Settings:
    """Returns what a session's options say; InvalidArgumentError where a value of ours is not known."""
    given = dict(config.get("options", {}).get(TYPE, {}))
    others = {name: str(given.pop(name)) for name in list(given) if name not in _OWN}
    own = device_options({"options": {TYPE: given}}, TYPE, _OWN)
    newest = onnx.defs.onnx_opset_version()
    numbers = {
        "opset": (OLDEST_OPSET, newest, DEFAULT_OPSET),
        "device_index": (0, 1 << 16, 0),
    }
    own |= {name: _number(name, own.get(name, default), low, high) for name, (low, high, default) in numbers.items()}
    return Settings(**own, provider_options=others, threads=config.get("threads") or 1)


def _number(name: str, value: Any, low: int, high: int) -> int:
    """Returns a whole number that an option gives, also as text."""
    text = str(value)
    if not text.isdecimal() or not low <= int(text) <= high:
        raise InvalidArgumentError(
            f"{TYPE}: device option {name} is {value!r}; a whole number from {low} to {high} is required"
        )
    return int(text)
