"""What a device is, in plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class DeviceAttributes:
    """What a device is. memory: bytes it may use; dtypes: names that it can hold.

    unsupported_ops: ops that have no kernel on purpose, with the reason, which errors and reports show. variants:
    device options and the values that they take on this machine, such as ``{"isa": ("scalar", "avx2")}``: conformance
    runs the device with each. details: what else reports show, the values in use of these options included.
    slow_compile: `compile` takes long, so that constants are computed on the host. modules: of Python, what the device
    computes with, such as ``("jax", "jaxlib")``: reports have the versions of the packages that they are of.
    """

    memory: int
    vendor: str = ""
    model: str = ""
    driver: str = ""
    dtypes: tuple[str, ...] = ()
    unsupported_ops: Mapping[str, str] = field(default_factory=dict)
    variants: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    slow_compile: bool = False
    modules: Sequence[str] = ()
