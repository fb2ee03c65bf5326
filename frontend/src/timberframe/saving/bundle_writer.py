"""Writes TensorFlow's checkpoints, version 2; `tensorflow_bundle.py` reads them and says what they are."""

from __future__ import annotations

import glob
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from timberframe.saving.checkpoint import Saved, remove_checkpoint_files
from timberframe.saving.encoding import as_bytes
from timberframe.saving.files import replace_file, replaced_file
from timberframe.saving.snappy import write_varint
from timberframe.saving.table import write_table
from timberframe.saving.tensorflow_bundle import INDEX, VERSION
from timberframe_core.crc32c import crc32c, masked
from timberframe_core.dtypes import string
from timberframe_core.graphdef import messages
from timberframe_core.graphdef.tensors import encode_shape


def write_bundle(prefix: str, tensors: Mapping[str, Saved]) -> None:
    """Writes a checkpoint. One of the same prefix goes first: at any moment the index belongs to the data."""
    header = messages.BundleHeaderProto(num_shards=1)
    header.version.producer = VERSION
    entries = [(b"", header.SerializeToString())]
    Path(f"{prefix}{INDEX}").unlink(missing_ok=True)
    at = 0
    with replaced_file(Path(f"{prefix}.data-00000-of-00001")) as file:
        for name, tensor in sorted(tensors.items(), key=lambda item: item[0].encode()):
            entry = messages.BundleEntryProto(dtype=tensor.dtype.number, offset=at, shape=encode_shape(tensor.shape))
            if tensor.dtype is string:
                data, checksum = _encode_strings(tensor.array().ravel().tolist())
            else:
                data = as_bytes(tensor.array())
                checksum = crc32c(data)
            file.write(data)
            entry.size, entry.crc32c = len(data), masked(checksum)
            at += len(data)
            entries.append((name.encode(), entry.SerializeToString()))
    replace_file(Path(f"{prefix}{INDEX}"), write_table(entries))
    remove_checkpoint_files(prefix)  # else one of ours of this prefix would be read in its place


def _encode_strings(elements: Sequence[bytes]) -> tuple[memoryview, int]:
    """Lengths, their checksum and the bytes of strings; and a checksum, which takes the lengths as 32 bits each."""
    lengths = [len(x) for x in elements]
    checksum = crc32c(b"".join(struct.pack("<I" if n < 1 << 32 else "<Q", n) for n in lengths))
    stored, text = struct.pack("<I", masked(checksum)), b"".join(elements)
    data = b"".join(map(write_varint, lengths)) + stored + text
    return memoryview(data), crc32c(text, crc32c(stored, checksum))


def remove_bundle(prefix: str) -> None:
    """Removes a checkpoint, its index first."""
    Path(f"{prefix}{INDEX}").unlink(missing_ok=True)
    path = Path(prefix)
    for data in path.parent.glob(f"{glob.escape(path.name)}.data-?????-of-?????"):
        data.unlink(missing_ok=True)
