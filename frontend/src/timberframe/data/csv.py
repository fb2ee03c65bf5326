"""Datasets of files whose lines are fields between delimiters."""

from __future__ import annotations

import csv
import gzip
import io
import math
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from timberframe.api.string_parts import decode_csv
from timberframe.data.dataset import Dataset
from timberframe.data.readers import TextLineDataset
from timberframe.gfile import Glob
from timberframe_core.dtypes import DType, float32, float64, int32, int64, string
from timberframe_core.errors import InvalidArgumentError, NotFoundError
from timberframe_core.graph.apply import constant_op, convert_to_tensor

_REQUIRED = (int32, int64, float32, float64)
"""What a column is taken for, in this order, where all its fields are such numbers; a string otherwise."""


def _rows(
    filenames: Any, record_defaults: Sequence[Any], compression_type: Any, buffer_size: Any, header: bool,
    field_delim: str, use_quote_delim: bool, na_value: str, select_cols: Sequence[int] | None,
) -> Dataset:  # fmt: skip
    """Returns a tuple of the fields of each line, one file after the other."""

    def of_file(name: Any) -> Dataset:
        lines = TextLineDataset(name, compression_type, buffer_size)
        return lines.skip(1) if header else lines

    def fields(line: Any) -> tuple[Any, ...]:
        return tuple(decode_csv(line, record_defaults, field_delim, use_quote_delim, None, na_value, select_cols))

    if not isinstance(filenames, Dataset):
        names = convert_to_tensor(filenames, string)
        filenames = Dataset.from_tensors(names) if names.static_shape == () else Dataset.from_tensor_slices(names)
    made: Dataset = filenames.flat_map(of_file).map(fields)
    return made


class CsvDataset(Dataset):
    """A tuple of scalars for each line of files, whose fields must not contain line ends."""

    def __init__(
        self,
        filenames: Any,
        record_defaults: Sequence[Any],
        compression_type: str | None = None,
        buffer_size: int | None = None,
        header: bool = False,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        select_cols: Sequence[int] | None = None,
    ) -> None:
        """filenames: names, or a dataset of names. header: whether the first line of each file is left out.

        compression_type: "", "ZLIB" or "GZIP". The others are those of `tf.decode_csv`; record_defaults has an entry
        for each column that is taken.
        """
        made = _rows(
            filenames, record_defaults, compression_type, buffer_size, header, field_delim, use_quote_delim, na_value,
            select_cols,
        )  # fmt: skip
        super().__init__(made.variant, made.structure, made.options())


def make_csv_dataset(
    file_pattern: Any,
    batch_size: int,
    column_names: Sequence[str] | None = None,
    column_defaults: Sequence[Any] | None = None,
    label_name: str | None = None,
    select_columns: Sequence[Any] | None = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
    sloppy: bool = False,
    num_rows_for_inference: int | None = 100,
    compression_type: str | None = None,
    ignore_errors: bool = False,
) -> Dataset:
    """Batches of columns by name, or pairs of them and of the column label_name, from the files of a pattern.

    column_names: by default the fields of the first line. column_defaults: see `tf.decode_csv`; by default the dtypes
    are those that the first num_rows_for_inference lines (all if None) suggest, and missing numbers are 0.
    select_columns: names or positions of columns to take. num_epochs: how often all is read, for ever if None; the last
    batch may then be smaller. ignore_errors: whether lines that are wrong are left out. num_parallel_reads and sloppy
    change nothing.
    """
    files = _files(file_pattern)
    rows = _Sample(files[0], field_delim, use_quote_delim, compression_type, header)
    names = list(column_names) if column_names is not None else rows.names()
    chosen = _positions(names, select_columns)
    defaults = column_defaults
    if defaults is None:
        defaults = rows.defaults(chosen, na_value, num_rows_for_inference)
    taken = [names[i] for i in chosen]
    _check_columns(taken, defaults, label_name)
    paths = Dataset.from_tensor_slices(files)
    if shuffle:
        paths = paths.shuffle(len(files), shuffle_seed)
    made = _rows(
        paths, defaults, compression_type, None, header, field_delim, use_quote_delim, na_value,
        None if select_columns is None else chosen,
    )  # fmt: skip
    if ignore_errors:
        made = made._of("IgnoreErrorsDataset", [])
    if shuffle:
        made = made.shuffle(shuffle_buffer_size, shuffle_seed)
    made = made.repeat(num_epochs).batch(batch_size, drop_remainder=num_epochs is None)

    def by_name(*columns: Any) -> Any:
        features = OrderedDict(zip(taken, columns, strict=True))
        return features if label_name is None else (features, features.pop(label_name))

    return made.map(by_name).prefetch(1 if prefetch_buffer_size is None else prefetch_buffer_size)


