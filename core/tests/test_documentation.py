"""The documents name files and folders that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "*/README.md", "plugins/*/README.md", "examples/*/README.md")
    for path in ROOT.glob(pattern)
    if not {"build", "reference"} & set(path.relative_to(ROOT).parts)
)

BUILT = ("plugins/cpu/build/", "docs/build/")
"""What is there only once it is built."""


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files(document: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text())
    assert not [link for link in links if not (document.parent / link).exists()]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_are_called_by_titles(document: Path) -> None:
    assert not re.findall(r"\[[^]\[]*\.md\]\([^)]*\)", document.read_text())


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_paths_of_this_repository_exist(document: Path) -> None:
    paths = re.findall(r"`((?:core|frontend|sdk|plugins|conformance|docs|examples)/[\w./-]+)`", document.read_text())
    assert not [path for path in paths if not (ROOT / path).exists() and not path.startswith(BUILT)]


def test_the_readme_has_the_size_of_the_frame() -> None:
    """Rounded to thousands of lines and to tens of ops, as the tree has them."""
    text = " ".join((ROOT / "README.md").read_text().split())
    found = re.search(r"([\d,]+) lines of Python, among them (\d+) ops .* TensorFlow's (\d+) other ops", text)
    assert found is not None
    frame, ops = ROOT / "core/src/timberframe_core", ROOT / "core/src/timberframe_ops"
    lines = sum(path.read_text().count("\n") for path in frame.rglob("*.py"))
    counts = [
        sum(map(len, json.loads(index.read_text()).values()))
        for index in (frame / "ops/definition/index.json", ops / "index.json")
    ]
    assert [int(n.replace(",", "")) for n in found.groups()] == [round(lines, -3), *(round(n, -1) for n in counts)]


def test_glossary_names_the_files_of_its_terms() -> None:
    rows = [line for line in (ROOT / "docs/glossary.md").read_text().splitlines() if line.startswith("|")]
    terms = [row for row in rows if not row.startswith(("|term|", "|-"))]
    paths = [re.search(r"\|`([^`]+)`\|$", row) for row in terms]
    assert terms
    assert all(paths)
    assert not [path[1] for path in paths if path and not (ROOT / path[1]).exists()]
