"""tf.math, tf.nn and the other namespaces that the families fill."""

from __future__ import annotations

import pytest

import timberframe as tf
from timberframe.api import NAMES, namespace


@pytest.mark.parametrize("name", NAMES)
def test_namespace_lists_functions_only(name: str) -> None:
    module = getattr(tf, name)
    assert set(dir(module)) >= set(namespace(name))
    assert all(callable(getattr(module, public)) for public in dir(module) if public != "rnn_cell")


def test_unknown_function_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'timberframe.math' has no attribute 'frobnicate'"):
        tf.math.frobnicate  # noqa: B018 - the look-up is what is tested


def test_namespace_functions_are_the_public_ones() -> None:
    assert tf.math.add is tf.add
