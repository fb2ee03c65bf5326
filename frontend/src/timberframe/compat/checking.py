"""Finds what programs use of TensorFlow that is not here, without running them."""

from __future__ import annotations

import ast
import json
import tokenize
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from timberframe.compat.absent import hint
from timberframe.compat.programs import is_module, public_name, resolve
from timberframe_core.errors import InvalidArgumentError, MissingFileError

_IMPORTERS = ("import_module", "locate", "__import__")
"""Functions that import a module by its name: those of importlib, pydoc and Python itself."""

_CELLS_OF_PYTHON = ("capture", "prun", "time", "timeit")
"""IPython's commands for a whole cell that run it as Python."""


class Missing(NamedTuple):
    """A name that a program uses and that is not here. line: the first one that does; uses: how many do."""

    name: str
    line: int
    uses: int
    hint: str


class Source(NamedTuple):
    """The text of a program, and where a line of it is: `12`, in a notebook `cell 3, line 2`."""

    text: str
    place: Callable[[int], str]


def check(text: str, path: str = "<program>") -> list[Missing]:
    """Returns what a program uses of TensorFlow that is not here, in the order of the lines.

    Raises InvalidArgumentError where the text is no Python 3.
    """
    try:
        tree = ast.parse(text, path)
    except (SyntaxError, ValueError) as e:
        line, message = getattr(e, "lineno", 1), getattr(e, "msg", str(e))
        raise InvalidArgumentError(f"{path}:{line}: {message}; a program of Python 3 is required") from e
    found: dict[str, list[int]] = {}
    for name, line in _Uses(tree).found:
        found.setdefault(name, []).append(line)
    missing = [Missing(name, min(lines), len(lines), hint(name)) for name, lines in found.items()]
    return sorted(missing, key=lambda m: (m.line, m.name))


def check_files(paths: Sequence[str]) -> list[str]:
    """Returns a line for each name that is missing in programs, notebooks and folders of these.

    A file that is no Python 3 has a line of its own, which says so. Raises MissingFileError for a path that is not
    there.
    """
    lines = []
    for path in paths:
        for file in _files(path):
            try:
                source = _read(file)
                for name, line, uses, advice in check(source.text, str(file)):
                    more = f", {uses} times" if uses > 1 else ""
                    said = f"tf.{name} is missing{more}" + (f"; {advice}" if advice else "")
                    lines.append(f"{file}:{source.place(line)}: {said}")
            except InvalidArgumentError as e:
                lines.append(str(e))
    return lines


def _files(path: str) -> list[Path]:
    """Returns the programs and notebooks of a folder, without those of hidden folders; a file as it is."""
    given = Path(path)
    if not given.exists():
        raise MissingFileError(f"{path}: does not exist; a program, a notebook or a folder of these is required")
    if not given.is_dir():
        return [given]
    found = [f for f in given.rglob("*") if f.suffix in (".py", ".ipynb") and f.is_file()]
    return sorted(f for f in found if not any(part.startswith(".") for part in f.relative_to(given).parts))


def _read(file: Path) -> Source:
    """Returns the program of a file, in the encoding that it declares; of a notebook that of its cells."""
    try:
        with tokenize.open(file) as opened:
            text = opened.read()
    except (SyntaxError, UnicodeDecodeError) as e:
        raise InvalidArgumentError(f"{file}:1: {e}; a program of Python 3 is required") from e
    return _notebook(file, text) if file.suffix == ".ipynb" else Source(text, str)


def _notebook(file: Path, text: str) -> Source:
    """Returns the cells of a notebook that have Python, as one program."""
    try:
        content = json.loads(text)
        sheets = content.get("worksheets", [content])  # notebooks before version 4 have their cells in these
        cells = [c for sheet in sheets for c in sheet["cells"] if c["cell_type"] == "code"]
        texts = ["".join(c.get("source", c.get("input", ""))) for c in cells]
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise InvalidArgumentError(f"{file}:1: {type(e).__name__}: {e}; a notebook's JSON is required") from e
    lines: list[str] = []
    places: list[tuple[int, int]] = []
    for number, cell in enumerate(texts, 1):
        python = list(_without_commands(cell))
        places += [(number, i) for i in range(1, len(python) + 1)]
        lines += python

    def place(line: int) -> str:
        cell, inside = places[line - 1] if line <= len(places) else (len(texts), 1)
        return f"cell {cell}, line {inside}"

    return Source("\n".join(lines), place)


