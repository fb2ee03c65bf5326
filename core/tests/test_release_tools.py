"""What a release is made with: versions, changelogs of change notes, an index to try it from."""

from __future__ import annotations

import datetime
import re
import shutil
import sys
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

import timberframe_core

WORKSPACE = Path(__file__).parents[2]
VERSION = timberframe_core.__version__
TEMPLATES = "sdk/src/timberframe_sdk/templates/*"
WITH_VERSION = (
    "CITATION.cff",
    "**/pyproject.toml",
    "plugins/cpu/meson.build",
    "*/src/**/*.py",
    "plugins/*/src/**/*.py",
)
"""The files that may have the version of all packages."""


@pytest.fixture(autouse=True)
def _tools_of_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(WORKSPACE / "release")


def package(workspace: Path, changelog: str, **notes: str) -> Path:
    """Returns a package with a changelog and notes, in an empty folder."""
    folder = workspace / "core"
    (folder / "changes").mkdir(parents=True)
    (folder / "CHANGELOG.md").write_text(changelog)
    for name, text in notes.items():
        (folder / "changes" / f"{name}.md").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# Changelog\n\n## Unreleased\n\n- Old.\n\n## 0.1.0\n\nFirst.\n", "- Old.\n- New,\n  in two lines.\n"),
        ("# Changelog\n\n## 0.1.0\n\nFirst.\n", "- New,\n  in two lines.\n"),
    ],
    ids=["unreleased", "released"],
)
def test_notes_become_entries_of_the_release(tmp_path: Path, before: str, after: str) -> None:
    import change_notes

    folder = package(tmp_path, before, topic="New,\nin two lines.\n")
    change_notes.release(tmp_path, "0.2.0", datetime.date(2026, 1, 2))
    text = (folder / "CHANGELOG.md").read_text()
    assert text == f"# Changelog\n\n## 0.2.0 (2026-01-02)\n\n{after}\n## 0.1.0\n\nFirst.\n"
    assert not list(folder.glob("changes/*.md"))


@pytest.mark.parametrize("text", ["", "- A list.\n", "# A heading\n"])
def test_a_note_that_is_no_entry_is_refused(tmp_path: Path, text: str) -> None:
    import change_notes

    folder = package(tmp_path, "# Changelog\n", topic=text)
    with pytest.raises(ValueError, match=r"topic\.md: is .*; the text of one entry is required"):
        change_notes.entry(folder / "changes/topic.md")


def test_a_version_reaches_what_packages_require_of_each_other() -> None:
    import set_version

    text = """version = "0.1.0"
requires = ["timberframe-core==0.1.0", "timberframe-cuda[cuda12]>=0.1,<0.2", "numpy>=2.0",
  "timberframe-cpu>=0.1,<0.2; sys_platform == 'linux'"]
"""
    found = set_version.with_requirements(set_version.with_version(text, "0.2.0rc1"), "0.2.0rc1")
    assert (
        found
        == """version = "0.2.0rc1"
requires = ["timberframe-core==0.2.0rc1", "timberframe-cuda[cuda12]>=0.2a0,<0.3", "numpy>=2.0",
  "timberframe-cpu>=0.2a0,<0.3; sys_platform == 'linux'"]
"""
    )


@pytest.fixture
def next_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copies of all files of packages that have this version or require it, after another one was set."""
    import set_version

    for file in {f for pattern in WITH_VERSION for f in WORKSPACE.glob(pattern)}:
        name = file.relative_to(WORKSPACE)
        if not any(part.startswith(".") or part == "build" for part in name.parts) and VERSION[:-2] in file.read_text():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, tmp_path / name)
    monkeypatch.setattr(set_version, "WORKSPACE", tmp_path)
    monkeypatch.setattr(sys, "argv", ["set_version.py", "7.8.0"])
    set_version.main()
    return tmp_path


def test_a_version_reaches_every_file_that_has_it(next_version: Path) -> None:
    own = [f for f in next_version.rglob("*") if f.is_file() and not {"templates", "examples"} & set(f.parts)]
    assert len(own) > 15
    old = re.compile(rf"[\"'= ]{re.escape(VERSION)}[\"'\n]")
    assert not [f for f in own if old.search(f.read_text())]


@pytest.mark.parametrize(
    ("folders", "newer"), [("*", False), ("plugins/*", False), (TEMPLATES, True), ("examples/*", True)]
)
def test_newer_versions_serve_packages_of_vendors_and_no_others(next_version: Path, folders: str, newer: bool) -> None:
    """Plugins that a vendor writes name the contract that they are for."""
    files = list(next_version.glob(f"{folders}/pyproject.toml"))
    assert files
    for file in files:
        found = re.findall(r"(timberframe[\w-]*)(?:\[\w+\])?([>=][^\";]+)", file.read_text())
        for name, specifier in found:
            assert SpecifierSet(specifier).contains("7.8.3") or specifier == "==7.8.0", (file, name)
            assert SpecifierSet(specifier).contains("7.9.0") is newer, (file, name)


def test_an_index_has_a_page_for_each_package(tmp_path: Path) -> None:
    import local_index

    dist = tmp_path / "dist"
    dist.mkdir()
    for name in ("timberframe_cpu-1.0.tar.gz", "timberframe_cpu-1.0-cp311-abi3-any.whl", "timberframe-1.0.tar.gz"):
        (dist / name).write_text("")
    assert local_index.make_index(dist, tmp_path / "index") == ["timberframe", "timberframe-cpu"]
    assert (tmp_path / "index/timberframe-cpu/index.html").read_text().count("<a href=") == 2
