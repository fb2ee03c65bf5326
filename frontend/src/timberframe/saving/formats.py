"""Opens checkpoints of every known format."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from timberframe.saving.bundle_writer import Saved, SavedSlices, add_slice, remove_bundle, write_bundle
from timberframe.saving.files import file_errors
from timberframe.saving.reader import CheckpointReader, Entry, MissingCheckpointError
from timberframe.saving.tensor_slices import slice_range
from timberframe.saving.tensorflow_bundle import INDEX, TensorFlowBundle
from timberframe_core import dtypes
from timberframe_core.errors import DataLossError, InvalidArgumentError
from timberframe_core.extras import extra

_SUFFIXES = (INDEX, ".meta")
_ATTEMPTS = 3
_SHOWN = 5


def exists(prefix: str) -> bool:
    """Returns whether there is a checkpoint of this name, in whatever format."""
    return Path(f"{prefix}{INDEX}").is_file() or (prefix.endswith(".safetensors") and Path(prefix).is_file())


def open_checkpoint(prefix: str) -> CheckpointReader:
    """Returns a reader of the checkpoint of this name: of version 2, TensorFlow's and ours, or a safetensors file.

    Raises MissingCheckpointError where there is none, InvalidArgumentError for other files, DataLossError for damaged
    ones, and the class that matches an error of the file system; each message says what to do.
    """
    with file_errors(f"checkpoint '{prefix}' cannot be read"):
        return _open(prefix)


def _open(prefix: str) -> CheckpointReader:
    if Path(f"{prefix}{INDEX}").is_file():
        return _open_bundle(prefix)
    path = Path(prefix)
    if path.is_file():
        for suffix in _SUFFIXES:
            if prefix.endswith(suffix):
                raise InvalidArgumentError(
                    f"checkpoint '{prefix}': is one file of a checkpoint; its name is without '{suffix}'"
                )
        if prefix.endswith(".safetensors"):
            return SafetensorsFile(prefix)
        raise InvalidArgumentError(
            f"checkpoint '{prefix}': is a file of another format; known are checkpoints of TensorFlow's version 2, "
            "with an .index file (save older ones again with TensorFlow), and .safetensors files"
        )
    raise MissingCheckpointError(
        f"checkpoint '{prefix}': there is no '{path.name}{INDEX}' in '{path.parent}'; {_what_is_there(path.parent)}"
    )


def _open_bundle(prefix: str) -> TensorFlowBundle:
    for _ in range(_ATTEMPTS - 1):
        found = TensorFlowBundle(prefix)
        if found.complete and found.is_current():
            return found  # else a writer may have replaced the checkpoint after its index was read
    return TensorFlowBundle(prefix)


def _what_is_there(folder: Path) -> str:
    if not folder.is_dir():
        return "that folder does not exist"
    found = sorted(p.name.removesuffix(INDEX) for p in folder.glob(f"*{INDEX}") if p.is_file())
    if not found:
        return "it has no checkpoint"
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return f"it has {', '.join(found[:_SHOWN])}{more}"


def merge_checkpoints(sources: Sequence[str], target: str, remove: bool, allow_missing: bool) -> None:
    """Merges several checkpoints into one. remove: then removes the sources, and their folders if empty."""
    present = [s for s in sources if not allow_missing or exists(s)]
    readers = [open_checkpoint(source) for source in present]
    saved: dict[str, Saved | SavedSlices] = {}
    for reader in readers:
        for name, entry in reader.entries.items():
            _add_tensor(saved, reader, name, entry)
    with file_errors(f"checkpoint '{target}' cannot be written"):
        write_bundle(target, saved)
        if remove:
            for source in present:
                remove_bundle(source)
            for folder in {Path(s).parent for s in present} - {Path(target).parent}:
                with contextlib.suppress(OSError):  # the folder is not empty
                    folder.rmdir()


def _add_tensor(saved: dict[str, Saved | SavedSlices], reader: CheckpointReader, name: str, entry: Entry) -> None:
    """Adds a tensor of a checkpoint to those that are to be saved, in slices where it is kept in slices."""
    slices = reader.slices(name)
    for part in slices:
        if slice_range(part, entry.shape) is None:
            raise DataLossError(
                f"checkpoint '{reader.path}': tensor '{name}': one of its slices lies outside its shape "
                f"{list(entry.shape)}; the checkpoint is damaged, save it again"
            )
        whole = SavedSlices(entry.dtype, entry.shape)
        add_slice(saved, name, whole, part, lambda part=part: reader.read_slice(name, part))
    if not slices:
        saved[name] = Saved(entry.dtype, entry.shape, lambda: reader.read(name))


class SafetensorsFile(CheckpointReader):
    """A file that any program wrote with the safetensors library; it has no checksums."""

    def __init__(self, path: str) -> None:
        with extra("safetensors", f"checkpoint '{path}'"):
            import safetensors

        opening: Any = safetensors.safe_open
        try:
            self._file = opening(path, framework="numpy").__enter__()
            slices = {name: self._file.get_slice(name) for name in self._file.keys()}  # noqa: SIM118 - it is no dict
        except safetensors.SafetensorError as e:
            raise DataLossError(f"checkpoint '{path}': is no whole safetensors file ({e}); get it again") from None
        entries = {
            name: Entry(_SAFETENSORS[s.get_dtype()], tuple(s.get_shape()))
            for name, s in slices.items()
            if s.get_dtype() in _SAFETENSORS
        }
        super().__init__(path, entries)

    def _read(self, name: str) -> np.ndarray:
        found: np.ndarray = self._file.get_tensor(name)
        return found


_SAFETENSORS = {
    "F64": dtypes.float64, "F32": dtypes.float32, "F16": dtypes.float16, "BF16": dtypes.bfloat16,
    "I64": dtypes.int64, "I32": dtypes.int32, "I16": dtypes.int16, "I8": dtypes.int8, "U64": dtypes.uint64,
    "U32": dtypes.uint32, "U16": dtypes.uint16, "U8": dtypes.uint8, "BOOL": dtypes.bool_, "C64": dtypes.complex64,
}  # fmt: skip
