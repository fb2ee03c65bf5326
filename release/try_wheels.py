"""Tries the wheels of dist/ as users do: ``python release/try_wheels.py [--python python3.12]... [--kind c]...``.

For each Python: an empty environment, no package index, no compiler on PATH; the wheels are installed, the README's
first program gives what the README says, and the CPU reaches level core. Then, with the first Python, for each kind of
package that `timberframe-sdk new` writes: it is written, installed and reaches level core, within LIMIT seconds of
machine time.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

WORKSPACE = Path(__file__).resolve().parents[1]
DIST = WORKSPACE / "dist"
PYTHONS = tuple(f"python3.{minor}" for minor in range(11, 15))
DRIVER = ("intel-opencl-rt", "intel-cmplr-lib-rt")
KINDS = {
    "python": (),
    "c": ("setuptools>=77", "cffi"),
    "opencl": ("pyopencl", *DRIVER),
    "npu": (),
    "compiler": (),
}
"""What each kind needs beside the SDK, to be built or to run."""
BUILD = ("hatchling",)
USERS = ("timberframe", "timberframe-conformance")
LIMIT = 120.0


class Environment:
    """A virtual environment in a folder, with a wheelhouse beside it; its commands see no package index."""

    def __init__(self, python: str, folder: Path) -> None:
        self.folder = folder
        run([python, "-m", "venv", folder / "env"])
        self.bin = folder / "env" / "bin"
        self.wheelhouse = folder / "wheelhouse"

    def download(self, *packages: str) -> None:
        """Gets third-party wheels, from a package index: the one step that needs a network."""
        wanted: list[str | Path] = [
            *packages,
            "--dest",
            self.wheelhouse,
            "--find-links",
            DIST,
            "-c",
            WORKSPACE / "constraints.txt",
        ]
        run([self.bin / "pip", "download", "--quiet", "--only-binary=:all:", *wanted])
        for ours in self.wheelhouse.glob("timberframe*"):
            ours.unlink()

    def run(self, *command: str | Path, compiler: bool = False) -> str:
        """A command of the environment, without an index; PATH is the environment's alone but for a compiler."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "PYTHON", "TIMBERFRAME_"))}
        settings = {
            **kept, "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}" if compiler else str(self.bin),
            "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": f"{DIST} {self.wheelhouse}", "PIP_CONFIG_FILE": os.devnull,
            "PIP_DISABLE_PIP_VERSION_CHECK": "1", "TIMBERFRAME_CACHE": str(self.folder / "cache"),
        }  # fmt: skip
        return run([self.bin / command[0], *command[1:]], settings, self.folder)


def run(command: list[str | Path], settings: Mapping[str, str] | None = None, folder: Path | None = None) -> str:
    """Runs a command and returns its output, which is shown where it fails."""
    done = subprocess.run(
        [str(c) for c in command], env=settings, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: failed with status {done.returncode}:\n{done.stdout}")
    return done.stdout


def first_program() -> tuple[str, str]:
    """The README's first program, and what it prints."""
    found = re.search(
        r"## First program.*?```python\n(.*?)```.*?```\n(.*?)```", (WORKSPACE / "README.md").read_text(), re.S
    )
    assert found is not None, "the README has no first program"
    return found[1], found[2]


def try_installation(environment: Environment) -> None:
    """Installs and uses what users install."""
    environment.download(*USERS)
    environment.run("pip", "install", "--quiet", *USERS)
    found = environment.run(
        "python", "-c", "import shutil; print(*filter(None, map(shutil.which, ('cc', 'gcc', 'clang'))))"
    )
    assert not found.strip(), f"a compiler is on PATH: {found}"
    program, expected = first_program()
    (environment.folder / "first.py").write_text(program)
    printed = environment.run("python", "first.py")
    assert printed == expected, f"the first program prints {printed!r}; the README says {expected!r}"
    print(environment.run("conformance", "run", "--device=cpu", "--require", "core").splitlines()[-1])


def try_kind(environment: Environment, kind: str) -> None:
    """From nothing to a device that reaches level core."""
    name = f"acme{kind}"
    environment.download(*BUILD, *KINDS[kind], "cffi", "pytest")
    before = machine_time()
    if kind == "opencl":
        environment.run("pip", "install", "--quiet", *DRIVER)
    environment.run("timberframe-sdk", "new", name, "--kind", kind)
    environment.run("pip", "install", "--quiet", f"./{name}", compiler=kind == "c")
    command = ("conformance", "run", f"--device={name}", "--profile", f"{name}/profile.toml", "--require", "core")
    verdict = environment.run(*command).splitlines()[-1]
    used = machine_time() - before
    print(f"{kind}: {verdict}; {used:.0f} s of machine time from `timberframe-sdk new` on")
    assert used < LIMIT, f"kind {kind}: {used:.0f} s of machine time; at most {LIMIT:.0f} are allowed"


def machine_time() -> float:
    """Seconds that processors spent on ended child processes."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def works(python: str) -> bool:
    """Whether there is such an interpreter, with venv."""
    found = shutil.which(python)
    return (
        found is not None
        and not subprocess.run([found, "-c", "import ensurepip, venv"], capture_output=True, check=False).returncode
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Tries the wheels of dist/ as users do.")
    parser.add_argument("--python", action="append", help="default: each of " + ", ".join(PYTHONS) + " that is there")
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="default: all that can run here")
    given = parser.parse_args()
    pythons = given.python or [p for p in PYTHONS if works(p)] or [sys.executable]
    kinds = given.kind or [k for k in KINDS if k != "opencl" or platform.machine() == "x86_64"]
    for number, python in enumerate(pythons):
        with tempfile.TemporaryDirectory() as scratch:
            environment = Environment(python, Path(scratch))
            print(f"== {environment.run('python', '--version').strip()}")
            try_installation(environment)
            for kind in kinds if number == 0 else ():
                try_kind(environment, kind)
    print(f"the wheels work, with {', '.join(pythons)}")


if __name__ == "__main__":
    main()
