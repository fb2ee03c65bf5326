"""tf.contrib and the like are in a package of their own, and have their names below `timberframe` all the same."""

from __future__ import annotations

import pickle
import subprocess
import sys
from importlib import import_module

import pytest

import timberframe as tf


def printed(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_the_package_is_not_imported_before_it_is_asked_for() -> None:
    code = "import sys, timberframe as tf\ntf.train.AdamOptimizer\nprint('timberframe_contrib' in sys.modules)"
    assert printed(code) == "False"


@pytest.mark.parametrize("name", ["contrib", "contrib.slim", "distributions", "estimator.inputs", "feature_column"])
def test_a_namespace_is_imported_by_its_name_below_timberframe(name: str) -> None:
    module = import_module(f"timberframe.{name}")
    found = tf
    for part in name.split("."):
        found = getattr(found, part)
    assert module is found is import_module(f"timberframe_contrib.{name}")


def test_an_import_statement_comes_before_any_other_use() -> None:
    code = """
import timberframe.contrib.layers as layers
import timberframe as tf
import timberframe_contrib.contrib.layers as own

print(own is layers is tf.contrib.layers)
"""
    assert printed(code) == "True"


def test_a_module_that_is_not_there_is_named() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'timberframe_contrib\.contrib\.nothing'"):
        import_module("timberframe.contrib.nothing")


def test_a_function_is_pickled_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(tf.contrib.layers.fully_connected)) is tf.contrib.layers.fully_connected


def test_an_unknown_name_is_an_error_with_the_name_that_users_know() -> None:
    with pytest.raises(AttributeError, match=r"module 'timberframe\.contrib' has no attribute 'nothing'"):
        _ = tf.contrib.nothing
