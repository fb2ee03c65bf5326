"""Programs written for TensorFlow: running them, and finding what they use that is not here."""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import timberframe
from timberframe.compat.absent import hint
from timberframe.compat.internal import internal_module
from timberframe_core.errors import InvalidArgumentError

_ROOTS = ("tensorflow.compat.v1", "tensorflow.compat.v2", "tensorflow._api.v1", "tensorflow")

VERSION = "1.15.5"
"""The version of TensorFlow that programs are answered: the last one with the names that are here."""

_SHADOW = Path(__file__).parent / "shadow"
"""A folder with a module `tensorflow`, for the processes that a program starts."""

_VERSIONS = ("__version__", "VERSION")


def public_name(module: str) -> str:
    """The name below `tf` of a module of TensorFlow: of `tensorflow.contrib.rnn` it is `contrib.rnn`."""
    root = next(r for r in _ROOTS if module == r or module.startswith(f"{r}."))
    return module[len(root) + 1 :]


def resolve(name: str) -> Any:
    """What `tf.<name>` is, also in TensorFlow's own modules; AttributeError says which part is missing."""
    value: Any = timberframe
    parts = name.split(".") if name else []
    for i, part in enumerate(parts):
        try:
            value = getattr(value, part)
        except AttributeError:
            inner = internal_module(".".join(parts[: i + 1]), resolve)
            if inner is None:
                raise
            value = inner
    return value


class TensorFlowModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers `import tensorflow`, and its modules, with timberframe's."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """A spec for `tensorflow` and all below it."""
        if fullname.partition(".")[0] != "tensorflow":
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """A module that looks its names up in timberframe."""
        return _Answer(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Raises ModuleNotFoundError where there is nothing of the module's name."""
        name = public_name(module.__name__)
        try:
            resolve(name)
        except AttributeError:
            advice = hint(name)
            raise ModuleNotFoundError(
                f"{module.__name__}: is not in timberframe" + (f"; {advice}" if advice else ""), name=module.__name__
            ) from None


class _Answer(ModuleType):
    """A module of TensorFlow's name whose attributes are timberframe's."""

    def __getattr__(self, name: str) -> Any:
        inside = public_name(self.__name__)
        if not inside and name in _VERSIONS:
            return VERSION
        if name.startswith("__"):
            raise AttributeError(name)
        full = f"{inside}.{name}" if inside else name
        try:
            return resolve(full)
        except AttributeError:
            advice = hint(full)
            raise AttributeError(f"tf.{full}: is not in timberframe" + (f"; {advice}" if advice else "")) from None

    def __dir__(self) -> list[str]:
        return dir(resolve(public_name(self.__name__)))


def answer_imports() -> None:
    """Has timberframe answer this process's imports of tensorflow from now on."""
    sys.meta_path.insert(0, TensorFlowModules())


def run(program: str, arguments: Sequence[str] = (), module: bool = False) -> None:
    """Runs a program as `python program arguments` would, its imports of tensorflow answered by timberframe.

    Those of the Python processes that it starts are, too. module: the program is the name of a module, as after
    `python -m`.
    """
    if "tensorflow" in sys.modules:
        raise InvalidArgumentError("tensorflow is imported already; run the program in a process of its own")
    answer_imports()
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(_SHADOW), *([before] if before else [])])
    sys.argv = [program, *arguments]
    folder = Path.cwd() if module else Path(program).resolve().parent
    sys.path[:0] = [str(folder), str(_SHADOW)]  # which multiprocessing hands to its processes
    if module:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(program, run_name="__main__")


class Missing(NamedTuple):
    """A name that a program uses and that is not here. line: the first one that does; uses: how many do."""

    name: str
    line: int
    uses: int
    hint: str


def check(text: str, path: str = "<program>") -> list[Missing]:
    """What a program uses of TensorFlow that is not here, in the order of the lines.

    Raises InvalidArgumentError where the text is no Python 3.
    """
    try:
        tree = ast.parse(text, path)
    except SyntaxError as e:
        raise InvalidArgumentError(f"{path}:{e.lineno}: {e.msg}; a program of Python 3 is required") from e
    found: dict[str, list[int]] = {}
    for name, line in _used(tree):
        try:
            resolve(name)
        except AttributeError:
            found.setdefault(name, []).append(line)
    missing = [Missing(name, min(lines), len(lines), hint(name)) for name, lines in found.items()]
    return sorted(missing, key=lambda m: (m.line, m.name))


def _used(tree: ast.Module) -> list[tuple[str, int]]:
    """Public names of TensorFlow that a program refers to, with lines; of a chain of attributes the whole."""
    used: list[tuple[str, int]] = []
    known: dict[str, str] = {}  # what a name of the program stands for
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for item in node.names:
                if item.name.partition(".")[0] == "tensorflow":
                    known[item.asname or "tensorflow"] = public_name(item.name) if item.asname else ""
                    used.append((public_name(item.name), node.lineno))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "tensorflow":
            inside = public_name(node.module or "")
            for item in node.names:
                full = f"{inside}.{item.name}".strip(".")
                known[item.asname or item.name] = full
                used.append((full, node.lineno))
    inner: set[int] = set()
    for node in ast.walk(tree):  # outer attributes come before those inside them
        if isinstance(node, ast.Attribute) and id(node) not in inner:
            parts, value = [node.attr], node.value
            while isinstance(value, ast.Attribute):
                inner.add(id(value))
                parts.append(value.attr)
                value = value.value
            if isinstance(value, ast.Name) and value.id in known:
                used.append((_of_module(known[value.id], parts[::-1]), node.lineno))
    return [(name, line) for name, line in used if name]


def _of_module(start: str, parts: Sequence[str]) -> str:
    """The part of a chain of attributes that modules and classes define: not those of objects that a program makes."""
    name = start
    for part in parts:
        full = f"{name}.{part}" if name else part
        try:
            value = resolve(full)
        except AttributeError:
            return full
        name = full
        if not isinstance(value, ModuleType | type):
            break
    return name
