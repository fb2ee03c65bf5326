"""Mistakes that programs make, tried with TensorFlow and here."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import timberframe

Mistake = Callable[[Any, Path], Any]


class Mistakes(dict[str, tuple[Mistake, tuple[str, ...]]]):
    """Functions of the module `tf` and of an empty folder that raise, with what both messages say, by their names."""

    def __call__(self, *facts: str) -> Callable[[Mistake], Mistake]:
        """Adds the decorated function; facts: what both messages say, shapes in parentheses."""

        def add(function: Mistake) -> Mistake:
            self[function.__name__] = function, facts
            return function

        return add

    def check(self, name: str, tensorflow: Any, folder: Path) -> None:
        """Who catches TensorFlow's error catches ours, and our message has the facts that theirs has."""
        function, facts = self[name]
        theirs = raised_by(function, tensorflow, folder / "theirs")
        ours = raised_by(function, timberframe, folder / "ours")
        kind = caught_as(theirs, tensorflow)
        assert isinstance(ours, getattr(timberframe.errors, kind, None) or getattr(builtins, kind))
        assert isinstance(ours, timberframe.errors.OpError)
        assert [fact for fact in facts if fact.lower() not in words(theirs)] == []
        assert [fact for fact in facts if fact.lower() not in words(ours)] == []


def raised_by(function: Mistake, tf: Any, folder: Path) -> Exception:
    folder.mkdir()
    with tf.Graph().as_default(), pytest.raises(Exception) as caught:  # noqa: PT011 - the test compares classes
        function(tf, folder)
    return caught.value


def caught_as(error: Exception, tf: Any) -> str:
    """Returns the name of the class by which programs catch it: Python's, or one of tf.errors."""
    return next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins" or hasattr(tf.errors, c.__name__))


def words(error: Exception) -> str:
    """Returns the message with shapes in parentheses, as we write them."""
    text = re.sub(r"\[([\d, ]*)\]", r"(\1)", str(error))
    return re.sub(r"(?<=\d), ?(?=\d)", ", ", text).lower()
