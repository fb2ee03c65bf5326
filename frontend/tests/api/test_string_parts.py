"""Strings that are changed, taken apart, and made into numbers."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf

pytestmark = pytest.mark.usefixtures("session")


@pytest.mark.parametrize(
    ("build", "wanted"),
    [
        (lambda: tf.strings.lower(["AbÄ"]), ["abÄ".encode()]),
        (lambda: tf.strings.upper(["abä"], "utf-8"), ["ABÄ".encode()]),
        (lambda: tf.strings.strip([" a b\n"]), [b"a b"]),
        (lambda: tf.strings.length(["abä", ""]), [4, 0]),
        (lambda: tf.strings.length(["abä", ""], unit="UTF8_CHAR"), [3, 0]),
        (lambda: tf.substr(["abcdef"], [-3], [2]), [b"de"]),
        (lambda: tf.regex_replace(["a1b22"], "[0-9]+", "<\\0>"), [b"a<1>b<22>"]),
        (lambda: tf.as_string([1.5, -2.0], precision=2), [b"1.50", b"-2.00"]),
        (lambda: tf.as_string([7], width=3, fill="0"), [b"007"]),
        (lambda: tf.decode_base64(tf.encode_base64(["\x00any bytes?"])), [b"\x00any bytes?"]),
        (lambda: tf.string_to_number(["1e3", "-2"]), [1000.0, -2.0]),
        (lambda: tf.string_to_number(["12"], tf.int32), [12]),
        (lambda: tf.decode_raw(["\x01\x00\x02\x00"], tf.int16), [[1, 2]]),
        (lambda: tf.decode_raw(["\x01\x00\x02\x00"], tf.int16, little_endian=False), [[256, 512]]),
    ],
)
def test_results(session: tf.Session, build: Callable[[], Any], wanted: list[Any]) -> None:
    assert session.run(build()).tolist() == wanted


@pytest.mark.parametrize(
    ("build", "rows"),
    [
        (lambda: tf.string_split(["a b", "", "c  d e"]), [["a", "b"], [], ["c", "d", "e"]]),
        (lambda: tf.string_split(["a,b;c"], ",;"), [["a", "b", "c"]]),
        (lambda: tf.string_split(["a,,b"], ",", skip_empty=False), [["a", "", "b"]]),
        (lambda: tf.strings.split(["a--b-c"], "--"), [["a", "b-c"]]),
        (lambda: tf.strings.split([" a  b "], maxsplit=1), [["a", "b "]]),
    ],
)
def test_parts_are_rows_of_a_sparse_matrix(session: tf.Session, build: Callable[[], Any], rows: list[Any]) -> None:
    got = session.run(build())
    assert got.dense_shape.tolist() == [len(rows), max(map(len, rows))]
    assert got.indices.tolist() == [[i, j] for i, row in enumerate(rows) for j in range(len(row))]
    assert got.values.tolist() == [x.encode() for row in rows for x in row]


def test_columns_of_records(session: tf.Session) -> None:
    number, rate, text = tf.decode_csv(['1,2.5,"a, ""b"""', "2,,c"], [tf.int32, [0.5], [""]])
    assert (number.dtype, rate.dtype, text.dtype) == (tf.int32, tf.float32, tf.string)
    a, b, c = session.run([number, rate, text])
    assert (a.tolist(), b.tolist(), c.tolist()) == ([1, 2], [2.5, 0.5], [b'a, "b"', b"c"])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: tf.string_to_number(["1x"]), "StringToNumber 'StringToNumber': b'1x' is no float32; a number"),
        (lambda: tf.string_to_number(["3000000000"], tf.int32), "is no int32"),
        (lambda: tf.decode_raw(["abc"], tf.int16), "strings have 3 bytes; a multiple of 2 is required"),
        (lambda: tf.decode_raw(["ab", "abcd"], tf.int16), r"strings have \[2, 4\] bytes; all must have as many"),
        (lambda: tf.decode_base64(["a*b"]), "is not of base 64"),
        (lambda: tf.substr(["ab"], [3], [1]), "pos is 3 for a string of length 2; it must lie inside"),
        (lambda: tf.regex_replace(["a"], "(", ""), "is refused by RE2"),
        (lambda: tf.decode_csv(["1,2"], [[0]])[0], "a record has 2 fields; 1 are required"),
        (lambda: tf.decode_csv(["x"], [[0]])[0], "field 0 is b'x'; an int32 is required"),
        (lambda: tf.decode_csv([""], [tf.int32])[0], "field 0 is missing and has no default"),
        (lambda: tf.string_split(["a"], result_type="RaggedTensor"), "result_type is 'RaggedTensor'"),
    ],
)
def test_wrong_strings(session: tf.Session, build: Callable[[], Any], message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(build())


def test_shapes_are_known_before_a_run() -> None:
    assert tf.decode_raw(tf.placeholder(tf.string, [3]), tf.uint8).shape.as_list() == [3, None]
    assert tf.strings.length(tf.placeholder(tf.string, [2, None])).shape.as_list() == [2, None]
    assert np.array_equal(tf.substr(tf.placeholder(tf.string, [2, 1]), [0, 0], [1, 1]).shape.as_list(), [2, 2])


@pytest.mark.parametrize(
    ("kind", "packed"), [("GZIP", gzip.compress(b"abc", mtime=0)), ("ZLIB", zlib.compress(b"abc")), ("", b"abc")]
)
def test_strings_are_decompressed(session: tf.Session, kind: str, packed: bytes) -> None:
    assert session.run(tf.io.decode_compressed([[packed]], kind)).tolist() == [[b"abc"]]


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
def test_strings_that_do_not_decompress_are_refused(session: tf.Session, kind: str) -> None:
    whole = (gzip if kind == "GZIP" else zlib).compress(b"abc" * 10)
    for packed in (b"abc", whole[:-6]):
        with pytest.raises(tf.errors.DataLossError, match=f"do not decompress .*; data of {kind} is required"):
            session.run(tf.decode_compressed(packed, kind))


def test_only_known_ways_to_compress_are_taken() -> None:
    with pytest.raises(ValueError, match="compression_type"):
        tf.decode_compressed("a", "LZMA")


def test_strings_have_tensorflows_numbers(session: tf.Session) -> None:
    texts = ["", "abc", "äöü"]
    assert session.run(tf.string_to_hash_bucket(texts, 10**9)).tolist() == [29283899, 57142710, 294725879]
    keyed = tf.strings.to_hash_bucket_strong(texts, 2**62, [123, -456])
    assert session.run(keyed).tolist() == [139821925654099718, 1767148562213628674, 3309611357989773181]


def test_a_key_of_a_hash_has_two_numbers() -> None:
    with pytest.raises(ValueError, match="key has 1 numbers; 2 are required"):
        tf.strings.to_hash_bucket_strong(["a"], 5, [1])
