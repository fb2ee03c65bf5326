"""`tf.contrib.learn.preprocessing`: words of texts as numbers."""

from __future__ import annotations

import os
import pickle
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from timberframe.boundary import guard
from timberframe.saving.files import file_errors
from timberframe_core.errors import InvalidArgumentError

__all__ = ["ByteProcessor", "CategoricalVocabulary", "VocabularyProcessor", "tokenizer"]

_WORD = re.compile(
    r"""
      [A-Z]{2,}(?![a-z])     # capitals, without the first letter of a word that follows them
    | [A-Z][a-z]+(?=[A-Z])   # a part of a name such as CamelCase
    | [\w'-]+
    """,
    re.VERBOSE,
)


def tokenizer(iterator: Iterable[str]) -> Iterator[list[str]]:
    """Yields the words of each text."""
    for text in iterator:
        yield _WORD.findall(text)


class CategoricalVocabulary:
    """Numbers for words, in the order in which they come; 0 is for unknown ones."""

    def __init__(self, unknown_token: str = "<UNK>", support_reverse: bool = True) -> None:
        self._unknown_token, self._support_reverse = unknown_token, support_reverse
        self._freq: Counter[Any] = Counter()
        self._frozen = False
        self._mapping: dict[Any, int] = {unknown_token: 0}

    def __len__(self) -> int:
        """Returns the number of words, the unknown one among them."""
        return len(self._mapping)

    def freeze(self, freeze: bool = True) -> None:
        """Sets whether words that it does not have are unknown from now on."""
        self._frozen = freeze

    def get(self, category: Any) -> int:
        """Returns the number of a word, which is new unless the vocabulary is frozen."""
        if category not in self._mapping and self._frozen:
            return 0
        return self._mapping.setdefault(category, len(self._mapping))

    def add(self, category: Any, count: int = 1) -> None:
        """Counts a word."""
        if self.get(category) > 0:
            self._freq[category] += count

    def trim(self, min_frequency: int, max_frequency: int = -1) -> None:
        """Keeps words that came more than min_frequency times and, if it is positive, less than max_frequency times.

        The most frequent ones get the smallest numbers.
        """
        order = sorted(self._freq.items(), key=lambda item: (-item[1], isinstance(item[0], str), item[0]))
        kept = [(w, n) for w, n in order if n > min_frequency and (max_frequency <= 0 or n < max_frequency)]
        self._freq = Counter(dict(kept))
        self._mapping = {w: i for i, w in enumerate([self._unknown_token, *self._freq])}

    def reverse(self, class_id: int) -> Any:
        """Returns the word of a number."""
        if not self._support_reverse:
            raise InvalidArgumentError(
                "CategoricalVocabulary.reverse: the vocabulary was made with support_reverse=False; True is required"
            )
        return list(self._mapping)[class_id]


class VocabularyProcessor:
    """Texts as rows of max_document_length numbers; zeros are for unknown words and after the end.

    min_frequency: words are known that come more often. vocabulary: a CategoricalVocabulary, a new one by default.
    tokenizer_fn: gives the words of each of some texts, `tokenizer` by default.
    """

    def __init__(
        self,
        max_document_length: int,
        min_frequency: int = 0,
        vocabulary: CategoricalVocabulary | None = None,
        tokenizer_fn: Callable[[Iterable[Any]], Iterable[Any]] | None = None,
    ) -> None:
        self.max_document_length, self.min_frequency = max_document_length, min_frequency
        self.vocabulary_ = CategoricalVocabulary() if vocabulary is None else vocabulary
        self._tokenizer = tokenizer_fn or tokenizer

    def fit(self, raw_documents: Iterable[Any], unused_y: Any = None) -> VocabularyProcessor:
        """Learns the words of some texts. Returns itself."""
        for tokens in self._tokenizer(raw_documents):
            for token in tokens:
                self.vocabulary_.add(token)
        if self.min_frequency > 0:
            self.vocabulary_.trim(self.min_frequency)
        self.vocabulary_.freeze()
        return self

    def fit_transform(self, raw_documents: Iterable[Any], unused_y: Any = None) -> Iterator[Any]:
        """Learns the words of some texts, and gives their numbers."""
        self.fit(raw_documents)
        return self.transform(raw_documents)

    def transform(self, raw_documents: Iterable[Any]) -> Iterator[Any]:
        """Yields the numbers of each text's words, int64 [max_document_length]."""
        for tokens in self._tokenizer(raw_documents):
            row = np.zeros(self.max_document_length, np.int64)
            for i, token in zip(range(self.max_document_length), tokens, strict=False):
                row[i] = self.vocabulary_.get(token)
            yield row

    def reverse(self, documents: Iterable[Iterable[int]]) -> Iterator[str]:
        """Yields the words of numbers, with spaces between them."""
        for document in documents:
            yield " ".join(self.vocabulary_.reverse(i) for i in document)

    def save(self, filename: Any) -> None:
        """Writes itself to a file, by pickle."""
        with file_errors(f"vocabulary '{filename}' cannot be written"), open(os.fspath(filename), "wb") as file:
            pickle.dump(self, file)

    @classmethod
    def restore(cls, filename: Any) -> VocabularyProcessor:
        """Reads what `save` wrote. A file of this kind can contain any program: read none that you do not trust."""
        with file_errors(f"vocabulary '{filename}' cannot be read"), open(os.fspath(filename), "rb") as file:
            found = pickle.load(file)
        if not isinstance(found, VocabularyProcessor):
            raise InvalidArgumentError(
                f"VocabularyProcessor.restore: '{filename}' has a {type(found).__name__}; a file that `save` "
                "wrote is required"
            )
        return found


class ByteProcessor:
    """Texts as rows of max_document_length bytes, zeros after the end."""

    def __init__(self, max_document_length: int) -> None:
        self.max_document_length = max_document_length

    def fit(self, x: Any) -> ByteProcessor:
        """Does nothing: there is nothing to learn. Returns itself."""
        return self

    def fit_transform(self, x: Iterable[Any]) -> Iterator[Any]:
        """`transform`."""
        return self.transform(x)

    def transform(self, x: Iterable[Any]) -> Iterator[Any]:
        """Yields the bytes of each text in UTF-8, uint8 [max_document_length]."""
        for document in x:
            data = document if isinstance(document, bytes) else str(document).encode()
            row = np.zeros(self.max_document_length, np.uint8)
            row[: len(data)] = np.frombuffer(data[: self.max_document_length], np.uint8)
            yield row

    def reverse(self, x: Iterable[Any]) -> Iterator[str]:
        """Yields the texts of rows of bytes."""
        for row in x:
            yield bytes(int(b) for b in row if b).decode(errors="ignore")


guard([sys.modules[__name__]], "tf.contrib.learn.preprocessing")
