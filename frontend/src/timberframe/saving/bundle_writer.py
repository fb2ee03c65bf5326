"""Writes TensorFlow's checkpoints, version 2; `tensorflow_bundle.py` reads them and says what they are."""

from __future__ import annotations

import contextlib
import glob
import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from timberframe.saving.files import remove_unfinished, unfinished_file
from timberframe.saving.snappy import write_varint
from timberframe.saving.table import write_table
from timberframe.saving.tensor_slices import overlap, sizes_of, slice_key, slice_range
from timberframe.saving.tensorflow_bundle import INDEX, VERSION, data_file, shard_count
from timberframe_core.crc32c import crc32c, masked
from timberframe_core.dtypes import DType, resource, string, variant
from timberframe_core.errors import InvalidArgumentError, OpError
from timberframe_core.graphdef import messages
from timberframe_core.graphdef.tensors import encode_shape

_ALIGNMENT = 64  # of each tensor in the file, so that it can be used where it is mapped
_CHUNK = 1 << 20  # bytes that are checked and written at a time, while they are in the cache


@dataclass(frozen=True)
class Saved:
    """A tensor to save; `array()` is called when it is written, so that one copy at a time is enough."""

    dtype: DType
    shape: tuple[int, ...]
    array: Any


@dataclass(frozen=True)
class SavedSlices:
    """Slices of a tensor of this shape to save, each with the TensorSliceProto that says where it lies in the whole."""

    dtype: DType
    shape: tuple[int, ...]
    slices: list[tuple[Any, Saved]] = field(default_factory=list)


def add_slice(tensors: dict[str, Saved | SavedSlices], name: str, whole: SavedSlices, part: Any, array: Any) -> None:
    """Adds a slice of a tensor to those that are to be saved.

    whole: dtype and shape of the tensor. part: where the slice lies in it, a TensorSliceProto. array: gives its value.
    Raises InvalidArgumentError where it lies over another one, or others are slices of another tensor.
    """
    found, where = tensors.setdefault(name, whole), slice_range(part, whole.shape)
    assert where is not None, f"slice of '{name}' lies outside"
    if not isinstance(found, SavedSlices) or (found.dtype, found.shape) != (whole.dtype, whole.shape):
        kind = "slices of " if isinstance(found, SavedSlices) else ""
        raise InvalidArgumentError(
            f"tensor '{name}' is saved as {kind}{found.dtype.name}{list(found.shape)} and as slices of "
            f"{whole.dtype.name}{list(whole.shape)}; all must be slices of one tensor"
        )
    if any(overlap(where, slice_range(other, whole.shape) or ()) for other, _ in found.slices):
        raise InvalidArgumentError(
            f"tensor '{name}' is saved in slices of which two have elements in common; each element must be in one"
        )
    found.slices.append((part, Saved(whole.dtype, sizes_of(where), array)))


def write_bundle(prefix: str, tensors: Mapping[str, Saved | SavedSlices], family: str | None = None) -> None:
    """Writes a checkpoint. It replaces one of the same prefix, which stays until the new one is complete.

    family: how the names of all checkpoints of the same writer begin, by default as this one's; what killed writers
    left of them is removed. Raises InvalidArgumentError for a dtype without values.

    The index is renamed into place last. It says how many data files there are, and readers look only for those that
    hold a tensor: all tensors are in the first, and a checkpoint that replaces another one gives another number, so
    that its data file has another name.
    """
    count = 2 if _shards(prefix) == 1 else 1
    header = messages.BundleHeaderProto(num_shards=count)
    header.version.producer = VERSION
    target = Path(prefix)
    with unfinished_file(data_file(prefix, 0, count)) as data, unfinished_file(Path(f"{prefix}{INDEX}")) as index:
        entries = [(b"", header.SerializeToString()), *_write_data(data.file, tensors)]
        index.file.write(write_table(entries))
        try:
            data.put_in_place()
            index.put_in_place()
        except BaseException:
            if _shards(prefix) != count:  # the index is not the new one
                data.path.unlink(missing_ok=True)
            raise
    _remove_data(prefix, keep=count)
    remove_unfinished(target.parent, family or target.name)


def _shards(prefix: str) -> int | None:
    """Returns how many data files the checkpoint says to have that is there; None where there
    is none that can be read.
    """
    with contextlib.suppress(OSError, OpError):
        return shard_count(prefix)
    return None


def _remove_data(prefix: str, keep: int = 0) -> None:
    """Removes the data files of a checkpoint but those of an index that counts `keep` of them."""
    folder, name = os.path.split(prefix)
    for data in Path(folder).glob(f"{glob.escape(name)}.data-?????-of-?????"):
        if not data.name.endswith(f"-of-{keep:05d}"):
            data.unlink(missing_ok=True)


def _write_data(file: IO[bytes], tensors: Mapping[str, Saved | SavedSlices]) -> list[tuple[bytes, bytes]]:
    """Writes the tensors in the order of their names, slices first; gives the index's entries, in order."""
    entries, at, stored = [], 0, dict[bytes, Saved]()
    for name, tensor in tensors.items():
        if tensor.dtype in (resource, variant):
            raise InvalidArgumentError(
                f"variable '{name}': has dtype {tensor.dtype.name}; numbers, bools or strings are required to be saved"
            )
        if isinstance(tensor, Saved):
            stored[name.encode()] = tensor
        else:
            stored.update((slice_key(name, part), saved) for part, saved in tensor.slices)
            whole = messages.BundleEntryProto(dtype=tensor.dtype.number, shape=encode_shape(tensor.shape))
            whole.slices.extend(part for part, _ in tensor.slices)
            entries.append((name.encode(), whole.SerializeToString()))
    for key, tensor in sorted(stored.items()):
        file.write(bytes(-at % _ALIGNMENT))
        at += -at % _ALIGNMENT
        entry = messages.BundleEntryProto(dtype=tensor.dtype.number, offset=at, shape=encode_shape(tensor.shape))
        if tensor.dtype is string:
            content, checksum = _encode_strings(tensor.array().ravel().tolist())
            file.write(content)
        else:
            content = np.ascontiguousarray(tensor.array()).reshape(-1).view(np.uint8).data
            checksum = _write_checked(file, content)
        entry.size, entry.crc32c = len(content), masked(checksum)
        at += len(content)
        entries.append((key, entry.SerializeToString()))
    return sorted(entries)


def _write_checked(file: IO[bytes], content: memoryview) -> int:
    """Writes bytes and returns their checksum."""
    checksum = 0
    for start in range(0, len(content), _CHUNK):
        chunk = content[start : start + _CHUNK]
        checksum = crc32c(chunk, checksum)
        file.write(chunk)
    return checksum


def _encode_strings(elements: Sequence[bytes]) -> tuple[memoryview, int]:
    """Returns lengths, their checksum and the bytes of strings; and a checksum, which takes
    the lengths as 32 bits each.
    """
    lengths = [len(x) for x in elements]
    checksum = crc32c(b"".join(struct.pack("<I" if n < 1 << 32 else "<Q", n) for n in lengths))
    stored, text = struct.pack("<I", masked(checksum)), b"".join(elements)
    data = b"".join(map(write_varint, lengths)) + stored + text
    return memoryview(data), crc32c(text, crc32c(stored, checksum))


def remove_bundle(prefix: str) -> None:
    """Removes a checkpoint, its index first, so that no index names incomplete data."""
    Path(f"{prefix}{INDEX}").unlink(missing_ok=True)
    _remove_data(prefix)
