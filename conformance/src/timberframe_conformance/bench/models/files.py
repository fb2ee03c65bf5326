"""`conformance bench --models FILE...`: a user's own files beside the programs that they were made for.

Who reads a kind of file says an entry point of the group `timberframe.model_files`, named by the suffix, as "onnx". It
names a function: ``read(path, device, batch, sizes)`` gives a `FileModel`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import numpy as np

from timberframe_conformance.bench.models.catalogue import Model
from timberframe_conformance.bench.models.measure import Row
from timberframe_conformance.bench.models.report import INFERENCE
from timberframe_conformance.bench.models.sides import DEVICE, Side, Sides
from timberframe_conformance.bench.peers import find_peers
from timberframe_conformance.commands import UsageError
from timberframe_core.errors import OpError
from timberframe_core.failures import describe_failure

ENTRY_POINT_GROUP = "timberframe.model_files"


@dataclass(frozen=True)
class FileModel:
    """A model that a file holds, as a graph with feeds.

    peers: by name what opens it in another program: ``f(threads)`` gives a function of no arguments that runs it on the
    same feeds and returns its outputs in the order of the model's fetches.
    """

    model: Model
    peers: Mapping[str, Callable[[int], Callable[[], list[np.ndarray]]]] = field(default_factory=dict)


Reader = Callable[[Path, str, int, Mapping[str, int]], FileModel]


def readers() -> dict[str, EntryPoint]:
    """Returns by suffix the entry points of those who read files."""
    return {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}


def read(path: Path, device: str, batch: int, given: Mapping[str, int]) -> FileModel:
    """Reads a file as a model on a device; UsageError where nobody can, or where it lacks sizes."""
    known = readers()
    entry = known.get(path.suffix.removeprefix("."))
    if entry is None:
        kinds = ", ".join(f".{name}" for name in sorted(known)) or "none: pip install timberframe-onnx"
        raise UsageError(f"model {path}: nobody reads {path.suffix or 'files without a suffix'}; known are {kinds}")
    try:
        reader: Reader = entry.load()
        return reader(path, device, batch, given)
    except (OpError, OSError, ImportError) as e:
        raise UsageError(f"model {path}: {e if isinstance(e, OpError) else describe_failure(e)}") from e


def peers_of(models: Sequence[FileModel], wanted: Sequence[str] | None) -> tuple[list[str], list[str]]:
    """Returns the peers that some of the models can be opened in, and why the others are left out."""
    known = tuple(dict.fromkeys(peer for model in models for peer in model.peers))
    return find_peers(known if wanted is None else wanted, known, "runs no such files", lambda peer: "")


def rows(paths: Sequence[Path], batches: Sequence[int]) -> list[Row]:
    """Returns an empty row for each file and batch."""
    return [Row(path.stem, batch, INFERENCE) for path in paths for batch in batches]


def openers(read_model: FileModel, sides: Sides, peers: Sequence[str]) -> Iterator[tuple[str, Callable[[], Side]]]:
    """Yields by name what opens each side of a model; a side that cannot be opened raises then."""
    yield DEVICE, lambda: _side(DEVICE, sides.device_call(read_model.model))
    for name in peers:
        if name in read_model.peers:
            yield name, partial(_peer, name, read_model.peers[name], sides.threads)


def _peer(name: str, opened: Callable[[int], Callable[[], Any]], threads: int) -> Side:
    return _side(name, opened(threads))


def _side(name: str, call: Callable[..., Any]) -> Side:
    return Side(name, call, call)