def _without_commands(cell: str) -> Iterator[str]:
    """Yields the lines of a cell, with `pass` in place of IPython's commands and nothing of
    cells in other languages.
    """
    lines = cell.splitlines()
    first = next((line for line in lines if line.strip()), "")
    if first.startswith("%%") and first[2:].split(" ")[0] not in _CELLS_OF_PYTHON:
        return
    for line in lines:
        code = line.lstrip()
        yield line[: len(line) - len(code)] + "pass" if code.startswith(("%", "!", "?")) else line


class _Uses:
    """Names of TensorFlow that a program uses and that are not here.

    `known` has what names of the program stand for: modules and classes below `tf` that it imports or assigns.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.found: list[tuple[str, int]] = []
        self._known: dict[str, str] = {}
        nodes = list(ast.walk(tree))
        for node in nodes:
            if isinstance(node, ast.Import):
                self._import(node)
            elif isinstance(node, ast.ImportFrom) and _of_tensorflow(node.module):
                self._import_from(node)
        self._follow_assignments([n for n in nodes if isinstance(n, ast.Assign)])
        inner: set[int] = set()
        for node in nodes:  # outer attributes come before those inside them
            if isinstance(node, ast.Attribute) and id(node) not in inner:
                self._attribute(node, inner)
            elif isinstance(node, ast.Call):
                self._call(node)

    def _note(self, name: str, line: int) -> None:
        self.found.append((name, line))

    def _import(self, node: ast.Import) -> None:
        for item in node.names:
            if _of_tensorflow(item.name):
                name = public_name(item.name)
                self._known[item.asname or "tensorflow"] = name if item.asname else ""
                self._module(name, node.lineno)

    def _module(self, name: str, line: int) -> None:
        """Notes a module that is imported unless there is one of this name."""
        try:
            if not is_module(resolve(name)):
                self._note(name, line)
        except AttributeError:
            self._note(name, line)

    def _import_from(self, node: ast.ImportFrom) -> None:
        inside = public_name(node.module or "")
        for item in node.names:
            if item.name == "*":
                self._module(inside, node.lineno)
                continue
            full = f"{inside}.{item.name}".strip(".")
            self._known[item.asname or item.name] = full
            if not _exists(full):
                self._note(full, node.lineno)

    def _follow_assignments(self, assignments: Sequence[ast.Assign]) -> None:
        """Takes in names that stand for modules, as `slim = tf.contrib.slim` makes them."""
        for node in assignments:
            chain = self._chain(node.value)
            if chain is None or not isinstance(node.targets[0], ast.Name) or node.targets[0].id in self._known:
                continue
            if _exists(chain) and is_module(resolve(chain)):
                self._known[node.targets[0].id] = chain

    def _chain(self, node: ast.expr, inner: set[int] | None = None) -> str | None:
        """Returns the name below `tf` that attributes of a name of the program stand for; None for all else."""
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
            if inner is not None:
                inner.add(id(node))
        if not isinstance(node, ast.Name) or node.id not in self._known:
            return None
        return ".".join(filter(None, [self._known[node.id], *parts[::-1]]))

    def _attribute(self, node: ast.Attribute, inner: set[int]) -> None:
        chain = self._chain(node, inner)
        missing = None if chain is None else _first_missing(chain)
        if missing is not None:
            self._note(missing, node.lineno)

    def _call(self, node: ast.Call) -> None:
        """Notes names in texts: `getattr(tf.nn, "relu")`, `importlib.import_module("tensorflow.contrib.rnn")`."""
        texts = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called == "getattr" and len(node.args) == 2 and texts:
            chain = self._chain(node.args[0])
            missing = None if chain is None else _first_missing(f"{chain}.{texts[0]}".lstrip("."))
            if missing is not None:
                self._note(missing, node.lineno)
        elif called in _IMPORTERS and texts and _of_tensorflow(texts[0]):
            missing = _first_missing(public_name(texts[0]))
            if missing is not None:
                self._note(missing, node.lineno)


def _of_tensorflow(module: str | None) -> bool:
    return (module or "").partition(".")[0] == "tensorflow"


def _exists(name: str) -> bool:
    try:
        resolve(name)
    except AttributeError:
        return False
    return True


def _first_missing(name: str) -> str | None:
    """Returns the first part of a chain of names that is missing from a module or class; None where all are there.

    What belongs to objects that a program makes is not looked at.
    """
    full = ""
    for part in filter(None, name.split(".")):
        full = f"{full}.{part}" if full else part
        try:
            value = resolve(full)
        except AttributeError:
            return full
        if not isinstance(value, ModuleType | type):
            break
    return None
