"""`tf.python_io`: TFRecord files, read and written by Python."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

from timberframe.boundary import guard
from timberframe.records.reading import read_records
from timberframe.records.writing import TFRecordCompressionType as TFRecordCompressionType
from timberframe.records.writing import TFRecordOptions as TFRecordOptions
from timberframe.records.writing import TFRecordWriter as TFRecordWriter
from timberframe.records.writing import compression_name

__all__ = ["TFRecordCompressionType", "TFRecordOptions", "TFRecordWriter", "tf_record_iterator"]


def tf_record_iterator(path: Any, options: Any = None) -> Iterator[bytes]:
    """Returns the records of a TFRecord file, in order. options: a TFRecordOptions, or the compression's name.

    Raises NotFoundError for a file that cannot be read, DataLossError for a damaged one.
    """
    return read_records(os.fspath(path), compression_name(options))


guard([sys.modules[__name__]])  # here, since `import timberframe` does not load this module
