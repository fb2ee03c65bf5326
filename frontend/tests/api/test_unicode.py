"""Strings in other encodings, and the scripts of characters."""

from __future__ import annotations

from typing import Any

import pytest

import timberframe as tf


def run(fetch: Any) -> Any:
    with tf.Session() as session:
        return session.run(fetch)


def test_texts_of_another_encoding() -> None:
    texts = tf.strings.unicode_transcode([["Straße".encode("latin-1")], [b""]], "ISO-8859-1", "UTF-8")
    assert texts.shape.as_list() == [2, 1]
    assert run(texts).tolist() == [["Straße".encode()], [b""]]


def test_what_is_of_no_encoding_is_replaced() -> None:
    texts = tf.strings.unicode_transcode(b"a\xff\xef\xbf\xbd", "UTF-8", "UTF-8", replacement_char=ord("?"))
    assert run(texts) == b"a?\xef\xbf\xbd"


def test_errors_are_errors_if_strict() -> None:
    texts = tf.strings.unicode_transcode(b"a\xff", "UTF-8", "UTF-8", errors="strict")
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"b'a\\xff' is no UTF-8; with errors='strict' it must be"):
        run(texts)


@pytest.mark.parametrize("encoding", ["no-such", "hex", "unicode_escape", "undefined", "a\0b"])
def test_unknown_encodings_are_refused(encoding: str) -> None:
    texts = tf.strings.unicode_transcode(b"", encoding, "UTF-8")
    with pytest.raises(tf.errors.InvalidArgumentError, match="a known encoding of texts is required"):
        run(texts)


@pytest.mark.parametrize("number", [-1, 0x110000])
def test_replacements_that_are_no_characters_are_refused(number: int) -> None:
    texts = tf.strings.unicode_transcode(b"a", "UTF-8", "UTF-8", replacement_char=number)
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"replacement_char is {number}; a code point"):
        run(texts)


def test_scripts_of_characters() -> None:
    points = [[ord(c) for c in "aж中"], [ord(" "), -1, 0x110000]]
    assert run(tf.strings.unicode_script(points)).tolist() == [[25, 8, 17], [0, -1, -1]]
