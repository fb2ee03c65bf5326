"""A device to judge that needs no plugin package, and the same as an installed plugin for worker processes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from timberframe_conformance.options import Options
from timberframe_conformance.target import Target, open_target
from timberframe_core.plugin import loader
from timberframe_sdk import reference_device


@pytest.fixture(scope="session")
def plugin_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder on the path of this process and its children: an installed package that names the reference device."""
    folder = tmp_path_factory.mktemp("plugins")
    information = folder / "reference_device-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: reference-device\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[timberframe]\nreference = timberframe_sdk.reference_device\n")
    old = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(p for p in (str(folder), old) if p)
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))
    if old is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = old


@pytest.fixture(scope="session")
def target(plugin_path: Path) -> Target:
    """The reference device."""
    if "reference" not in loader.registry.plugins:
        loader.registry.add("reference", reference_device)
    return open_target(Options("reference"))


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
