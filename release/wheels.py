"""Builds a release into dist/, wheels and sources: ``python release/wheels.py [--architecture x86_64]... [--pure]``.

Pure packages are built once, each from its source distribution. timberframe-cpu is built for each architecture of
Linux, against glibc GLIBC and for every Python from LIMITED_API on, and refused for macOS and Windows with the reason.
The Python that runs this must have what requirements-release.txt lists, and the machine GCC, for other architectures
Debian's cross compiler.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from cc import gcc

WORKSPACE = Path(__file__).resolve().parents[1]
DIST = WORKSPACE / "dist"
PLUGINS = (
    "plugins/accelerator",
    "plugins/opencl",
    "plugins/cuda",
    "plugins/ray",
    "plugins/onnx",
    "plugins/onnxruntime",
    "plugins/torch",
    "plugins/pjrt",
)
PURE = ("core", "frontend", "sdk", "conformance", *PLUGINS, "serving")
CPU = WORKSPACE / "plugins" / "cpu"
ARCHITECTURES = ("x86_64", "aarch64")
GLIBC = "2.28"
LIMITED_API = "3.11"
REFUSED = {
    "Darwin": "the sources are prepared for macOS, but nobody has run the tests there",
    "Windows": "the sources are prepared for Windows, but nobody has built the module there",
}


class ReleaseError(RuntimeError):
    """A wheel cannot be built here; the message says why, and what is required."""


@contextmanager
def step(what: str) -> Iterator[None]:
    """Says what is done in the block, and how long it took."""
    print(f"{what} ...", flush=True)
    begin = time.monotonic()
    yield
    print(f"{what}: {time.monotonic() - begin:.0f} s", flush=True)


def run(*command: str | Path, **settings: str) -> str:
    """Runs a command with variables set, shows its output where it fails, and returns it.

    Each tenth of what ninja has compiled is printed.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # meson and ninja of this environment
    lines, tenth = [], 0
    with subprocess.Popen(
        [str(c) for c in command],
        env={**os.environ, "PATH": path, **settings},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            done = re.match(r"\s*\[(\d+)/(\d+)\]", line)
            if done is not None and 10 * int(done[1]) // int(done[2]) > tenth:
                tenth = 10 * int(done[1]) // int(done[2])
                print(f"  {done[1]} of {done[2]} files compiled", flush=True)
    if process.returncode:
        raise ReleaseError(f"{' '.join(map(str, command))}: failed with status {process.returncode}:\n{''.join(lines)}")
    return "".join(lines)


def architectures() -> list[str]:
    """This machine's architecture, and those that it has Debian's cross compiler for; says which are left out."""
    lacking = [a for a in ARCHITECTURES if shutil.which(gcc(a)) is None]
    made = [a for a in ARCHITECTURES if a not in lacking]
    for architecture in lacking:
        print(f"no wheel for {architecture}: {gcc(architecture)} is not installed", flush=True)
    return made


def sources_and_pure_wheels() -> None:
    """Builds the source distributions, and of each that has no native code its wheel; sources of C are of HEAD."""
    for folder in PURE:
        with step(f"{folder}: sources, wheel"):
            run(sys.executable, "-m", "build", "--no-isolation", "--outdir", DIST, WORKSPACE / folder)
    with step("plugins/cpu: sources"):
        run(sys.executable, "-m", "build", "--no-isolation", "--sdist", "--outdir", DIST, CPU)


def cpu_wheel(architecture: str) -> Path:
    """Returns the wheel of timberframe-cpu for Linux on an architecture."""
    build = CPU / "build" / f"release-{architecture}"
    options = [f"-Dlimited_api={LIMITED_API}", "-Dc_link_args=-s"]
    machine = build.with_suffix(".ini")
    build.parent.mkdir(exist_ok=True)
    machine.write_text(_machine(architecture))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if architecture == platform.machine():
            options.append(f"--native-file={machine}")
        else:
            options += [f"--cross-file={machine}", f"-Dopenblas={_openblas(architecture)}"]
        run(
            sys.executable, "-m", "pip", "wheel", "--no-deps", "--verbose", "--no-build-isolation",
            "--wheel-dir", folder, f"--config-settings=build-dir={build}",
            *(f"--config-settings=setup-args={o}" for o in options), CPU,
            _PYTHON_HOST_PLATFORM=f"linux-{architecture}",
        )  # fmt: skip
        (made,) = folder.glob("*.whl")
        tags = ("--abi-tag=abi3", f"--platform-tag=manylinux_{GLIBC.replace('.', '_')}_{architecture}")
        name = run(sys.executable, "-m", "wheel", "tags", "--remove", *tags, made).split()[-1]
        check(folder / name, architecture)
        return Path(shutil.move(folder / name, DIST / name))


def check(wheel: Path, architecture: str) -> None:
    """ReleaseError where a wheel needs more of the system than its name says, or lacks the BLAS."""
    found = sorted(Path(name).name for name in zipfile.ZipFile(wheel).namelist() if name.endswith((".so", ".openblas")))
    if found != ["LICENSE.openblas", "_native.abi3.so", "libscipy_openblas.so"]:
        raise ReleaseError(
            f"wheel {wheel.name}: has {', '.join(found)}; one module, and OpenBLAS with its licence, must be"
        )
    shown = run(sys.executable, "-m", "auditwheel", "show", wheel)
    allowed = f"manylinux_{GLIBC.replace('.', '_')}_{architecture}"
    newest = max((_version(tag) for tag in shown.split('"') if tag.startswith("manylinux_")), default=(0, 0))
    if f"_{architecture}" not in shown or newest > _version(allowed):
        raise ReleaseError(f"wheel {wheel.name}: auditwheel does not find {allowed}:\n{shown}")


def _version(tag: str) -> tuple[int, int]:
    _, major, minor, *_ = tag.split("_")
    return int(major), int(minor)


def _machine(architecture: str) -> str:
    """Returns the build file for meson."""
    compiler = [sys.executable, str(WORKSPACE / "release" / "cc.py"), architecture, GLIBC]
    if architecture == platform.machine():
        return f"[binaries]\nc = {compiler}\n"
    return f"""[binaries]
c = {compiler}
ar = '{architecture}-linux-gnu-ar'
strip = '{architecture}-linux-gnu-strip'

[properties]
skip_sanity_check = true
needs_exe_wrapper = true

[host_machine]
system = 'linux'
cpu_family = '{architecture}'
cpu = '{architecture}'
endian = 'little'
"""


def _openblas(architecture: str) -> Path:
    """Returns the files of scipy-openblas32 for another architecture, in the version that is installed here."""
    folder = CPU / "build" / f"openblas-{architecture}"
    shutil.rmtree(folder, ignore_errors=True)
    platforms = (f"--platform=manylinux_2_{minor}_{architecture}" for minor in (17, 27, 28))
    run(
        sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", *platforms,
        "--dest", folder, f"scipy-openblas32=={version('scipy-openblas32')}",
    )  # fmt: skip
    (found,) = folder.glob("scipy_openblas32-*.whl")
    zipfile.ZipFile(found).extractall(folder / "openblas")
    return folder / "openblas"


def main() -> None:
    parser = argparse.ArgumentParser(description="Builds all wheels of a release into dist/.")
    parser.add_argument(
        "--architecture", action="append", choices=ARCHITECTURES, help="default: all that there is a compiler for"
    )
    parser.add_argument("--pure", action="store_true", help="only packages without native code")
    given = parser.parse_args()
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    try:
        sources_and_pure_wheels()
        if platform.system() in REFUSED and not given.pure:
            raise ReleaseError(f"no timberframe-cpu for {platform.system()}: {REFUSED[platform.system()]}")
        for architecture in () if given.pure else given.architecture or architectures():
            with step(f"plugins/cpu: wheel for {architecture}, about 10 minutes on two cores"):
                cpu_wheel(architecture)
    except ReleaseError as e:
        sys.exit(f"release: {e}")
    print("\n".join(sorted(p.name for p in DIST.iterdir())))


if __name__ == "__main__":
    main()
