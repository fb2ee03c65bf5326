"""Datasets of what files hold."""

from __future__ import annotations

from typing import Any

from timberframe.data.dataset import Dataset
from timberframe.data.structure import TensorLeaf
from timberframe.records.writing import compression_name
from timberframe_core.dtypes import string
from timberframe_core.errors import InvalidTypeError
from timberframe_core.graph.apply import apply_op, convert_to_tensor

_BUFFER = 256 * 1024


def _reader(op: str, filenames: Any, *inputs: Any) -> Any:
    return apply_op(op, [filenames, *inputs])


def _names(filenames: Any) -> Any:
    if isinstance(filenames, Dataset):
        return filenames
    names = convert_to_tensor(filenames, string, "filenames")
    return names if names.static_shape != () else apply_op("ExpandDims", [names, 0])


class _Reader(Dataset):
    """A dataset of files, whose names may be a dataset, too."""

    def _read(self, filenames: Any, read: Any, parallel: Any = None) -> None:
        names, structure = _names(filenames), TensorLeaf(string, ())
        if not isinstance(names, Dataset):
            super().__init__(read(names), structure)
            return
        if not isinstance(names.structure, TensorLeaf) or names.structure.dtype is not string:
            raise InvalidTypeError(f"filenames is {names}; names of files, which are strings, are required")

        def of_file(name: Any) -> Dataset:
            return Dataset(read(_names(name)), structure)

        made = names.flat_map(of_file) if parallel is None else names.interleave(of_file, parallel)
        super().__init__(made.variant, structure, names.options())


class TextLineDataset(_Reader):
    """The lines of text files, without their ends, one file after the other."""

    def __init__(
        self, filenames: Any, compression_type: Any = None, buffer_size: Any = None, num_parallel_reads: Any = None
    ) -> None:
        """filenames: names, or a dataset of names. compression_type: "", "ZLIB" or "GZIP"."""
        inputs = compression_type or "", _BUFFER if buffer_size is None else buffer_size
        self._read(filenames, lambda names: _reader("TextLineDataset", names, *inputs), num_parallel_reads)


class TFRecordDataset(_Reader):
    """The records of TFRecord files, one file after the other."""

    def __init__(
        self, filenames: Any, compression_type: Any = None, buffer_size: Any = None, num_parallel_reads: Any = None
    ) -> None:
        """filenames: names, or a dataset of names. num_parallel_reads: how many files are read in rotation."""
        compression = compression_name(compression_type) if compression_type else ""
        inputs = compression, _BUFFER if buffer_size is None else buffer_size
        self._read(filenames, lambda names: _reader("TFRecordDataset", names, *inputs), num_parallel_reads)


class FixedLengthRecordDataset(_Reader):
    """Records of record_bytes of files, after a header and before a footer of each."""

    def __init__(
        self,
        filenames: Any,
        record_bytes: Any,
        header_bytes: Any = None,
        footer_bytes: Any = None,
        buffer_size: Any = None,
        compression_type: Any = None,
        num_parallel_reads: Any = None,
    ) -> None:
        """filenames: names, or a dataset of names. compression_type: "", "ZLIB" or "GZIP"."""
        inputs = (
            header_bytes or 0, record_bytes, footer_bytes or 0, _BUFFER if buffer_size is None else buffer_size,
            compression_type or "",
        )  # fmt: skip
        self._read(filenames, lambda names: _reader("FixedLengthRecordDatasetV2", names, *inputs), num_parallel_reads)
