"""The files of packages that `make peers` has downloaded into the folder that TIMBERFRAME_PEER_FILES names."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Returns the folder with the contents of a package's wheel, by the name of the wheel's file up to the version."""
    given = os.environ.get("TIMBERFRAME_PEER_FILES")
    if not given:
        pytest.skip("TIMBERFRAME_PEER_FILES names no folder; `make peers` does")
    folder = Path(given)
    opened: dict[str, Path] = {}

    def contents(name: str) -> Path:
        if name not in opened:
            (wheel,) = folder.glob(f"{name}-*.whl")
            opened[name] = tmp_path_factory.mktemp(name)
            with zipfile.ZipFile(wheel) as file:
                file.extractall(opened[name])
        return opened[name]

    return contents
