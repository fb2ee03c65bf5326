"""Finding OpenCL drivers that were installed with pip along with a plugin, such as intel-opencl-rt."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from timberframe_sdk import cache_folder, logging
from timberframe_sdk.settings import private_folder

SYSTEM_VENDORS = Path("/etc/OpenCL/vendors")


def find_drivers(prefix: Path = Path(sys.prefix)) -> None:
    """Makes the loader find the drivers of this Python environment besides those of the system.

    The loader looks in one folder of .icd files, which OCL_ICD_VENDORS names; where that is set, it stays. The files
    of a package name a folder of the machine that built it, so the library is looked for in the environment.
    """
    if "OCL_ICD_VENDORS" in os.environ or not sys.platform.startswith("linux"):
        return
    own = list(_libraries(prefix))
    if not own:
        return
    try:
        folder = private_folder(cache_folder("opencl") / "drivers" / _name(prefix))
    except OSError as e:  # the loader runs the libraries that its files name
        logging.warning("OpenCL drivers of %s are not used: %s", prefix, e)
        return
    wanted = {f"{library.name}.icd": str(library) for library in own}
    for icd in sorted(SYSTEM_VENDORS.glob("*.icd")):
        wanted[icd.name] = icd.read_text()
    for stale in folder.glob("*.icd"):
        if stale.name not in wanted:
            stale.unlink(missing_ok=True)
    for name, text in wanted.items():
        _write(folder / name, text)
    os.environ["OCL_ICD_VENDORS"] = str(folder)


def _libraries(prefix: Path) -> Iterator[Path]:
    """Yields the libraries that the environment's .icd files name and that are there."""
    for icd in sorted((prefix / "etc" / "OpenCL" / "vendors").glob("*.icd")):
        named = Path(icd.read_text().strip())
        for library in (named, prefix / "lib" / named.name):
            if library.is_absolute() and library.exists():
                yield library
                break


def _name(prefix: Path) -> str:
    return str(prefix.resolve()).replace(os.sep, "-").strip("-")


def _write(path: Path, text: str) -> None:
    """Writes a file whole or not at all: other processes read it."""
    if path.exists() and path.read_text() == text:
        return
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.write_text(text)
    fresh.replace(path)
