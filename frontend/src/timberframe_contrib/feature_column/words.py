"""Feature columns of words: by a vocabulary, or by a hash."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from timberframe.api.examples import VarLenFeature
from timberframe.api.lookup import index_table_from_tensor
from timberframe.api.string_parts import as_string
from timberframe_contrib.feature_column.columns import CategoricalColumn, Features, matrix
from timberframe_core.dtypes import DType, as_dtype, int64, string
from timberframe_core.errors import InvalidArgumentError, NotFoundError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor


@dataclass(frozen=True)
class VocabularyColumn(CategoricalColumn):
    """See `categorical_column_with_vocabulary_list` and `categorical_column_with_vocabulary_file`."""

    key: str
    vocabulary: tuple[Any, ...]
    dtype: DType
    default_value: int
    num_oov_buckets: int

    @property
    def name(self) -> str:
        """The feature's."""
        return self.key

    @property
    def num_buckets(self) -> int:
        """The words, and the buckets of others."""
        return len(self.vocabulary) + self.num_oov_buckets

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """A feature of any length."""
        return {self.key: VarLenFeature(self.dtype)}

    def given(self, features: Features) -> Tensor:
        """Returns where there is a word, of the vocabulary or not."""
        return _given(matrix(features, self.key))

    def ids(self, features: Features) -> Tensor:
        """Returns the numbers of the words in the vocabulary."""
        words = matrix(features, self.key)
        if (words.dtype is string) != (self.dtype is string):
            raise InvalidArgumentError(
                f"vocabulary of '{self.key}': has dtype {self.dtype.name}, and the feature {words.dtype.name}; both "
                "must be strings, or integers"
            )
        table = index_table_from_tensor(
            list(self.vocabulary), self.num_oov_buckets, self.default_value, dtype=self.dtype, name=f"{self.key}_lookup"
        )
        keys = words if self.dtype is string else apply_op("Cast", [words], {"DstT": self.dtype})
        return _where_given(words, table.lookup(keys))


@dataclass(frozen=True)
class HashColumn(CategoricalColumn):
    """See `categorical_column_with_hash_bucket`."""

    key: str
    hash_bucket_size: int
    dtype: DType

    @property
    def name(self) -> str:
        """The feature's."""
        return self.key

    @property
    def num_buckets(self) -> int:
        """How many buckets there are."""
        return self.hash_bucket_size

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """A feature of any length."""
        return {self.key: VarLenFeature(self.dtype)}

    def ids(self, features: Features) -> Tensor:
        """Returns the buckets of the words, or of numbers as texts."""
        words = matrix(features, self.key)
        texts = words if words.dtype is string else as_string(words)
        hashed = apply_op("StringToHashBucketFast", [texts], {"num_buckets": self.hash_bucket_size})
        return _where_given(words, hashed)


def _where_given(words: Tensor, numbers: Any) -> Tensor:
    """Returns the numbers, and -1 where there is no word: an empty one, or the number -1."""
    chosen: Tensor = apply_op("SelectV2", [_given(words), numbers, convert_to_tensor(-1, int64)])
    return chosen


def _given(words: Tensor) -> Tensor:
    nothing = convert_to_tensor("" if words.dtype is string else np.array(-1, words.dtype.numpy))
    found: Tensor = apply_op("NotEqual", [words, nothing])
    return found


def categorical_column_with_vocabulary_list(
    key: str, vocabulary_list: Sequence[Any], dtype: Any = None, default_value: int = -1, num_oov_buckets: int = 0
) -> VocabularyColumn:
    """Returns a column of categories by a list of words, or of integers.

    Words that are not in it are none, or have the number default_value, or that of one of num_oov_buckets by a hash.
    """
    words = np.asarray(vocabulary_list)
    label = f"categorical_column_with_vocabulary_list '{key}'"
    if not words.size or len(set(words.tolist())) < words.size:
        raise InvalidArgumentError(f"{label}: vocabulary_list is {list(vocabulary_list)}; different words are required")
    if default_value != -1 and num_oov_buckets:
        raise InvalidArgumentError(f"{label}: both of default_value and num_oov_buckets given; one at most is required")
    kind = as_dtype(dtype) if dtype is not None else int64 if words.dtype.kind in "iu" else string
    return VocabularyColumn(key, tuple(words.tolist()), kind, default_value, num_oov_buckets)


def categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: Any,
    vocabulary_size: int | None = None,
    num_oov_buckets: int = 0,
    default_value: int | None = None,
    dtype: Any = string,
) -> VocabularyColumn:
    """Returns a column of categories by a file with a word in each line, of which the first vocabulary_size count."""
    try:
        with open(vocabulary_file, encoding="utf-8") as file:
            words: list[Any] = [line.rstrip("\r\n") for line in file][:vocabulary_size]
    except OSError as e:
        raise NotFoundError(f"vocabulary file '{vocabulary_file}': cannot be read ({e.strerror})") from None
    if as_dtype(dtype) is not string:
        words = [int(word) for word in words]
    default = -1 if default_value is None else default_value
    return categorical_column_with_vocabulary_list(key, words, dtype, default, num_oov_buckets)


def categorical_column_with_hash_bucket(key: str, hash_bucket_size: int, dtype: Any = string) -> HashColumn:
    """Returns a column of categories whose numbers are hashes of words, or of integers as texts;
    TensorFlow's are the same.
    """
    if hash_bucket_size < 1:
        raise InvalidArgumentError(
            f"categorical_column_with_hash_bucket '{key}': hash_bucket_size is {hash_bucket_size}; it must be positive"
        )
    return HashColumn(key, hash_bucket_size, as_dtype(dtype))
