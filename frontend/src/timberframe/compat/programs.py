"""Runs programs written for TensorFlow: their imports of tensorflow are answered with timberframe."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

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
    """Returns the name below `tf` of a module of TensorFlow: of `tensorflow.contrib.rnn` it is `contrib.rnn`."""
    root = next(r for r in _ROOTS if module == r or module.startswith(f"{r}."))
    return module[len(root) + 1 :]


def resolve(name: str) -> Any:
    """Returns what `tf.<name>` is, also in TensorFlow's own modules; AttributeError says which part is missing."""
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


def is_module(value: Any) -> bool:
    """Returns whether something that a name stands for can be imported as a module."""
    return isinstance(value, ModuleType)


class TensorFlowModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers `import tensorflow`, and its modules, with timberframe's."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Returns a spec for `tensorflow` and all below it."""
        if fullname.partition(".")[0] != "tensorflow":
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Returns a module that looks its names up in timberframe."""
        return _Answer(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Raises ModuleNotFoundError where no module has this name, be it that of a function or class."""
        name = public_name(module.__name__)
        try:
            if is_module(resolve(name)):
                return
        except AttributeError:
            advice = hint(name)
            raise ModuleNotFoundError(
                f"{module.__name__}: is not in timberframe" + (f"; {advice}" if advice else ""), name=module.__name__
            ) from None
        raise ModuleNotFoundError(f"{module.__name__}: is no module", name=module.__name__)


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

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]  # a module's own is an attribute
        """The module's own entries and all names that it answers, for programs that look through it."""
        own: dict[str, Any] = vars(ModuleType)["__dict__"].__get__(self)
        return {**{name: getattr(self, name) for name in dir(self) if not name.startswith("_")}, **own}


def answer_imports() -> None:
    """Makes timberframe answer this process's imports of tensorflow from now on."""
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
