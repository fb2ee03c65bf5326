"""What the OpenCL drivers report. It is remembered where all of it are processors, so that their driver is loaded when
one of its devices is first used: loading takes 100 MB and as long as a small program runs.

Accelerators may come and go, so a driver that has one, or has no device at present, is loaded by every process.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from timberframe_accelerator.opencl_drivers import SYSTEM_VENDORS
from timberframe_sdk import UnavailableError, cache_folder

if TYPE_CHECKING:
    import pyopencl as cl
else:
    from timberframe_opencl import lazy as cl

_SETTINGS = ("CL_", "OCL_", "POCL_", "INTEL_", "PYOPENCL_")
"""How the names of environment variables begin that drivers and their loader read."""


@dataclass(frozen=True)
class Report:
    """What a driver reports of a device. memory, local_memory, largest_buffer: bytes; alignment: of sub-buffers."""

    is_cpu: bool
    memory: int
    vendor: str
    model: str
    driver: str
    platform: str
    version: str
    compute_units: int
    group_size: int
    local_memory: int
    largest_buffer: int
    alignment: int
    float_lanes: int
    float64: bool

    @classmethod
    def of(cls, device: cl.Device) -> Report:
        """Asks the driver."""
        return cls(
            bool(device.type & cl.device_type.CPU), device.global_mem_size, device.vendor, device.name,
            device.driver_version, device.platform.name, device.version, device.max_compute_units,
            device.max_work_group_size, device.local_mem_size, device.max_mem_alloc_size,
            max(64, device.mem_base_addr_align // 8), device.native_vector_width_float, bool(device.double_fp_config),
        )  # fmt: skip


class Drivers:
    """All drivers of the process, loaded at the first call of `devices`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._devices: list[cl.Device] | None = None

    def devices(self) -> list[cl.Device]:
        """Returns every device of every platform, accelerators first; UnavailableError where there is no driver."""
        with self._lock:
            if self._devices is None:
                found = [d for p in _platforms() for d in p.get_devices()]
                self._devices = sorted(found, key=lambda d: bool(d.type & cl.device_type.CPU))
            return self._devices

    def reports(self) -> list[Report]:
        """Returns what is reported of each device; of processors alone as an earlier process remembers it."""
        file = _memory()
        if self._devices is None and file is not None and (known := _read(file)):
            return known
        made = [Report.of(device) for device in self.devices()]
        icds = len(list(_vendors().glob("*.icd")))
        of_each = {d.platform.int_ptr for d in self.devices()}
        if file is not None and all(r.is_cpu for r in made) and icds == len(of_each) == len(_platforms()):
            _write(file, made)
        return made

    def device(self, position: int, report: Report) -> cl.Device:
        """Returns the device with this report; UnavailableError where another one has its position by now."""
        found = self.devices()
        present = Report.of(found[position]) if position < len(found) else None
        if present is None or _lasting(present) != _lasting(report):
            if (file := _memory()) is not None:
                file.unlink(missing_ok=True)
            raise UnavailableError(
                f"OpenCL: the driver reports {present and present.model}, where it had reported {report.model}; "
                "start the program again"
            )
        return found[position]


def _platforms() -> list[cl.Platform]:
    try:
        return cl.get_platforms()
    except cl.LogicError as e:
        if e.code != cl.status_code.PLATFORM_NOT_FOUND_KHR:
            raise
        raise UnavailableError(
            "no OpenCL driver was found; install the driver of your device, or intel-opencl-rt and intel-cmplr-lib-rt "
            "to run on the CPU"
        ) from e


def _lasting(report: Report) -> Report:
    """Returns the report without what depends on the memory and the cores that a process is given."""
    return replace(report, memory=0, largest_buffer=0, compute_units=0)


def _vendors() -> Path:
    """Returns the folder whose .icd files the loader reads."""
    return Path(os.environ.get("OCL_ICD_VENDORS", SYSTEM_VENDORS))


def _memory() -> Path | None:
    """Returns the file that keeps what these very drivers report; None where it is not known which ones they are."""
    package = find_spec("pyopencl")
    if package is None or package.origin is None or "OCL_ICD_FILENAMES" in os.environ:
        return None
    try:
        drivers = [_state(Path(package.origin)), *_drivers()]
    except OSError:
        return None
    if len(drivers) == 1:
        return None
    settings = sorted(item for item in os.environ.items() if item[0].startswith(_SETTINGS))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    machine = platform.node(), platform.processor(), cores, os.sysconf("SC_PHYS_PAGES")
    text = json.dumps([list(Report.__annotations__), machine, settings, drivers])
    return cache_folder("opencl") / "devices" / f"{hashlib.sha256(text.encode()).hexdigest()}.json"


def _drivers() -> Iterator[tuple[str, int, int]]:
    """Yields each driver's library, its size and when it was changed; FileNotFoundError where only a name is given."""
    for icd in sorted(_vendors().glob("*.icd")):
        library = Path(icd.read_text().strip())
        if not library.is_absolute():
            raise FileNotFoundError(f"{icd}: {library} is no path")
        yield _state(library)


def _state(file: Path) -> tuple[str, int, int]:
    state = file.stat()
    return str(file), state.st_size, state.st_mtime_ns


def _read(file: Path) -> list[Report]:
    """Empty where there is no such file, or it is damaged."""
    try:
        return [Report(**entry) for entry in json.loads(file.read_text())]
    except (OSError, ValueError, TypeError):
        return []


def _write(file: Path, reports: list[Report]) -> None:
    """Writes the file whole or not at all: other processes read it."""
    content: list[dict[str, Any]] = [asdict(report) for report in reports]
    fresh = file.with_suffix(f".{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(json.dumps(content))
        fresh.replace(file)
    except OSError:
        fresh.unlink(missing_ok=True)


drivers = Drivers()
"""Those of this process."""