def _check_columns(names: Sequence[str], defaults: Sequence[Any], label_name: str | None) -> None:
    if len(defaults) != len(names):
        raise InvalidArgumentError(
            f"make_csv_dataset: {len(defaults)} column_defaults are given for {len(names)} columns; each needs one"
        )
    if label_name is not None and label_name not in names:
        raise InvalidArgumentError(f"make_csv_dataset: label_name is '{label_name}'; it must be one of {list(names)}")


def _files(pattern: Any) -> list[str]:
    found = sorted({f for p in ([pattern] if isinstance(pattern, str) else pattern) for f in Glob(p)})
    if not found:
        raise NotFoundError(f"make_csv_dataset: no file matches {pattern!r}; one at least is required")
    return found


def _positions(names: Sequence[str], chosen: Sequence[Any] | None) -> list[int]:
    """Returns the positions of columns, in rising order."""
    if len(set(names)) != len(names):
        raise InvalidArgumentError(f"make_csv_dataset: the column names are {list(names)}; each must be there once")
    if chosen is None:
        return list(range(len(names)))
    unknown = [c for c in chosen if (c not in names if isinstance(c, str) else not 0 <= c < len(names))]
    if unknown:
        raise InvalidArgumentError(f"make_csv_dataset: select_columns has {unknown}; the columns are {list(names)}")
    return sorted({names.index(c) if isinstance(c, str) else int(c) for c in chosen})


class _Sample:
    """The first lines of a file, which tell the names and dtypes of columns."""

    def __init__(self, path: str, delimiter: str, quotes: bool, compression: str | None, header: bool) -> None:
        self._path, self._compression, self._header = path, compression, header
        self._form: dict[str, Any] = {
            "delimiter": delimiter, "quoting": csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE,
        }  # fmt: skip

    def _lines(self) -> Iterator[list[str]]:
        if self._compression == "ZLIB":
            yield from csv.reader(io.StringIO(zlib.decompress(Path(self._path).read_bytes()).decode()), **self._form)
            return
        opened = gzip.open if self._compression == "GZIP" else open
        with opened(self._path, "rt", newline="", encoding="utf-8") as file:
            yield from csv.reader(file, **self._form)

    def names(self) -> list[str]:
        """Returns the fields of the first line."""
        if not self._header:
            raise InvalidArgumentError("make_csv_dataset: header is False and column_names is None; names are required")
        return next(self._lines(), [])

    def defaults(self, columns: Sequence[int], missing: str, count: int | None) -> list[Any]:
        """For each column the value of missing fields, of the narrowest dtype that suits all others."""
        rows = list(islice(self._lines(), int(self._header), None if count is None else count + int(self._header)))
        found = []
        for i in columns:
            kind = _narrowest([row[i] for row in rows if len(row) > i and row[i] not in ("", missing)])
            found.append(constant_op(np.array([b"" if kind is string else 0], kind.numpy), kind))
        return found


def _narrowest(fields: Sequence[str]) -> DType:
    return next((kind for kind in _REQUIRED if all(_suits(f, kind) for f in fields)), string) if fields else int32


def _suits(field: str, kind: DType) -> bool:
    """Returns whether a field is a number of this dtype."""
    try:
        if kind in (int32, int64):
            return bool(kind.min <= int(field) <= kind.max)
        value = float(field)
    except ValueError:
        return False
    return bool(kind is float64 or not math.isfinite(value) or abs(value) <= kind.max)
