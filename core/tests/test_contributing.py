"""The recipes of CONTRIBUTING.md name files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

WORKSPACE = Path(__file__).parents[2]
TEXT = (WORKSPACE / "CONTRIBUTING.md").read_text()
PATHS = sorted({*re.findall(r"`([\w<>/.-]+/[\w<>/.-]*)`", TEXT), *re.findall(r"\]\(([^)#]+)\)", TEXT)})


def test_there_are_six_recipes() -> None:
    assert re.findall(r"^## An? ([\w ]+)$", TEXT, re.M) == ["op", "kernel", "host op", "device", "pass", "optimizer"]


@pytest.mark.parametrize("path", PATHS)
def test_recipes_name_files_that_exist(path: str) -> None:
    assert list(WORKSPACE.glob(re.sub("<[^>]*>", "*", path)))
