"""Plugins that cannot be loaded: each is reported with its file and line, and the others go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from timberframe_core.failures import describe_failure
from timberframe_core.plugin import loader
from timberframe_sdk.testing.installed import installed_plugin

Loaded = Callable[[str], loader.PluginRegistry]


@pytest.fixture
def load(tmp_path: Path, request: pytest.FixtureRequest) -> Loaded:
    """A registry that has loaded a plugin `broken`, whose module has this text, and one named `whole`."""

    def make(text: str) -> loader.PluginRegistry:
        name = f"broken_{request.node.name}"
        (tmp_path / f"{name}.py").write_text(text)
        (tmp_path / "other").mkdir()
        with (
            installed_plugin(tmp_path, "broken", name),
            installed_plugin(tmp_path / "other", "whole", "timberframe_sdk.numpy_device"),
        ):
            registry = loader.PluginRegistry()
            registry.load(["broken", "whole"])
        return registry

    return make


def test_a_module_that_raises_is_reported_with_file_and_line(load: Loaded) -> None:
    registry = load("import os\nraise ValueError('no driver')\n")
    described = describe_failure(registry.failures()["broken"])
    assert described.startswith("ValueError: no driver  [")
    assert described.endswith(".py:2]")


def test_a_module_that_raises_leaves_other_plugins_loaded(load: Loaded) -> None:
    assert load("raise ValueError('no driver')\n").plugins["whole"].loaded


def test_a_module_that_exits_is_a_failed_plugin(load: Loaded) -> None:
    registry = load("import sys\n\nsys.exit('no licence')\n")
    assert describe_failure(registry.failures()["broken"]).startswith("SystemExit: no licence  [")
    assert registry.plugins["whole"].loaded


def test_a_syntax_error_is_reported_with_its_line(load: Loaded) -> None:
    described = describe_failure(load("x = 1\ny = (\n").failures()["broken"])
    assert described.startswith("SyntaxError: ")
    assert described.endswith(".py:2]")


def test_a_missing_module_is_reported_where_it_is_imported(load: Loaded) -> None:
    described = describe_failure(load("\n\nimport acme_driver_that_is_not_there\n").failures()["broken"])
    assert described.startswith("ModuleNotFoundError: No module named 'acme_driver_that_is_not_there'  [")
    assert described.endswith(".py:3]")


def test_a_hook_that_raises_is_reported_with_file_and_line(load: Loaded) -> None:
    text = "import timberframe_sdk as sdk\n@sdk.hookimpl\ndef timberframe_kernels():\n    return [1 / 0]\n"
    described = describe_failure(load(text).failures()["broken"])
    assert described.startswith("ZeroDivisionError: division by zero  [")
    assert described.endswith(".py:4]")


def test_what_the_frame_itself_refuses_needs_no_line(load: Loaded) -> None:
    described = describe_failure(load("timberframe_contract = (99, 0)\n").failures()["broken"])
    assert described.startswith("InternalError: it is written for version 99.0 of the contract")
    assert "[" not in described


def test_a_plugin_for_an_older_contract_is_named_with_its_package_and_version(load: Loaded) -> None:
    described = describe_failure(load("timberframe_contract = (1, 0)\n").failures()["broken"])
    assert described.endswith(": upgrade the plugin (broken 1.0)")


def test_a_plugin_for_a_newer_contract_is_named_with_its_package_and_version(load: Loaded) -> None:
    described = describe_failure(load("timberframe_contract = (99, 0)\n").failures()["broken"])
    assert described.endswith(": upgrade timberframe-sdk (the plugin is broken 1.0)")


def test_a_failed_plugin_is_logged_once(load: Loaded, caplog: pytest.LogCaptureFixture) -> None:
    registry = load("raise ValueError('no driver')\n")
    registry.load(["broken", "whole"])
    (record,) = caplog.records
    assert record.getMessage().startswith("plugin 'broken' is left out: ValueError: no driver  [")


def test_hardware_that_is_absent_is_not_logged(load: Loaded, caplog: pytest.LogCaptureFixture) -> None:
    registry = load("import timberframe_sdk as sdk\nraise sdk.UnavailableError('no GPU')\n")
    assert "broken" in registry.failures()
    assert not caplog.records


def test_an_excluded_plugin_is_not_imported(load: Loaded, tmp_path: Path) -> None:
    with installed_plugin(tmp_path, "crashing", "timberframe_sdk.numpy_device"):
        registry = loader.PluginRegistry()
        registry.exclude("crashing", "it crashed")
        assert not registry.load(["crashing"])
        assert describe_failure(registry.failures()["crashing"]) == "InternalError: it crashed"


def test_a_watcher_sees_which_plugin_runs(tmp_path: Path) -> None:
    seen: list[str] = []
    with installed_plugin(tmp_path, "watched", "timberframe_sdk.numpy_device"):
        registry = loader.PluginRegistry()
        registry.watch = lambda plugin: seen.append(plugin.name if plugin else "")
        (plugin,) = registry.load(["watched"])
        registry.make_devices(plugin, {})
    assert seen == ["watched", "", "watched", "", "watched", ""]
