"""Functions of strings give TensorFlow's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe

WORDS = ["Hello  World", " a,b;c ", "", "ÄÖ x", "tail,"]
FLOATS = np.array([1.5, -2.0, 1e10, 0.1, np.inf], np.float32)

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "lower": lambda tf: tf.strings.lower(WORDS),
    "upper": lambda tf: tf.strings.upper(WORDS, encoding="utf-8"),
    "strip": lambda tf: tf.strings.strip(WORDS),
    "length": lambda tf: tf.strings.length(WORDS),
    "characters": lambda tf: tf.strings.length(WORDS, unit="UTF8_CHAR"),
    "substr": lambda tf: tf.substr(["abcdef", "wxyz"], [1, -3], [3, 9]),
    "regex_replace": lambda tf: tf.regex_replace(WORDS, "([a-c])", "<\\1>"),
    "regex_replace_first": lambda tf: tf.strings.regex_replace(WORDS, "[lo]", "-", replace_global=False),
    "regex_replace_characters": lambda tf: tf.regex_replace(WORDS, r"[Ä[:space:]]|\pL*", "<\\0>"),
    "split": lambda tf: tf.string_split(WORDS),
    "split_letters": lambda tf: tf.string_split(WORDS, " ,;", skip_empty=False),
    "split_bytes": lambda tf: tf.string_split(["abc", "d"], ""),
    "split_words": lambda tf: tf.strings.split(WORDS),
    "split_commas": lambda tf: tf.strings.split(WORDS, ",", maxsplit=1),
    "encode_base64": lambda tf: tf.encode_base64(WORDS),
    "encode_base64_padded": lambda tf: tf.encode_base64(WORDS, pad=True),
    "decode_base64": lambda tf: tf.decode_base64(["SGVsbG8", "_-8=", ""]),
    "hash": lambda tf: tf.string_to_hash_bucket([*WORDS, *("x" * n for n in range(20))], 10**9),
    "hash_with_key": lambda tf: tf.strings.to_hash_bucket_strong(
        [*WORDS, *("x" * n for n in range(20))], 2**62, [123, -456]
    ),
    "to_float": lambda tf: tf.string_to_number(["1.5", "-2e3", " 7 "]),
    "to_int": lambda tf: tf.string_to_number(["15", "-2"], tf.int64),
    "decode_raw": lambda tf: tf.decode_raw(["abcd", "efgh"], tf.int16),
    "decode_raw_big": lambda tf: tf.decode_raw(["abcd", "efgh"], tf.int32, little_endian=False),
    "as_string": lambda tf: tf.as_string(FLOATS),
    "as_string_shortest": lambda tf: tf.as_string(FLOATS, shortest=True, precision=3),
    "as_string_scientific": lambda tf: tf.as_string(FLOATS, scientific=True, width=12, fill="0"),
    "as_string_int": lambda tf: tf.as_string(np.array([3, -14]), width=5, fill=" "),
    "as_string_bool": lambda tf: tf.as_string([True, False]),
    "decode_csv": lambda tf: tf.decode_csv(["1,2.5,a", '3,,"x, ""y"""'], [[0], [1.0], ["d"]]),
    "decode_csv_columns": lambda tf: tf.decode_csv(["1|n|a"], [[7], [""]], "|", na_value="n", select_cols=[1, 2]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results(name: str) -> None:
    tensorflow = pytest.importorskip("tensorflow").compat.v1
    made = []
    for tf in (tensorflow, timberframe):
        with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
            found = session.run(FUNCTIONS[name](tf))
            made.append([np.asarray(x) for x in (found if isinstance(found, tuple | list) else [found])])
    for a, b in zip(*made, strict=True):
        assert b.tolist() == a.tolist()
        assert b.dtype == a.dtype
