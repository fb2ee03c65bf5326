"""A copy of the C sources in which faults are put, and what is built of it. The checkout itself is never changed."""

from __future__ import annotations

import filecmp
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from faults import Fault, apply_fault

ROOT = Path(__file__).resolve().parents[3]
CPU, ACCELERATOR = Path("plugins/cpu"), Path("plugins/accelerator/src/timberframe_accelerator")
SDK = Path("sdk/src/timberframe_sdk")
CSRC, HEADERS, SDK_HEADERS = CPU / "csrc", ACCELERATOR / "include", SDK / "include"
_COPIED = (
    CPU / "meson.build",
    CPU / "meson.options",
    CSRC,
    CPU / "src",
    SDK / "elementwise" / "sources.py",
    SDK_HEADERS,
    HEADERS,
)
_ENTRY = re.compile(r'\{((?:"\w+"\s*)+),\s*(\w+)\}')  # a name of one or more literals, and the function


def digest(path: Path) -> str:
    """Returns the hash of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def revision(path: Path | str) -> str:
    """Returns the hash of what the checked-out commit holds at a path; its own for no path."""
    command = ["git", "rev-parse", f"HEAD:{path}" if path else "HEAD"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def table_entries(text: str) -> list[str]:
    """Returns the kernels in the tables of a preprocessed source: their functions, which are named as they are."""
    found = ((re.sub(r'["\s]', "", name), function) for name, function in _ENTRY.findall(text))
    return [function for name, function in found if name == function]


class Workshop:
    """folder: where the copy and its builds lie. isa: the instruction set that kernels are compiled for."""

    def __init__(self, folder: Path, isa: str = "scalar") -> None:
        self.folder = folder
        self.isa = isa
        self.tree = folder / "tree"
        self._build = folder / f"build-{isa}"
        self.stage = folder / f"stage-{isa}"
        self.plain = folder / f"stage-{isa}-plain"
        self._copy_sources()

    def _copy_sources(self) -> None:
        wanted = set()
        for part in _COPIED:
            files = [ROOT / part] if (ROOT / part).is_file() else sorted((ROOT / part).rglob("*"))
            for file in files:
                if file.is_dir() or file.suffix in (".pyc", ".so"):
                    continue
                target = self.tree / file.relative_to(ROOT)
                wanted.add(target)
                if not target.exists() or not filecmp.cmp(file, target, shallow=False):
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(file, target)
        for old in set(self.tree.rglob("*")) - wanted:
            if old.is_file():
                old.unlink()

    def sources(self, headers: bool) -> list[Path]:
        """Returns the files that get faults, relative to the checkout: what the CPU's kernels are compiled of, or the
        accelerators' headers."""
        folders = [HEADERS] if headers else [CSRC, SDK_HEADERS]
        files = (file for folder in folders for file in (self.tree / folder).rglob("*"))
        return sorted(f.relative_to(self.tree) for f in files if f.suffix in (".c", ".h", ".inc"))

    def read(self, path: Path) -> bytes:
        """Returns a source as it was when the copy was made."""
        return (self.tree / path).read_bytes()

    @contextmanager
    def fault_in(self, path: Path, fault: Fault) -> Iterator[None]:
        """The copy has this fault in the block."""
        source = self.read(path)
        try:
            (self.tree / path).write_bytes(apply_fault(source, fault))
            yield
        finally:
            (self.tree / path).write_bytes(source)

    # The CPU's native module

    @property
    def module(self) -> Path:
        """The native module as it was built last."""
        return next((self._build / "csrc").glob("_native*.so"))

    def configure(self) -> None:
        """Makes the folder that `build` compiles in."""
        compiler = {**os.environ, "CC": "ccache gcc" if shutil.which("ccache") else os.environ.get("CC", "cc")}
        isas = ",".join(dict.fromkeys(("scalar", self.isa)))
        meson = [sys.executable, "-m", "mesonbuild.mesonmain"]
        command = [*meson, "setup", f"-Disas={isas}", "-Db_lundef=false", str(self._build), str(self.tree / CPU)]
        done = subprocess.run(command, check=False, env=compiler, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"meson cannot configure the copy of the sources:\n{done.stdout[-4000:]}")

    def compilations(self) -> list[dict[str, str]]:
        """Returns the commands that compile C: command, directory, file and output, the files from the directory on."""
        entries = json.loads((self._build / "compile_commands.json").read_text())
        return [entry for entry in entries if entry["file"].endswith(".c")]

    def build(self, changed: bool = False) -> str | None:
        """Compiles what changed; returns the compiler's message if it fails. changed: a fault is in; no cache keeps
        it."""
        environment = {**os.environ, "CCACHE_READONLY": "1"} if changed else None
        if not (self._build / "build.ninja").exists():
            self.configure()
        done = subprocess.run(
            ["ninja", "-C", str(self._build)], check=False, capture_output=True, text=True, env=environment, timeout=900
        )
        return None if done.returncode == 0 else done.stdout[-4000:]

    def make_stages(self) -> None:
        """Folders for the front of sys.path: the CPU's package as in the checkout, with the module built here.

        That in `stage` is always the one built last; that in `plain` has no fault.
        """
        for stage in (self.stage, self.plain):
            self._make_stage(stage)
        module = self.plain / "timberframe_cpu" / self.module.name
        module.unlink()
        shutil.copy(self.module, module)

    def _make_stage(self, stage: Path) -> None:
        shutil.rmtree(stage, ignore_errors=True)
        package = stage / "timberframe_cpu"
        ignored = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(ROOT / "plugins/cpu/src/timberframe_cpu", package, ignore=ignored)
        for file in (self.module, *(self._build / "csrc").glob("libscipy_openblas*")):
            (package / file.name).symlink_to(file.resolve())

    # Which kernels a source holds

    def kernels(self) -> dict[str, list[str]]:
        """Returns the names of the kernels in the tables of each source, and for each header of
        the sources that include it.
        """
        by_object: dict[str, list[str]] = {}
        for entry in self.compilations():
            command = shlex.split(entry["command"])
            compiler = [a for a in command if not a.startswith("-")][: 1 + command[0].endswith("ccache")]
            kept = [a for a in command if a.startswith(("-I", "-D", "-m", "-std"))]
            command = [*compiler, *kept, "-E", "-P", entry["file"]]
            text = subprocess.run(command, check=True, capture_output=True, text=True, cwd=entry["directory"]).stdout
            by_object[entry["output"]] = table_entries(text)
        served = self._served(by_object)
        found: dict[str, set[str]] = defaultdict(set)
        deps = subprocess.run(
            ["ninja", "-C", str(self._build), "-t", "deps"], check=True, capture_output=True, text=True
        )
        names: set[str] = set()
        for line in deps.stdout.splitlines():
            if not line.startswith(" "):
                names = served.get(line.split(":")[0], set())
            elif line.strip():
                file = (self._build / line.strip()).resolve()
                if file.is_relative_to(self.tree.resolve()):
                    found[str(file.relative_to(self.tree.resolve()))].update(names)
        return {file: sorted(names) for file, names in found.items()}

    def _served(self, by_object: dict[str, list[str]]) -> dict[str, set[str]]:
        """Returns the kernels of each object: those in its own tables, and those of objects that call its functions."""
        defined: dict[str, set[str]] = {}
        wanted: dict[str, set[str]] = {}
        for name in by_object:
            command = ["nm", "--extern-only", str(self._build / name)]
            lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
            symbols = [line.split()[-2:] for line in lines]
            defined[name] = {symbol for kind, symbol in symbols if kind != "U"}
            wanted[name] = {symbol for kind, symbol in symbols if kind == "U"}
        served = {name: set(kernels) for name, kernels in by_object.items()}
        for _ in range(4):  # calls of calls
            for name in by_object:
                served[name] |= {k for other in by_object if wanted[other] & defined[name] for k in served[other]}
        return served
