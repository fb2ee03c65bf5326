"""Makes calls.toml from CuPy's sources, for what the plugin uses: its versions in a clone of CuPy's repository.

python plugins/cuda/tests/emulator/cupy_calls/sources.py <clone of CuPy> v13.6.0 v14.2.0 main
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from cupy_calls import TABLE
from cupy_calls.plugin import names

API, LIBRARIES = "cupy_backends/cuda/api", "cupy_backends/cuda/libs"
FILES = {
    "cupy.cuda.runtime": [f"{API}/runtime.pyx", f"{API}/runtime.pxd", f"{API}/_runtime_enum.pyx"],
    "cupy.cuda.driver": [f"{API}/driver.pyx"],
    "cupy.cuda.nvrtc": [f"{LIBRARIES}/nvrtc.pyx"],
    "cupy.cuda.cublas": [f"{LIBRARIES}/cublas.pyx", f"{LIBRARIES}/cublas.pxd"],
    "cupy.cuda.nvtx": [f"{LIBRARIES}/nvtx.pyx"],
    "cupy.cuda.nccl": [f"{LIBRARIES}/nccl.pyx", f"{LIBRARIES}/nccl.pxd", "cupy/cuda/nccl.py"],
    "cupy.cuda": [
        f"cupy/cuda/{name}"
        for name in (
            "stream.pyx", "graph.pyx", "graph.pxd", "device.pyx", "device.pxd", "function.pyx",
            "memory.pyx", "memory.pxd", "pinned_memory.pyx", "__init__.py",
        )
    ],
    "cupy": ["cupy/_version.py", "cupy/__init__.py"],
}  # fmt: skip
"""Where the names of each module are declared."""
TYPES = {
    "bint": "bool", "bytes": "bytes", "str": "str", "unicode": "str", "tuple": "tuple", "list": "list", "dict": "dict",
    **dict.fromkeys(("intptr_t", "size_t", "ptrdiff_t", "int", "unsigned int", "long long", "uintmax_t"), "int"),
}  # fmt: skip
RESULTS = {
    "cupy.cuda.nccl.get_unique_id": {r"tuple\(": "tuple", r"\.internal\[:": "bytes"},
    "cupy.cuda.Module.get_function": {r"Function\(self": "Function"},
    "cupy.cuda.Stream.end_capture": {r"Graph\.": "Graph", r"graph\.": "Graph"},
}
"""Types of results that are declared nowhere, by what stands in the function."""
Reader = Callable[[list[str], int, str], str]
"""Reads a declaration of a name from a line, if it is one."""


class Repository:
    """Files of CuPy at a version."""

    def __init__(self, folder: str, version: str) -> None:
        self.folder, self.version = folder, version
        self._files: dict[str, list[str]] = {}

    def lines(self, path: str) -> list[str]:
        if path not in self._files:
            command = ["git", "-C", self.folder, "show", f"{self.version}:{path}"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            self._files[path] = done.stdout.splitlines()
        return self._files[path]

    def find(self, name: str) -> tuple[str, str]:
        """File and line of a name of CuPy, and its declaration; LookupError where there is none."""
        module = max((m for m in FILES if name.startswith(m + ".")), key=len)
        *owner, last = name[len(module) + 1 :].split(".")
        if owner and owner[0] == "memory":  # cupy.cuda.memory, whose names cupy.cuda has, too
            owner = owner[1:]
        for kind in (_definition, _attribute):
            for path in FILES[module]:
                for found in self._in_file(path, owner, last, kind):
                    return found
        raise LookupError(f"{name} is not in {FILES[module]} of {self.version}")

    def _in_file(self, path: str, owner: list[str], last: str, kind: Reader) -> Iterator[tuple[str, str]]:
        lines = self.lines(path)
        start, end = 0, len(lines)
        if owner:
            begun = [i for i, s in enumerate(lines) if re.match(rf"(cdef )?class {owner[0]}\b", s)]
            if not begun:
                return
            start = begun[0] + 1
            end = next((i for i in range(start, len(lines)) if re.match(r"\S", lines[i])), len(lines))
        for i in range(start, end):
            found = kind(lines, i, last)
            if found and (owner or not lines[i].startswith((" ", "\t")) or "def " not in lines[i]):
                if found.startswith("("):
                    found += self._result(last, lines, i)
                yield f"{path}:{i + 1}", found
                return
        if owner:
            base = re.match(r"(?:cdef )?class \w+\((\w+)\)", lines[start - 1])
            if base and base[1] != "object":
                yield from self._in_file(path, [base[1]], last, kind)

    def _result(self, last: str, lines: list[str], i: int) -> str:
        for key, rules in RESULTS.items():
            if key.rpartition(".")[2] == last:
                end = next((j for j in range(i + 1, len(lines)) if re.match(r"\s*(cp)?def ", lines[j])), len(lines))
                body = "\n".join(lines[i + 1 : end])
                kind = next(kind for rule, kind in rules.items() if re.search(rule, body))
                return f" -> {kind}"
        return ""


def _definition(lines: list[str], i: int, name: str) -> str:
    """Returns the function, class or constant that line i defines under a name; empty if it does not."""
    line, quoted = lines[i], re.escape(name)
    if found := re.match(rf"\s*(?:cp)?def (?:inline )?(?:([\w ]+?) )?{quoted}\(", line):
        text = "".join(lines[i : i + 12])[found.end() :]
        return f"({_parameters(text)})" + (f" -> {_type(found[1])}" if found[1] else "")
    if re.match(rf"(?:cdef )?class {quoted}\b", line):
        return "class"
    found = re.match(rf"(?:    )?{quoted} ?= ([^#]*)", line)
    return f"= {found[1].strip()}" if found else ""


def _attribute(lines: list[str], i: int, name: str) -> str:
    """``attribute`` where line i declares or sets one of a name; empty if it does not."""
    found = re.match(rf"\s+(?:self\.|(?:readonly |public |cdef )*[\w ]*\b){re.escape(name)}\b", lines[i])
    return "attribute" if found and "(" not in lines[i].split(name)[0] else ""


def _parameters(text: str) -> str:
    """Parameters up to the closing parenthesis, in Python's notation."""
    depth, inside = 0, ""
    for letter in text:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth < 0:
            break
        inside += letter
    made = []
    for parameter in re.split(r",\s*", re.sub(r"\s+", " ", inside).strip()):
        declared, equals, _ = parameter.partition("=")
        if ":" in declared:
            declared, _, kind = (part.strip() for part in declared.partition(":"))
        else:
            kind, _, declared = declared.strip().rpartition(" ")
        if declared and declared != "self":
            made.append(
                declared + (f": {_type(kind)}" if kind and kind != "object" else "") + (" = ..." if equals else "")
            )
    return ", ".join(made)


def _type(kind: str) -> str:
    return TYPES.get(kind.strip(), kind.strip().rpartition(".")[2])


def main(folder: str, *versions: str) -> None:
    wanted = sorted(names())
    lines = ["# Made by sources.py from CuPy's own sources; see there."]
    repositories = {version: Repository(folder, version) for version in versions}
    for name in wanted:
        lines.append(f'\n["{name}"]')
        for version, repository in repositories.items():
            at, declared = repository.find(name)
            lines.append(f'"{version.removeprefix("v")}" = ["{at}", "{declared}"]')
    TABLE.write_text("\n".join(lines) + "\n")
    print(f"{len(wanted)} names at {len(versions)} versions")


if __name__ == "__main__":
    main(*sys.argv[1:])
