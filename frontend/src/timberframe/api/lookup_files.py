"""`tf.lookup`: tables of the lines of text files, and tables of words with numbers for all others."""

from __future__ import annotations

from typing import Any

from timberframe.api.framework import name_scope
from timberframe.api.lookup import (
    IdTableWithHashBuckets,
    KeyValueTensorInitializer,
    StaticHashTable,
    file_lines,
    numbers,
)
from timberframe_core.dtypes import as_dtype, int64, string
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Tensor

NAMESPACES = {"lookup": ("StaticVocabularyTable", "TextFileIndex", "TextFileInitializer")}


class TextFileIndex:
    """Which part of a line is a key or value, where it is no column: the whole line, or its number."""

    WHOLE_LINE = -2
    LINE_NUMBER = -1


class TextFileInitializer(KeyValueTensorInitializer):
    """Keys and values of a table from the lines of a text file, which is read when the table is initialised.

    key_index, value_index: a column, or one of TextFileIndex; columns are separated by `delimiter`. key_dtype,
    value_dtype: of whole lines tf.string, of numbers of lines tf.int64. vocab_size: how many lines, by default all.
    value_index_offset: is added to numbers of lines that are values.
    """

    def __init__(
        self,
        filename: Any,
        key_dtype: Any,
        key_index: int,
        value_dtype: Any,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
        value_index_offset: int = 0,
    ) -> None:
        with name_scope(name, "text_file_init"):
            lines = file_lines(filename, vocab_size)
            keys = _part(lines, "key", key_index, key_dtype, delimiter)
            values = _part(lines, "value", value_index, value_dtype, delimiter)
            if value_index == TextFileIndex.LINE_NUMBER and value_index_offset:
                values = apply_op("AddV2", [values, value_index_offset])
            super().__init__(keys, values)


def _part(lines: Tensor, what: str, index: int, dtype: Any, delimiter: str) -> Tensor:
    """Returns the keys or values among the lines."""
    kind = as_dtype(dtype)
    needed = {TextFileIndex.LINE_NUMBER: int64, TextFileIndex.WHOLE_LINE: string}.get(index, kind)
    if kind is not needed:
        raise InvalidTypeError(
            f"TextFileInitializer: {what}_dtype is {kind.name}; with {what}_index {index} it must be {needed.name}"
        )
    if index < TextFileIndex.WHOLE_LINE:
        raise InvalidArgumentError(f"TextFileInitializer: {what}_index is {index}; a column, -1 or -2 is required")
    if index == TextFileIndex.LINE_NUMBER:
        return numbers(lines)
    found = lines
    if index >= 0:
        places, parts, shape = apply_op("StringSplitV2", [lines, delimiter])
        table = apply_op("SparseToDense", [places, shape, parts, ""])
        found = apply_op("GatherV2", [table, index, 1])
    if kind is not string:
        found = apply_op("StringToNumber", [found], {"out_type": kind})
    return found


class StaticVocabularyTable(IdTableWithHashBuckets):
    """A table of words that gives all other words a number, too: the first ones after the table's, by a hash.

    initializer: gives words their numbers 0, 1, ... as int64. num_oov_buckets: how many further numbers there are, at
    least 1. lookup_key_dtype: the dtype of the words, that of the initializer's keys if None.
    """

    def __init__(
        self, initializer: Any, num_oov_buckets: int, lookup_key_dtype: Any = None, name: str | None = None
    ) -> None:
        if num_oov_buckets < 1:
            raise InvalidArgumentError(
                f"StaticVocabularyTable: num_oov_buckets is {num_oov_buckets}; it must be at least 1"
            )
        if initializer.value_dtype is not int64:
            raise InvalidTypeError(
                f"StaticVocabularyTable: values are {initializer.value_dtype.name}; numbers of dtype int64 are required"
            )
        if lookup_key_dtype is not None and as_dtype(lookup_key_dtype) is not initializer.key_dtype:
            raise InvalidTypeError(
                f"StaticVocabularyTable: lookup_key_dtype is {as_dtype(lookup_key_dtype).name} and the keys are "
                f"{initializer.key_dtype.name}; they must agree"
            )
        super().__init__(StaticHashTable(initializer, -1), num_oov_buckets, name)
