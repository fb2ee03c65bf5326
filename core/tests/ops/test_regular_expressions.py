"""Ops that take regular expressions, whose answers are TensorFlow 2.21's: RE2 over UTF-8."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf


def run(make: Callable[[], Any]) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(make())


def replaced(text: str | bytes, pattern: str, rewrite: str, everywhere: bool = True) -> bytes:
    """Returns what both ops give, which must be the same."""
    attrs: dict[str, Any] = {"replace_global": everywhere}
    fed = run(lambda: tf.raw_ops.RegexReplace(input=[text], pattern=pattern, rewrite=rewrite, **attrs))
    static = run(lambda: tf.raw_ops.StaticRegexReplace(input=[text], pattern=pattern, rewrite=rewrite, **attrs))
    assert fed.tolist() == static.tolist()
    return bytes(fed[0])


@pytest.mark.parametrize(
    ("text", "pattern", "rewrite", "all_of_them", "the_first"),
    [
        ("café", ".", "x", "xxxx", "xafé"),
        ("café 你好", "[é你]", "_", "caf_ _好", "caf_ 你好"),
        ("éè", "[^é]", "_", "é_", "é_"),
        ("你好", "好?", "_", "_你_", "_你好"),
        ("É", "(?i)é", "x", "x", "x"),
        ("a1 b2", "[[:digit:]]", "#", "a# b#", "a# b2"),
        ("café", r"\pL+", "W", "W", "W"),
        ("aab", "a*", "-", "-b-", "-b"),
        ("aab", "", "-", "-a-a-b-", "-aab"),
        ("é", "", "-", "-é-", "-é"),
        ("a\nb", "a.b", "x", "a\nb", "a\nb"),
        ("a\nb\n", r"\n$", "x", "a\nbx", "a\nbx"),
        ("a\n", "a$", "x", "a\n", "a\n"),
        ("a\nb", "(?m)a$", "x", "x\nb", "x\nb"),
        ("ab", r"\C", "-", "--", "-b"),
        ("a\0b", "\0", "x", "axb", "axb"),
        ("aab", "^a", "x", "xab", "xab"),
        ("aab", "(a)", r"<\1>", "<a><a>b", "<a>ab"),
        ("aab", "(a)", r"[\0]", "[a][a]b", "[a]ab"),
        ("aab", "(a)", r"x\\1", r"x\1x\1b", r"x\1ab"),
        ("aab", "a|(b)", r"<\1>", "<><><b>", "<>ab"),
        ("aab", "(a)", r"<\2>", "aab", "aab"),
        ("aab", "(a)", r"\q\2", "aab", "aab"),
        ("aab", "(a)", r"x\q", "xxb", "aab"),
        ("aab", "(a)", "x\\", "xxb", "aab"),
    ],
)
def test_replacements(text: str, pattern: str, rewrite: str, all_of_them: str, the_first: str) -> None:
    assert replaced(text, pattern, rewrite).decode() == all_of_them
    assert replaced(text, pattern, rewrite, everywhere=False).decode() == the_first


def test_bytes_that_are_no_utf8_are_kept() -> None:
    assert replaced(b"\xffab", ".", "x") == b"\xffxx"
    assert replaced(b"\xff\xc3", "", "-") == b"-\xff-\xc3-"


@pytest.mark.parametrize(
    ("text", "pattern", "whole"),
    [
        ("é", ".", True),
        ("a\n", "a$", False),
        ("ab", "a", False),
        ("", "", True),
        (b"\xff", ".", False),
        ("ä", r"\w", False),
    ],
)
def test_full_matches(text: str | bytes, pattern: str, whole: bool) -> None:
    assert run(lambda: tf.raw_ops.RegexFullMatch(input=[[text]], pattern=pattern)).tolist() == [[whole]]
    assert run(lambda: tf.raw_ops.StaticRegexFullMatch(input=[[text]], pattern=pattern)).tolist() == [[whole]]


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", r"'\(' is refused by RE2 \(missing \)"),
        (r"(a)\1", "invalid escape sequence"),
        ("a(?=b)", "invalid perl operator"),
        ("x{1001}", "invalid repetition size"),
    ],
)
def test_what_re2_refuses_is_an_invalid_argument(pattern: str, reason: str) -> None:
    strings = tf.raw_ops
    makers: list[Callable[[], Any]] = [
        lambda: strings.RegexReplace(input=["a"], pattern=pattern, rewrite="", name="node"),
        lambda: strings.StaticRegexReplace(input=["a"], pattern=pattern, rewrite="", name="node"),
        lambda: strings.RegexFullMatch(input=["a"], pattern=pattern, name="node"),
        lambda: strings.StaticRegexFullMatch(input=["a"], pattern=pattern, name="node"),
    ]
    for make in makers:
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"'node': pattern .*{reason}"):
            run(make)


def test_a_pattern_of_bytes_that_are_no_utf8_is_refused() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        pattern = tf.placeholder(tf.string)
        matches = tf.raw_ops.RegexFullMatch(input=["a"], pattern=pattern)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"pattern .*xff' is refused by RE2 \(invalid UTF-8\)"):
            session.run(matches, {pattern: b"\xff"})
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"input 1 has shape \(2,\); it must have rank 0"):
            session.run(matches, {pattern: np.array([b"a", b"b"], object)})


def test_without_re2_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    install = r"package re2 is not installed; `pip install 'timberframe\[re2\]'`"
    with pytest.raises(tf.errors.UnavailableError, match=f"StaticRegexReplace 'node': regular expressions: {install}"):
        run(lambda: tf.strings.regex_replace(["a"], "a", "b", name="node"))
