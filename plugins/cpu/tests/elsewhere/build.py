"""Compiles the CPU's kernels for other systems, and repeats recorded calls there where this machine can.

``python build.py SYSTEM... [--run CALLS]`` needs an environment with meson, ninja and ziglang, which has compilers,
headers and C libraries of all of them. Warnings are errors. The result is calls.c with all kernels, without Python.
With --run Windows' program is run under Wine, with OpenBLAS as it comes for Windows.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

CPU = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class System:
    """A system to compile for: zig's name of it, and meson's names of the system and the processor."""

    zig: str
    system: str
    processor: str
    isas: tuple[str, ...] = ("scalar",)

    @property
    def program(self) -> str:
        return "calls.exe" if self.system == "windows" else "calls"


X86 = ("scalar", "avx2", "avx512")
SYSTEMS = {
    "windows-x86_64": System("x86_64-windows-gnu", "windows", "x86_64", X86),
    "macos-x86_64": System("x86_64-macos", "darwin", "x86_64", X86),
    "macos-arm64": System("aarch64-macos", "darwin", "aarch64"),
}


def build(name: str) -> Path:
    """Compiles all kernels for a system; returns the program."""
    system, folder = SYSTEMS[name], CPU / "build" / f"elsewhere-{name}"
    folder.parent.mkdir(exist_ok=True)
    machine = folder.with_suffix(".ini")
    machine.write_text(_machine(system))
    tools = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    options = [f"--cross-file={machine}", "-Dmodule=false", "-Dwerror=true", f"-Disas={','.join(system.isas)}"]
    if not (folder / "build.ninja").exists():
        setup = [tools / "meson", "setup", *options, folder, CPU]
        # Asked by meson which linker it is, zig leaves an empty a.o in the current folder.
        subprocess.run(setup, check=True, env=environment, cwd=folder.parent)
    subprocess.run([tools / "ninja", "-C", folder, "--quiet"], check=True, env=environment)
    return folder / "csrc" / system.program


def _machine(system: System) -> str:
    """Returns meson's description of a system. For Windows meson allows undefined functions, and calls of them end the
    program: zig must refuse them."""
    zig = [sys.executable, "-m", "ziglang"]
    return f"""[binaries]
c = {[*zig, "cc", "-target", system.zig]}
ar = {[*zig, "ar"]}
strip = 'true'

[built-in options]
c_link_args = ['-Wl,--no-allow-shlib-undefined']

[properties]
needs_exe_wrapper = true

[host_machine]
system = '{system.system}'
cpu_family = '{system.processor}'
cpu = '{system.processor}'
endian = 'little'
"""


def openblas(folder: Path) -> Path:
    """Downloads OpenBLAS for Windows, in the version that is installed here, and returns its library."""
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--platform=win_amd64",
         "--dest", folder, f"scipy-openblas32=={version('scipy-openblas32')}"],
        check=True,
    )  # fmt: skip
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder)
    return next(folder.rglob("libscipy_openblas*.dll"))


def main() -> None:
    parser = argparse.ArgumentParser(description="Compiles the CPU's kernels for other systems, and tries them.")
    parser.add_argument("system", nargs="*", default=list(SYSTEMS), help=f"default: {', '.join(SYSTEMS)}")
    parser.add_argument("--run", type=Path, metavar="CALLS", help="repeat the calls of this file under Wine")
    given = parser.parse_args()
    if unknown := sorted(set(given.system) - set(SYSTEMS)):
        parser.error(f"unknown system {', '.join(unknown)}; there are {', '.join(SYSTEMS)}")
    if given.run and shutil.which("wine") is None:
        parser.error("--run needs wine, which is not on PATH; `apt-get install wine64` brings it on Debian")
    for name in given.system:
        program = build(name)
        print(f"{name}: all kernels compiled without a warning", flush=True)
        if given.run and SYSTEMS[name].system == "windows":
            blas = openblas(CPU / "build" / "openblas-windows")
            subprocess.run(["wine", program, given.run, blas], check=True, env={**os.environ, "WINEDEBUG": "-all"})


if __name__ == "__main__":
    main()
