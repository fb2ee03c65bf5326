"""What a session says about the backend that it wants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from timberframe_core.errors import InvalidArgumentError
from timberframe_sdk import HARDWARE, device_options

TYPE = "TORCH"
_KNOWN: Mapping[str, Any] = {
    HARDWARE: None,
    "module": None,
    "device_index": None,
    "views": ("fed", "all", "none"),
    "indices": ("refused", "checked"),
    "matmul_precision": ("highest", "high", "medium"),
    "deterministic": (True, False),
}


@dataclass(frozen=True)
class Settings:
    """The options of a session for devices of this type.

    hardware: the backend's name, as torch.device has it. module: the Python module that registers it, "" for one that
    is built in or that its name says. device_index: which of its devices. views: what kernels get as views whose
    elements do not lie in order from the first byte on: tensors that were `fed` so, `all` inputs, or `none`. indices:
    whether those outside a tensor are for the backend to be `refused`, or `checked` before; "" for the first on the
    CPU, whose kernels raise, and the second elsewhere. matmul_precision, deterministic: global switches of torch.
    """

    hardware: str = "cpu"
    module: str = ""
    device_index: int = 0
    views: str = "fed"
    indices: str = ""
    matmul_precision: str = "highest"
    deterministic: bool = False

    @property
    def checks_indices(self) -> bool:
        """Whether indices are looked at before the backend gets them."""
        return (self.indices or ("refused" if self.hardware == "cpu" else "checked")) == "checked"


def settings_of(config: Mapping[str, Any]) -> Settings:
    """Returns what a session's options say; InvalidArgumentError where an option or its value is not known."""
    given = device_options(config, TYPE, _KNOWN)
    index = str(given.get("device_index", 0))
    if not index.isdecimal():
        raise InvalidArgumentError(
            f"{TYPE}: device option device_index is {given['device_index']!r}; a whole number from 0 is required"
        )
    return Settings(**(given | {"device_index": int(index)}))
