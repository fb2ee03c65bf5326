"""The devices that mutants of strangers are planted into: NPU, and what `timberframe-sdk new` writes."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from timberframe_conformance.options import Options
from timberframe_conformance.target import NoSuchDeviceError, Target, open_target
from timberframe_core.plugin import loader
from timberframe_sdk.tools.new_package import TEMPLATES

_opened: dict[str, tuple[int, Target]] = {}
"""Hosts that this process has opened, and into which no driver's bug was planted since, each with the generation of
plugins whose sessions use that very device."""


@dataclass(frozen=True)
class Host:
    """A device of a package that is loaded for the purpose. type: in lower case. load: gives its module `device`."""

    type: str
    load: Callable[[], ModuleType]

    def part(self, name: str) -> Any:
        """Returns a module of its package, such as `driver`."""
        return importlib.import_module(f"{self.load().__package__}.{name}")

    def open(self) -> Target:
        """Returns the device, made now if need be; NoSuchDeviceError where its hardware or driver is absent."""
        generation, target = _opened.get(self.type, (-1, None))
        if target is None or generation != loader.registry.generation:
            try:
                if target is None:
                    loader.registry.add(self.type, self.load())
                target = open_target(Options(self.type))
            except ImportError as e:
                raise NoSuchDeviceError(f"device {self.type}: {e}") from e
            _opened[self.type] = loader.registry.generation, target
        return target

    def close(self) -> None:
        """Makes the next `open` make another device."""
        if _opened.pop(self.type, None) is not None:
            loader.registry.remove(self.type)


def _npu() -> ModuleType:
    return importlib.import_module("timberframe_conformance.mutants.strangers.npu.device")


def _template(kind: str) -> Callable[[], ModuleType]:
    def load() -> ModuleType:
        source = str(TEMPLATES / kind / "src")
        if source not in sys.path:
            sys.path.append(source)
        return importlib.import_module(f"timberframe_acme{kind}.device")

    return load


HOSTS = {
    "npu": Host("npu", _npu),
    **{kind: Host(f"acme{kind}", _template(kind)) for kind in ("python", "compiler", "opencl")},
}
"""By the names that mutants use."""
