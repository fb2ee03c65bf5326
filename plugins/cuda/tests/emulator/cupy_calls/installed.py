"""The CuPy that is installed, compared with the table of its declarations. It needs no GPU."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re
from typing import Any

from cupy_calls import Row, nearest, table


def differences() -> tuple[list[str], int]:
    """Compares all names but those of libraries that are missing; the differences, and how many names were compared."""
    import cupy
    from cupy.cuda import nccl

    found: list[str] = []
    compared = 0
    for name, row in table()[nearest(cupy.__version__)].items():
        if name == "cupy.__version__" or (name.startswith("cupy.cuda.nccl.") and not nccl.available):
            continue
        with contextlib.suppress(ImportError):  # of a library that is loaded at first use
            found += _difference(row)
            compared += 1
    return found, compared


def _difference(row: Row) -> list[str]:
    if row.declared == "attribute":  # of objects, which need a GPU
        return []
    try:
        value = _found(row.name)
    except AttributeError:
        return [f"{row.name} is missing"]
    if row.declared.startswith("="):
        return [] if str(value) == row.declared[2:] else [f"{row.name} is {value}, in the table {row.declared[2:]}"]
    if row.signature is None or row.name.endswith("__"):
        return []
    declared = [name for name in row.signature.parameters if name not in ("args", "kwargs")]
    given = _parameters(value)
    return [] if given in (None, declared) else [f"{row.name} takes {given}, in the table {declared}"]


def _found(name: str) -> Any:
    """Returns the object that CuPy has under a name."""
    path, *parts = name.split(".")
    value: Any = importlib.import_module(path)
    for part in parts:
        path += "." + part
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(path)
        value = getattr(value, part)
    return value


def _parameters(function: Any) -> list[str] | None:
    """Returns names of a function's parameters, from its signature or from the declaration that
    Cython keeps as its text.
    """
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        declared = re.match(r"[\w.]+\((.*?)\)", (function.__doc__ or "").strip())
        if declared is None:
            return None
        names = [part.split("=")[0].split(":")[0].split()[-1] for part in declared[1].split(",") if part.strip()]
    return [name for name in names if name not in ("self", "args", "kwargs")]
