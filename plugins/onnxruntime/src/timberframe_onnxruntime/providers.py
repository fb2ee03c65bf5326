"""Finds an execution provider: one that is built in, one of a package, or one in a library."""

from __future__ import annotations

import importlib
import re
import threading
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import onnxruntime

from timberframe_core.errors import InvalidArgumentError, NotFoundError, UnavailableError

_SUFFIX = "ExecutionProvider"
_PACKAGES = ("{}", "onnxruntime_{}", "onnxruntime_ep_{}", "{}_ep")
"""What modules of providers are called."""
_FUNCTIONS = ("get_library_path", "library_path")
"""What such a module has: a function that gives the path of its library."""
_registered: dict[str, str] = {}
"""The name under which this process has registered each library."""
_lock = threading.Lock()


@dataclass(frozen=True)
class Provider:
    """An execution provider. name: ONNX Runtime's. device: of a provider in a library the device that it runs on.

    vendor, version: what its library says. library: its path, "" for one that is built in. registered: the name that
    the library is registered under.
    """

    name: str
    device: Any = None
    vendor: str = ""
    version: str = ""
    library: str = ""
    registered: str = ""

    @property
    def is_default(self) -> bool:
        """Whether it is the provider that runs what no other takes."""
        return self.name == "CPUExecutionProvider"


def find_provider(hardware: str, library: str = "", device_index: int = 0) -> Provider:
    """Returns the provider that a name means.

    library: the path of the one that has it. Without it the name is that of a built-in provider, with or without the
    ending "ExecutionProvider", or of a package whose module has `get_library_path`. NotFoundError lists what there is;
    UnavailableError: the library cannot be loaded, or finds no device on this machine.
    """
    if not library:
        built_in = _built_in(hardware)
        if built_in is not None:
            return Provider(built_in)
        library = _library_of_package(hardware)
    elif not Path(library).is_file():
        raise NotFoundError(f"ORT: library {library} does not exist; the path of a provider's library is required")
    return _of_library(hardware, library, device_index)


def _built_in(hardware: str) -> str | None:
    wanted = {hardware.lower(), f"{hardware}{_SUFFIX}".lower()}
    return next((p for p in onnxruntime.get_available_providers() if p.lower() in wanted), None)


def _library_of_package(hardware: str) -> str:
    plain = re.sub(r"\W+", "_", hardware.lower().removesuffix(_SUFFIX.lower()))
    tried = [form.format(plain) for form in _PACKAGES]
    for name in tried:
        if find_spec(name) is not None:
            module = importlib.import_module(name)
            functions = [f for f in (getattr(module, n, None) for n in _FUNCTIONS) if callable(f)]
            if functions:
                return str(functions[0]())
    known = ", ".join(onnxruntime.get_available_providers())
    raise NotFoundError(
        f"ORT: no provider '{hardware}'; built in are {known}; of the modules {', '.join(tried)} none has a function "
        f"{' or '.join(_FUNCTIONS)}; the name of a provider, that of its package, or the option library is required"
    )


def _of_library(hardware: str, library: str, device_index: int) -> Provider:
    path = str(Path(library).resolve())
    with _lock:
        name = _registered.get(path)
        if name is None:
            name = re.sub(r"\W+", "_", hardware)  # some providers are called what they are registered as
            name = f"{name}_{len(_registered)}" if name in _registered.values() else name
            try:
                onnxruntime.register_execution_provider_library(name, path)
            except Exception as e:  # ONNX Runtime has an exception for each of its codes
                raise UnavailableError(f"ORT: library {path} cannot be used: {e}") from e
            _registered[path] = name
    found = [d for d in onnxruntime.get_ep_devices() if d.ep_metadata.get("library_path", path) == path]
    found = [d for d in found if d.ep_name != "CPUExecutionProvider"]
    if not found:
        raise UnavailableError(f"ORT: library {path} finds no device on this machine")
    names = list(dict.fromkeys(d.ep_name for d in found))
    wanted = {hardware.lower(), f"{hardware}{_SUFFIX}".lower()}
    named = next((n for n in names if n.lower() in wanted), names[0])
    devices = [d for d in found if d.ep_name == named]
    if device_index >= len(devices):
        raise InvalidArgumentError(
            f"ORT: device option device_index is {device_index}; {named} has {len(devices)} device(s) here"
        )
    device = devices[device_index]
    return Provider(named, device, str(device.ep_vendor), str(device.ep_metadata.get("version", "")), path, name)
