"""What the build must hold to."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from timberframe_cpu import _native
from timberframe_cpu.native import ISAS

LIBRARIES = sorted(Path(_native.__file__).parent.glob("lib*_*.a"))


@pytest.mark.skipif(not LIBRARIES or shutil.which("nm") is None, reason="needs the build folder and nm")
def test_variants_share_no_symbol():
    """Else the linker takes one variant's function for all, and an AVX-512 instruction reaches an older processor."""
    families: dict[str, list[Path]] = {}
    for library in LIBRARIES:
        families.setdefault(library.stem.rpartition("_")[0], []).append(library)
    shared = []
    for variants in families.values():
        for library in variants if len(variants) > 1 else ():
            isa = library.stem.rpartition("_")[2]
            assert isa in ISAS
            listing = subprocess.run(
                ["nm", "--defined-only", "-g", library], capture_output=True, text=True, check=True
            )
            names = [line.split()[-1] for line in listing.stdout.splitlines() if len(line.split()) == 3]
            shared += [f"{library.name}: {name}" for name in names if not name.endswith(f"_{isa}")]
    assert not shared
