"""Sessions, and what goes through datasets in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import timberframe as tf

Elements = Callable[..., list[Any]]


def plain(value: Any) -> Any:
    """Returns a fetched value in lists and Python's numbers."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, tuple):
        return tuple(plain(v) for v in value)
    return value.tolist() if hasattr(value, "tolist") else value


def taken(session: tf.Session, element: Any, most: int = 200) -> list[Any]:
    """Returns what running a tensor or structure gives until the end; errors by the names of their classes."""
    found: list[Any] = []
    while len(found) < most:
        try:
            found.append(plain(session.run(element)))
        except tf.errors.OutOfRangeError:
            return found
        except tf.errors.OpError as e:
            found.append(type(e).__name__)
    return found


@pytest.fixture
def elements(session: tf.Session) -> Elements:
    """The elements of a dataset, up to `most`."""

    def go_through(dataset: Any, most: int = 200) -> list[Any]:
        return taken(session, dataset.make_one_shot_iterator().get_next(), most)

    return go_through
