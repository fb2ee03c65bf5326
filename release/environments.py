"""Empty environments that see the wheels of dist/ and what was downloaded for them, and no package index."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

WORKSPACE = Path(__file__).resolve().parents[1]
DIST = WORKSPACE / "dist"


class Environment:
    """A virtual environment in a folder, with a wheelhouse beside it; its commands see no package index."""

    def __init__(self, python: str, folder: Path) -> None:
        self.folder = folder
        run([python, "-m", "venv", folder / "env"])
        self.bin = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
        self.wheelhouse = folder / "wheelhouse"

    def download(self, *packages: str) -> None:
        """Gets third-party wheels, from a package index: the one step that needs a network."""
        self.wheelhouse.mkdir(exist_ok=True)
        run(
            [
                self.bin / "pip", "download", "--quiet", "--only-binary=:all:", *packages, "--dest", self.wheelhouse,
                "--find-links", DIST, "-c", WORKSPACE / "constraints.txt",
            ]
        )  # fmt: skip
        for ours in self.wheelhouse.glob("timberframe*"):
            ours.unlink()

    def install(self, *packages: str) -> None:
        """Installs packages, and prints how long it took and how large they are with all that they need."""
        self.download(*packages)
        begin, before = time.monotonic(), self._size()
        self.run("pip", "install", "--quiet", *packages)
        seconds, size = time.monotonic() - begin, (self._size() - before) / 2**20
        print(f"pip install {' '.join(packages)}: {seconds:.0f} s, {size:.0f} MB", flush=True)

    def _size(self) -> int:
        return sum(f.stat().st_size for f in (self.folder / "env").rglob("*") if f.is_file() and not f.is_symlink())

    def run(self, *command: str | Path, compiler: bool = False, status: int = 0) -> str:
        """Runs a command of the environment and returns its output; PATH is the environment's alone but for a compiler.

        status: what it must end with.
        """
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "PYTHON", "TIMBERFRAME_"))}
        settings = {
            **kept, "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}" if compiler else str(self.bin),
            "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": f"{DIST} {self.wheelhouse}", "PIP_CONFIG_FILE": os.devnull,
            "PIP_DISABLE_PIP_VERSION_CHECK": "1", "TIMBERFRAME_CACHE": str(self.folder / "cache"),
        }  # fmt: skip
        return run([self.bin / command[0], *command[1:]], settings, self.folder, status)


def run(
    command: list[str | Path], settings: Mapping[str, str] | None = None, folder: Path | None = None, status: int = 0
) -> str:
    """Runs a command and returns its output, which is shown where it ends with another status."""
    done = subprocess.run(
        [str(c) for c in command], env=settings, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode != status:
        shown = " ".join(map(str, command))
        sys.exit(f"{shown}: ended with status {done.returncode}, {status} is required:\n{done.stdout}")
    return done.stdout
