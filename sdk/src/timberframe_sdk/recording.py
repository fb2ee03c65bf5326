"""Keeps the programs that a device runs, with inputs and outputs, in a folder: for scripts that show them elsewhere."""

from __future__ import annotations

import dataclasses
import itertools
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from timberframe_core.dtypes import as_dtype
from timberframe_core.plugin.contracts import Judged
from timberframe_sdk.scripts import Draw, same_array

_DTYPES = "dtypes"
_DRAWS = "draws.txt"


@dataclass(frozen=True)
class RecordedRun:
    """One run of a program. program: as the device wrote it. outputs: none where it failed, or ended the process."""

    program: bytes
    inputs: Mapping[str, np.ndarray]
    outputs: Mapping[str, np.ndarray]


class Recorder:
    """Writes runs into a folder, each before it begins."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def begin(self, program: bytes, inputs: Mapping[str, np.ndarray]) -> int:
        """Writes a program, and what it is given; returns the run's number."""
        with self._lock:
            number = next(self._numbers)
        (self.folder / f"{number:06}.program").write_bytes(program)
        _save(self.folder / f"{number:06}.inputs.npz", inputs)
        return number

    def end(self, number: int, outputs: Mapping[str, np.ndarray]) -> None:
        """Writes what a run gave."""
        _save(self.folder / f"{number:06}.outputs.npz", outputs)


def recorded_runs(folder: Path) -> list[RecordedRun]:
    """Returns the runs in a folder, the first one first."""
    found = []
    for file in sorted(folder.glob("*.program")):
        outputs = file.with_suffix(".outputs.npz")
        given = _load(file.with_suffix(".inputs.npz"))
        found.append(RecordedRun(file.read_bytes(), given, _load(outputs) if outputs.exists() else {}))
    return found


def note_draw(folder: Path, draw: Draw) -> None:
    """Writes numbers that a case draws into a folder."""
    with (folder / _DRAWS).open("a") as file:
        file.write(json.dumps(dataclasses.asdict(draw)) + "\n")


def recorded_draws(folder: Path) -> list[Draw]:
    """Returns the numbers that a case drew, each once."""
    file = folder / _DRAWS
    lines = file.read_text().splitlines() if file.exists() else []
    return [Draw(**json.loads(line)) for line in dict.fromkeys(lines)]


def judged_run(runs: Sequence[RecordedRun], judged: Sequence[Judged]) -> tuple[RecordedRun, Mapping[str, Judged]]:
    """Returns the run that gave what was judged, with what its outputs must be; the last run where none did.

    runs: at least one.
    """
    for run in reversed(runs):
        found = {name: j for name, x in run.outputs.items() for j in judged if same_array(x, j.got)}
        if judged and len(found) == len(run.outputs) > 0:
            return run, found
    return runs[-1], {}


def _save(file: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes arrays; those of dtypes that are not NumPy's own as their bytes."""
    dtypes = json.dumps({name: x.dtype.name for name, x in arrays.items()})
    plain = {name: x if x.dtype.isbuiltin == 1 else x.view(np.uint16) for name, x in arrays.items()}
    np.savez(file, **plain, **{_DTYPES: np.array(dtypes)})  # type: ignore[arg-type]


def _load(file: Path) -> dict[str, np.ndarray]:
    with np.load(file) as saved:
        dtypes = json.loads(str(saved[_DTYPES]))
        return {name: saved[name].view(as_dtype(dtype).numpy) for name, dtype in dtypes.items()}
