"""A device that needs no plugin package, and the same as an installed plugin for worker processes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from timberframe_conformance.options import Options
from timberframe_conformance.target import Target, open_target
from timberframe_core.ops.definition import registry
from timberframe_core.plugin import loader
from timberframe_sdk.testing import reference_device
from timberframe_sdk.testing.installed import installed_plugin


@pytest.fixture(scope="session")
def plugin_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder on the path of this process and its children: an installed package that names the reference device."""
    folder = tmp_path_factory.mktemp("plugins")
    with installed_plugin(folder, "reference", reference_device.__name__):
        yield folder


@pytest.fixture(scope="module")  # plugins that tests of other files add make new devices
def target(plugin_path: Path) -> Target:
    """The reference device."""
    if "reference" not in loader.registry.plugins:
        loader.registry.add("reference", reference_device)
    return open_target(Options("reference"))


@pytest.fixture
def redefine() -> Iterator[Callable[..., None]]:
    """``redefine("Tanh", gradient=...)`` changes the definition of an op until the test ends."""
    right = []

    def change(name: str, **changes: Any) -> None:
        right.append(registry.substitute(dataclasses.replace(registry.get(name), **changes)))

    yield change
    for op in reversed(right):
        registry.substitute(op)


@pytest.fixture
def command(target: Target, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs the command `conformance` in this process: ``status, output, errors = command("list", ...)``."""
    from timberframe_conformance.cli import main

    def run(*arguments: str) -> tuple[int, str, str]:
        try:
            status = main(arguments)
        except SystemExit as e:
            status = int(e.code or 0)
        output, errors = capsys.readouterr()
        return status, output, errors

    return run
