"""Strings in other encodings, and scripts of characters, are TensorFlow's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe

DAMAGED = [b"a\xffb\x01c\xc3", b"\xe2\x82z", b"\xf0\x9f\x98", b"\xed\xa0\x80x", b"\xf8\x88\x80", b"\n\x7f\xc2\x85", b""]
TEXT = "é😀a"


def found(tf: Any, *arguments: Any, **settings: Any) -> list[bytes]:
    with tf.Graph().as_default(), tf.Session() as session:
        result: list[bytes] = session.run(tf.strings.unicode_transcode(*arguments, **settings)).tolist()
        return result


@pytest.mark.parametrize("output", ["UTF-8", "UTF-16-BE", "UTF-32-BE"])
@pytest.mark.parametrize("control", [False, True])
@pytest.mark.parametrize("errors", ["replace", "ignore"])
def test_damaged_texts(tensorflow: Any, errors: str, control: bool, output: str) -> None:
    settings = {"errors": errors, "replace_control_characters": control, "replacement_char": ord("é")}
    theirs, ours = (found(tf, DAMAGED, "UTF-8", output, **settings) for tf in (tensorflow, timberframe))
    assert ours == theirs


@pytest.mark.parametrize("replacement", [0, 0xD800, 0x10FFFF])
def test_replacements(tensorflow: Any, replacement: int) -> None:
    settings = {"replacement_char": replacement}
    theirs, ours = (found(tf, DAMAGED, "UTF-8", "UTF-8", **settings) for tf in (tensorflow, timberframe))
    assert ours == theirs


@pytest.mark.parametrize(
    ("encoding", "texts"),
    [
        ("UTF-16", [TEXT.encode("utf-16-be"), TEXT.encode("utf-16"), b"\xd8\x00", b"a", b"\xd8\x00\x00a"]),
        ("UTF-16LE", [TEXT.encode("utf-16-le"), b"a"]),
        ("UTF-16-BE", [TEXT.encode("utf-16-be"), b"\xdc\x00\x00a"]),
        ("UTF-32", [TEXT.encode("utf-32-be"), TEXT.encode("utf-32")]),
        ("UTF-32-BE", [TEXT.encode("utf-32-be"), b"caf\xc3\xa9"]),
        ("US-ASCII", [b"caf\xc3\xa9"]),
        ("ISO-8859-1", [bytes(range(256))]),
        ("windows-1251", ["слово".encode("cp1251")]),
        ("KOI8-R", ["слово".encode("koi8-r")]),
        ("Shift_JIS", ["日本".encode("shift-jis"), b"caf\xc3\xa9"]),
        ("EUC-JP", ["日本".encode("euc-jp")]),
        ("GBK", ["中文".encode("gbk")]),
        ("Big5", ["中文".encode("big5")]),
        ("utf8", [b"\xef\xbb\xbfa"]),
    ],
)
def test_encodings(tensorflow: Any, encoding: str, texts: list[bytes]) -> None:
    for text in texts:  # one by one: in TensorFlow a byte order mark counts for the next texts, too
        theirs, ours = (found(tf, [text], encoding, "UTF-8") for tf in (tensorflow, timberframe))
        assert ours == theirs


@pytest.mark.parametrize("text", [b"a\xff", b"a\x01"])
def test_strict(tensorflow: Any, text: bytes) -> None:
    for tf in (tensorflow, timberframe):
        with pytest.raises(tf.errors.InvalidArgumentError):
            found(tf, [text], "UTF-8", "UTF-8", errors="strict", replace_control_characters=True)


def test_scripts_of_all_characters(tensorflow: Any) -> None:
    made = []
    for tf in (tensorflow, timberframe):
        with tf.Graph().as_default(), tf.Session() as session:
            made.append(session.run(tf.strings.unicode_script(np.arange(-2, 0x110002, dtype=np.int32))))
    np.testing.assert_array_equal(*made)
    assert made[0].dtype == made[1].dtype
