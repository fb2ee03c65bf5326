"""The CuPy that is installed is as the table of its declarations says; where none is, there is nothing to compare."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

EMULATOR = str(Path(__file__).with_name("emulator"))


def found(name: str) -> Any:
    """What CuPy has under a name."""
    value: Any = importlib.import_module("cupy")
    path = "cupy"
    for part in name.split(".")[1:]:
        path += "." + part
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(path)
        value = getattr(value, part)
    return value


def parameters(function: Any) -> list[str] | None:
    """Names of a function's parameters, from its signature or from the declaration that Cython keeps as its text."""
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        declared = re.match(r"[\w.]+\((.*?)\)", (function.__doc__ or "").strip())
        if declared is None:
            return None
        names = [part.split("=")[0].split(":")[0].split()[-1] for part in declared[1].split(",") if part.strip()]
    return [name for name in names if name not in ("self", "args", "kwargs")]


def test_cupy_is_as_the_table_says(monkeypatch: pytest.MonkeyPatch) -> None:
    if find_spec("cupy") is None:
        pytest.skip("CuPy is not installed")
    import cupy
    from cupy.cuda import nccl

    monkeypatch.syspath_prepend(EMULATOR)
    from cupy_calls import nearest, table

    wrong, compared = [], 0
    for name, row in table()[nearest(cupy.__version__)].items():
        if row.declared == "attribute" or name == "cupy.__version__":
            continue
        if name.startswith("cupy.cuda.nccl.") and not nccl.available:
            continue
        try:
            value = found(name)
        except AttributeError:
            wrong.append(f"{name} is missing")
            continue
        except ImportError:  # of a library that is loaded at first use and is not there
            continue
        compared += 1
        if row.declared.startswith("="):
            if str(value) != row.declared[2:]:
                wrong.append(f"{name} is {value}, in the table {row.declared[2:]}")
        elif row.signature is not None and not name.endswith("__"):
            declared = [n for n in row.signature.parameters if n not in ("args", "kwargs")]
            if (given := parameters(value)) is not None and given != declared:
                wrong.append(f"{name} takes {given}, in the table {declared}")
    assert not wrong
    assert compared > 50


def test_a_unique_id_of_nccl_is_what_the_plugin_makes_of_its_bytes() -> None:
    if find_spec("cupy") is None:
        pytest.skip("CuPy is not installed")
    from cupy.cuda import nccl

    if not nccl.available:
        pytest.skip("NCCL is not installed")
    from timberframe_cuda.collectives import as_bytes, as_unique_id

    made = nccl.get_unique_id()  # needs no GPU
    assert len(as_bytes(made)) == 128
    assert as_unique_id(as_bytes(made)) == made
