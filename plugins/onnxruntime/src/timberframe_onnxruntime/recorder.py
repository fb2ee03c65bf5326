"""Keeps the models that a device runs, with inputs and outputs, in a folder: for scripts that show them elsewhere."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx


@dataclass(frozen=True)
class RecordedRun:
    """One run of a model. outputs: empty where it raised an error, or ended the process."""

    proto: onnx.ModelProto
    inputs: Mapping[str, np.ndarray]
    outputs: Mapping[str, np.ndarray]


class Recorder:
    """Writes runs into a folder, each before it begins."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def begin(self, proto: onnx.ModelProto, inputs: Mapping[str, np.ndarray]) -> int:
        """Writes a model, and what it is fed: nothing where no session can be made of it; returns the run's number."""
        with self._lock:
            number = next(self._numbers)
        (self.folder / f"{number:06}.onnx").write_bytes(proto.SerializeToString())
        np.savez(self.folder / f"{number:06}.inputs.npz", **dict(inputs))  # type: ignore[arg-type]
        return number

    def end(self, number: int, outputs: Mapping[str, np.ndarray]) -> None:
        """Writes what a run gave."""
        np.savez(self.folder / f"{number:06}.outputs.npz", **dict(outputs))  # type: ignore[arg-type]


def recorded_runs(folder: Path) -> list[RecordedRun]:
    """Returns the runs in a folder, the first one first."""
    found = []
    for file in sorted(folder.glob("*.onnx")):
        outputs = file.with_suffix(".outputs.npz")
        found.append(
            RecordedRun(
                onnx.load_model_from_string(file.read_bytes()),
                _arrays(file.with_suffix(".inputs.npz")),
                _arrays(outputs) if outputs.exists() else {},
            )
        )
    return found


def _arrays(file: Path) -> dict[str, np.ndarray]:
    with np.load(file) as saved:
        return {name: saved[name] for name in saved.files}
