"""Plugins that are loaded for some tests alone, beside those that are there."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import pytest

from timberframe_core.errors import AlreadyExistsError
from timberframe_core.ops.definition import registry
from timberframe_core.plugin import loader
from timberframe_core.plugin.host_ops import find_host_op
from timberframe_core.plugin.loader import Plugin
from timberframe_sdk import KernelDef, define_op, define_source, hookimpl, host_op
from timberframe_sdk.elementwise.sources import SOURCES
from timberframe_sdk.testing.loaded import loaded_plugin, temporary_ops

NAME = "for-some-tests"


def module() -> Any:
    made = types.ModuleType(NAME)

    @hookimpl
    def timberframe_kernels() -> list[KernelDef]:
        return []

    vars(made)["timberframe_kernels"] = timberframe_kernels
    return made


@pytest.fixture
def there() -> Iterator[Any]:
    """A module that is loaded already."""
    made = module()
    loader.registry.add(NAME, made)
    yield made
    loader.registry.remove(NAME)


def test_a_plugin_is_gone_after_the_block() -> None:
    with loaded_plugin(NAME, module()):
        assert loader.registry.plugins[NAME].loaded
    assert NAME not in loader.registry.plugins


def test_a_plugin_that_was_loaded_before_stays(there: Any) -> None:
    with loaded_plugin(NAME, there):
        pass
    assert loader.registry.plugins[NAME].loaded


def test_another_module_of_the_same_name_is_refused(there: Any) -> None:
    with pytest.raises(AlreadyExistsError, match=f"plugin '{NAME}': is loaded"), loaded_plugin(NAME, module()):
        pass


def test_an_installed_plugin_that_is_not_loaded_comes_back() -> None:
    installed = loader.registry.plugins[NAME] = Plugin(NAME, None)
    with loaded_plugin(NAME, module()):
        assert loader.registry.plugins[NAME] is not installed
    assert loader.registry.plugins.pop(NAME) is installed


def test_temporary_ops_are_gone_after_the_block() -> None:
    with temporary_ops():
        define_op("Test>Gone", inputs=["x: float"], doc="A test.", shape=lambda c: [], on_host=True)
        define_source("Test>Gone", floats="{0}")
        host_op("Test>Gone")(lambda call: [])
    assert registry.find("Test>Gone") is None
    assert find_host_op("Test>Gone") is None
    assert "Test>Gone" not in SOURCES


def test_ops_from_before_the_block_stay() -> None:
    with temporary_ops():
        define_op("Test>Early", inputs=["x: float"], doc="A test.", shape=lambda c: [])
        with temporary_ops():
            pass
        assert registry.find("Test>Early") is not None
