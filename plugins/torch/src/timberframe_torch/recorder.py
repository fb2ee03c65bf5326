"""Keeps what a device has torch compute, in a folder: for scripts that show it elsewhere."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from timberframe_sdk import as_dtype
from timberframe_torch import lazy as torch
from timberframe_torch.arrays import Layout


@dataclass(frozen=True)
class RecordedTensor:
    """An input or output of a launch. layout: of its elements, None for in order."""

    array: np.ndarray
    layout: Layout | None = None


@dataclass(frozen=True)
class RecordedLaunch:
    """A node that torch computed. lines: calls of its dispatcher, with x0, ... for inputs and y0, ... for outputs.

    outputs: empty where it raised an error, or ended the process, at its last line. shapes: of the outputs, with their
    dtypes.
    """

    op: str
    inputs: Sequence[RecordedTensor]
    shapes: Sequence[tuple[str, tuple[int, ...]]]
    lines: Sequence[str]
    outputs: Sequence[RecordedTensor]


class Recorder:
    """Writes launches into a folder, and each of their calls before it is made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def begin(self, op: str, inputs: Sequence[RecordedTensor], shapes: Sequence[tuple[str, tuple[int, ...]]]) -> Path:
        """Writes what a launch gets; returns the file for its calls."""
        with self._lock:
            number = next(self._numbers)
        stem = self.folder / f"{number:06}"
        layouts = [None if x.layout is None else [x.layout.strides, x.layout.offset, x.layout.span] for x in inputs]
        dtypes = [x.array.dtype.name for x in inputs]
        _save(stem.with_suffix(".inputs.npz"), [x.array for x in inputs])
        head = {"op": op, "dtypes": dtypes, "layouts": layouts, "outputs": shapes}
        stem.with_suffix(".json").write_text(json.dumps(head))
        return stem.with_suffix(".calls")

    def end(self, calls: Path, outputs: Sequence[np.ndarray]) -> None:
        """Writes what a launch gave."""
        _save(calls.with_suffix(".outputs.npz"), outputs)


def recorded_launches(folder: Path) -> list[RecordedLaunch]:
    """Returns the launches in a folder, the first one first."""
    found = []
    for file in sorted(folder.glob("*.json")):
        head = json.loads(file.read_text())
        inputs = [
            RecordedTensor(x, None if layout is None else Layout(tuple(layout[0]), *layout[1:]))
            for x, layout in zip(_load(file.with_suffix(".inputs.npz"), head["dtypes"]), head["layouts"], strict=True)
        ]
        shapes = [(dtype, tuple(shape)) for dtype, shape in head["outputs"]]
        calls, saved = file.with_suffix(".calls"), file.with_suffix(".outputs.npz")
        outputs = _load(saved, [dtype for dtype, _ in shapes]) if saved.exists() else []
        lines = calls.read_text().splitlines() if calls.exists() else []
        found.append(RecordedLaunch(head["op"], inputs, shapes, lines, [RecordedTensor(x) for x in outputs]))
    return found


def _save(file: Path, arrays: Sequence[np.ndarray]) -> None:
    """Writes arrays; those of dtypes that are not NumPy's own as their bytes."""
    plain = {f"a{i}": x if x.dtype.isbuiltin == 1 else x.view(np.uint16) for i, x in enumerate(arrays)}
    np.savez(file, **plain)  # type: ignore[arg-type]


def _load(file: Path, dtypes: Sequence[str]) -> list[np.ndarray]:
    with np.load(file) as saved:
        return [saved[f"a{i}"].view(as_dtype(name).numpy) for i, name in enumerate(dtypes)]


class Writer:
    """Writes calls of the dispatcher as lines of Python, each before it is made, so that the last one may end all."""

    def __init__(self, file: Path, named: Mapping[str, Any]) -> None:
        self._file = file
        self._names = {id(x): name for name, x in named.items()}
        self._kept: list[Any] = list(named.values())
        self._numbers = itertools.count()
        self._call = ""

    def begin(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Writes a call that is about to be made."""
        shown = [self._text(x) for x in args] + [f"{name}={self._text(x)}" for name, x in kwargs.items()]
        self._call = f"torch.ops.{func}({', '.join(shown)})"
        with self._file.open("a") as file:
            file.write(self._call + "\n")

    def end(self, result: Any) -> None:
        """Puts names for its results before the call that was written last."""
        results = list(result) if isinstance(result, list | tuple) else [result]
        if all(id(x) in self._names for x in results):
            return
        targets = ", ".join(self._named(x) for x in results)
        comma = "," if isinstance(result, list | tuple) and len(results) == 1 else ""
        text = self._file.read_text().removesuffix(self._call + "\n")
        self._file.write_text(f"{text}{targets}{comma} = {self._call}\n")

    def _named(self, x: Any) -> str:
        if not isinstance(x, torch.Tensor):
            return "_"
        if id(x) not in self._names:
            self._kept.append(x)  # whose id no other tensor may get
            self._names[id(x)] = f"t{next(self._numbers)}"
        return self._names[id(x)]

    def _text(self, x: Any) -> str:
        if isinstance(x, torch.Tensor):
            return self._names.get(id(x)) or f"torch.tensor({x.tolist()!r}, dtype={x.dtype})"
        if isinstance(x, list | tuple):
            return f"[{', '.join(map(self._text, x))}]"
        if isinstance(x, torch.device):
            return "DEVICE" if x.type != "cpu" else repr(str(x))
        return _number(x) if isinstance(x, float) else repr(x) if isinstance(x, str) else str(x)


def _number(x: float) -> str:
    return repr(x) if x - x == 0 else f'float("{x}")'
