"""Writes launches as a program of torch and numpy alone, for the tracker of a backend's vendor."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from timberframe_sdk import Judged
from timberframe_sdk.scripts import (
    COMPARISON,
    DRAWING,
    PACKING,
    UNPACK,
    Draw,
    array_text,
    entries,
    judged_entries,
    quoted,
    same_array,
    without_packing,
)
from timberframe_torch import lazy as torch
from timberframe_torch.backends import AUTOLOAD, Backend
from timberframe_torch.recorder import RecordedLaunch, RecordedTensor
from timberframe_torch.settings import Settings

_IMPORTS = f"""{PACKING}import os
import sys

os.environ.setdefault("{AUTOLOAD}", "0")

import numpy as np
import torch
"""
_TENSOR = '''
def tensor(x, dtype=None, strides=None, offset=0):
    """The array on the device: as a view of a larger tensor where there are strides."""
    x = torch.from_numpy(np.array(x))
    x = x if dtype is None else x.view(dtype)
    if strides is None:
        return x.to(DEVICE)
    span = 1 + sum((d - 1) * s for d, s in zip(x.shape, strides))
    whole = torch.full((offset + span,), 1, dtype=x.dtype)
    whole.as_strided(x.shape, strides, offset).copy_(x)
    return whole.to(DEVICE).as_strided(x.shape, strides, offset)


def array(x):
    x = x.cpu()
    return (x.to(torch.float64) if x.dtype == torch.bfloat16 else x).numpy()

'''
_RUN = """
try:
    with torch.no_grad():
        got = compute()
except Exception as e:
    print(f"{type(e).__name__}: {e}")
    print("wrong: an error is raised")
    sys.exit(1)
"""
_CPU = """if not expected:  # the case does not compare the outputs by themselves: the CPU is the yardstick
    own, DEVICE = DEVICE, torch.device("cpu")
    with torch.no_grad():
        expected = compute()
    DEVICE = own
    limits = {n: 1e-7 + 1e-3 * np.abs(np.asarray(x, np.float64)) for n, x in expected.items() if x.dtype.kind == "f"}
    allowed = limits
"""


def write_script(
    launches: Sequence[RecordedLaunch],
    judged: Sequence[Judged],
    title: str,
    backend: Backend,
    settings: Settings,
    draws: Sequence[Draw] = (),
) -> str:
    """Returns a program that computes what was judged, and ends with status 1 as long as it is wrong.

    It has the last launch that gave what was judged, and those that made its inputs; where none did, the last one. Of
    the CPU itself there is then no yardstick: its status says whether an error is raised.
    """
    last, found = _judged_launch(launches, judged)
    chosen = _with_sources(launches, last)
    text = [
        f'"""{_names(launches, chosen)} on {backend.device}.\n\n{quoted(title)}\n\nSeen with {_versions(backend)}.',
        f'Needs torch and numpy. {_status(bool(found), backend)}\n"""\n',
        _IMPORTS,
        *([f"import {backend.module}\n"] if backend.module else []),
        f"DEVICE = torch.device({str(backend.device)!r})",
        f"torch.set_float32_matmul_precision({settings.matmul_precision!r})",
        *(["torch.use_deterministic_algorithms(True)"] if settings.deterministic else []),
        f"torch.set_num_threads({torch.get_num_threads()})\n",
        UNPACK,
        DRAWING,
        _TENSOR,
        _compute(launches, chosen, last, draws),
        "",
        judged_entries(found),
        _RUN + ("" if found or backend.is_host else _CPU) + COMPARISON,
    ]
    return without_packing("\n".join(text))


def _status(is_judged: bool, backend: Backend) -> str:
    if is_judged:
        return "Status 1: the outputs are wrong, or there are none."
    than = "there are none" if backend.is_host else "they differ from those of torch's CPU, or there are none"
    return f"The case does not compare these outputs by themselves. Status 1: {than}."


def _versions(backend: Backend) -> str:
    return f"torch {torch.__version__}" + (f", {backend.module}" if backend.module else "")


