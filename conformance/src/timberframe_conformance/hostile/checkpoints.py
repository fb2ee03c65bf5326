"""Checkpoints to be mutated: TensorFlow's, and safetensors files; the same tensors in each."""

from __future__ import annotations

import functools
import struct
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

from timberframe.saving.tensor_slices import slice_key
from timberframe_conformance.hostile.kinds import Files
from timberframe_conformance.hostile.tables import Row, Table, varint
from timberframe_core.crc32c import crc32c, masked
from timberframe_core.dtypes import as_dtype
from timberframe_core.graphdef.messages import BundleEntryProto, BundleHeaderProto
from timberframe_core.graphdef.tensors import encode_shape

PREFIX = "model"
DATA = f"{PREFIX}.data-00000-of-00001"
INDEX = f"{PREFIX}.index"


@functools.cache
def tensors() -> Mapping[str, np.ndarray]:
    """Returns what the checkpoints hold, by name."""
    words = np.empty((2, 2), object)
    words[:] = [[b"a", b""], [b"\xff\0", b"word" * 40]]
    return {
        "bias": np.arange(3, dtype=np.float32),
        "kernel": np.linspace(-1, 1, 24, dtype=np.float64).reshape(2, 3, 4),
        "half": np.arange(5).astype(ml_dtypes.bfloat16),
        "step": np.array(12345678901, np.int64),
        "mask": np.array([[True, False]]),
        "wave": np.array([1 + 2j, -3j], np.complex64),
        "empty": np.zeros((0, 4), np.int32),
        "words": words,
    }


@functools.cache
def safetensors_file() -> bytes:
    """Returns a file that the safetensors library wrote."""
    from safetensors.numpy import save

    plain = {n: a for n, a in tensors().items() if n in ("bias", "kernel", "step", "mask", "empty")}
    return bytes(save(dict(plain)))


def bundle_rows() -> tuple[list[Row], bytes]:
    """Returns the entries of a checkpoint and its data; one tensor is stored in two slices."""
    header = BundleHeaderProto(num_shards=1)
    header.version.producer = 1
    rows, data = {b"": header.SerializeToString()}, b""
    for name, array in sorted(tensors().items()):
        content, checksum = _content(array)
        entry = _entry(array, len(data), content, checksum)
        data += content
        rows[name.encode()] = entry.SerializeToString()
    whole = tensors()["kernel"]
    entry = BundleEntryProto(dtype=as_dtype(whole.dtype).number, shape=encode_shape(whole.shape))
    for start in (0, 1):
        part = entry.slices.add()
        part.extent.add(start=start, length=1)
        part.extent.add()
        part.extent.add()
        content, checksum = _content(whole[start : start + 1])
        rows[slice_key("parts", part)] = _entry(
            whole[start : start + 1], len(data), content, checksum
        ).SerializeToString()
        data += content
    rows[b"parts"] = entry.SerializeToString()
    return [Row(key, value) for key, value in sorted(rows.items())], data


def _entry(array: np.ndarray, offset: int, content: bytes, checksum: int) -> Any:
    return BundleEntryProto(
        dtype=as_dtype(array.dtype).number,
        shape=encode_shape(array.shape),
        offset=offset,
        size=len(content),
        crc32c=checksum,
    )


def _content(array: np.ndarray) -> tuple[bytes, int]:
    """Returns the bytes of a tensor as TensorFlow stores them, and their checksum."""
    if array.dtype != object:
        raw = np.ascontiguousarray(array).tobytes()
        return raw, masked(crc32c(raw))
    elements = array.reshape(-1).tolist()
    lengths = crc32c(b"".join(struct.pack("<I", len(x)) for x in elements))
    stored, text = struct.pack("<I", masked(lengths)), b"".join(elements)
    return b"".join(varint(len(x)) for x in elements) + stored + text, masked(crc32c(text, crc32c(stored, lengths)))


def bundle() -> Files:
    """Returns the files of a checkpoint."""
    rows, data = bundle_rows()
    return {INDEX: Table(rows).encode(), DATA: data}
