"""The version of the contract that a plugin is written for, checked when it is loaded."""

from __future__ import annotations

import importlib
import types
from typing import Any

import pytest

import timberframe as tf
from timberframe_core.plugin import loader
from timberframe_sdk import CONTRACT


def load(**members: Any) -> loader.Plugin:
    registry = loader.PluginRegistry()
    registry._discovered = True
    return registry.add("acme", types.SimpleNamespace(**members))


@pytest.mark.parametrize("version", [CONTRACT, (CONTRACT[0], 0)])
def test_a_plugin_for_this_contract_is_loaded(version: tuple[int, int]) -> None:
    assert load(timberframe_contract=version).loaded


@pytest.mark.parametrize("version", [(CONTRACT[0] + 1, 0), (CONTRACT[0] - 1, 5), (CONTRACT[0], CONTRACT[1] + 1)])
def test_a_plugin_for_another_contract_is_refused(version: tuple[int, int]) -> None:
    words = rf"written for version {version[0]}\.{version[1]} of the contract; .* has {CONTRACT[0]}\.{CONTRACT[1]}"
    with pytest.raises(tf.errors.InternalError, match=words):
        load(timberframe_contract=version)


def test_an_older_plugin_is_to_be_upgraded() -> None:
    with pytest.raises(tf.errors.InternalError, match=r"upgrade the plugin$"):
        load(timberframe_contract=(CONTRACT[0] - 1, 5))


def test_a_newer_plugin_wants_a_newer_sdk() -> None:
    with pytest.raises(tf.errors.InternalError, match=r"upgrade timberframe-sdk$"):
        load(timberframe_contract=(CONTRACT[0], CONTRACT[1] + 1))


@pytest.mark.parametrize("version", ["1.0", (1,), 1.0])
def test_a_version_of_another_form_is_refused(version: Any) -> None:
    with pytest.raises(tf.errors.InternalError, match="two integers"):
        load(timberframe_contract=version)


@pytest.mark.parametrize("name", ["cpu", "opencl", "cuda"])
def test_our_own_plugins_say_which_contract_they_are_written_for(name: str) -> None:
    module = importlib.import_module(f"timberframe_{name}")
    assert load(timberframe_contract=module.timberframe_contract).loaded