def _judged_launch(launches: Sequence[RecordedLaunch], judged: Sequence[Judged]) -> tuple[int, Mapping[str, Judged]]:
    """Returns the launch that gave what was judged, with what its outputs must be; the last one where none did."""
    for i in range(len(launches) - 1, -1, -1):
        outputs = launches[i].outputs
        found = {f"y{k}": j for k, x in enumerate(outputs) for j in judged if same_array(x.array, j.got)}
        if judged and found:
            return i, found
    return len(launches) - 1, {}


def _source(launches: Sequence[RecordedLaunch], before: int, x: RecordedTensor) -> tuple[int, int] | None:
    """Returns which output of an earlier launch an input is: one that has more than a few elements."""
    if x.layout is not None or x.array.size < 2 or not np.any(x.array):
        return None
    for i in range(before - 1, -1, -1):
        for k, y in enumerate(launches[i].outputs):
            if same_array(x.array, y.array):
                return i, k
    return None


def _with_sources(launches: Sequence[RecordedLaunch], last: int) -> dict[int, list[tuple[int, int] | None]]:
    """Returns the launches that a launch depends on, in order, each with where its inputs come from."""
    found: dict[int, list[tuple[int, int] | None]] = {}
    waiting = [last]
    while waiting:
        i = waiting.pop()
        if i not in found:
            found[i] = [_source(launches, i, x) for x in launches[i].inputs]
            waiting += [s[0] for s in found[i] if s is not None]
    return dict(sorted(found.items()))


def _names(launches: Sequence[RecordedLaunch], chosen: Mapping[int, object]) -> str:
    ops = [m for i in chosen for line in launches[i].lines for m in re.findall(r"torch\.ops\.aten\.(\w+)", line)]
    shown = list(dict.fromkeys(f"aten::{op}" for op in ops if op != "copy_")) or ["aten::copy_"]
    return ", ".join(shown[:8]) + (", ..." if len(shown) > 8 else "")


def _compute(
    launches: Sequence[RecordedLaunch],
    chosen: Mapping[int, Sequence[tuple[int, int] | None]],
    last: int,
    draws: Sequence[Draw],
) -> str:
    """Returns the functions of the launches, and one that calls them."""
    functions, calls = [], []
    for i, sources in chosen.items():
        launch = launches[i]
        name = f"{re.sub(r'(?<!^)(?=[A-Z])', '_', launch.op).lower()}_{i}" if len(chosen) > 1 else "op"
        given = ", ".join(f"x{k}" for k in range(len(launch.inputs)))
        outputs = [
            f"    y{k} = torch.empty({shape}, dtype=torch.{dtype}, device=DEVICE)"
            for k, (dtype, shape) in enumerate(launch.shapes)
        ]
        results = "".join(f"y{k}, " for k in range(len(launch.shapes))).rstrip()
        body = [*outputs, *(f"    {line}" for line in launch.lines), f"    return {results}"]
        functions.append("\n".join([f"def {name}({given}):", *body]))
        arguments = [
            f"r{s[0]}[{s[1]}]" if s is not None else _tensor(x, draws)
            for x, s in zip(launch.inputs, sources, strict=True)
        ]
        calls.append(f"    r{i} = {name}(" + "".join(f"\n        {a}," for a in arguments) + "\n    )")
    shown = {f"y{k}": f"array(r{last}[{k}])" for k in range(len(launches[last].shapes))}
    returned = entries(shown).replace("\n", "\n    ")
    return "\n\n\n".join([*functions, "\n".join(["def compute():", *calls, f"    return {returned}"])]) + "\n"


def _tensor(x: RecordedTensor, draws: Sequence[Draw]) -> str:
    """Returns an expression for an input on the device."""
    array, dtype = x.array, ""
    if array.dtype.isbuiltin != 1:
        array, dtype = array.view(np.int16), f", dtype=torch.{x.array.dtype.name}"
    layout = "" if x.layout is None else f", strides={x.layout.strides}, offset={x.layout.offset}"
    return f"tensor({array_text(array, draws)}{dtype}{layout})"
