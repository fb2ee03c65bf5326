"""tf.math, tf.nn and the other namespaces that the families fill."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

import timberframe as tf
from timberframe.api import INDEX, NAMES, offered


@pytest.mark.parametrize("name", NAMES)
def test_namespace_lists_functions_only(name: str) -> None:
    module = getattr(tf, name)
    assert set(dir(module)) >= set(offered(name))
    assert all(callable(getattr(module, public)) for public in dir(module) if public != "rnn_cell")


def test_unknown_function_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'timberframe.math' has no attribute 'frobnicate'"):
        tf.math.frobnicate  # noqa: B018 - the look-up is what is tested


def test_namespace_functions_are_the_public_ones() -> None:
    assert tf.math.add is tf.add


def test_a_name_is_of_one_family() -> None:
    owners: dict[tuple[str, str], list[str]] = {}
    for family, spaces in json.loads(INDEX.read_bytes()).items():
        for space, names in spaces.items():
            for name in names:
                owners.setdefault((space, name), []).append(family)
    assert {name: families for name, families in owners.items() if len(families) > 1} == {}


def test_the_index_has_what_the_families_offer() -> None:
    tool = Path(__file__).parents[2] / "tools" / "index_names.py"
    assert INDEX.read_text() == runpy.run_path(str(tool))["index_as_text"](), (
        "run `python frontend/tools/index_names.py`"
    )
