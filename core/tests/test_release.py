"""All packages of the workspace are released together, under one version and for the same Pythons."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import timberframe_core
from timberframe_core.plugin.version import CONTRACT

WORKSPACE = Path(__file__).parents[2]
PACKAGES = (
    "core",
    "frontend",
    "sdk",
    "conformance",
    "plugins/accelerator",
    "plugins/cpu",
    "plugins/cuda",
    "plugins/opencl",
)
TEMPLATES = sorted(p.parent for p in WORKSPACE.glob("sdk/src/timberframe_sdk/templates/*/pyproject.toml"))
VERSION = timberframe_core.__version__


def project(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    return found


def requirements(folder: Path) -> list[Requirement]:
    """What a package requires of Timberframe."""
    found = project(folder)
    texts = [*found["dependencies"], *(t for extra in found.get("optional-dependencies", {}).values() for t in extra)]
    return [r for r in map(Requirement, texts) if r.name.startswith("timberframe")]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_has_the_version_of_all(package: str) -> None:
    assert project(WORKSPACE / package)["version"] == VERSION


def test_the_build_file_of_the_native_code_has_that_version() -> None:
    text = (WORKSPACE / "plugins/cpu/meson.build").read_text()
    assert re.findall(r"version: '([^']+)',\n  license", text) == [VERSION]


def test_all_packages_are_for_the_same_pythons() -> None:
    assert len({project(WORKSPACE / p)["requires-python"] for p in PACKAGES}) == 1


@pytest.mark.parametrize("folder", [*(WORKSPACE / p for p in PACKAGES), *TEMPLATES], ids=lambda p: p.name)
def test_packages_require_this_release_of_each_other(folder: Path) -> None:
    assert all(SpecifierSet(str(r.specifier)).contains(VERSION) for r in requirements(folder))


@pytest.mark.parametrize("folder", TEMPLATES, ids=lambda p: p.name)
def test_packages_for_vendors_are_for_the_contract_of_this_release(folder: Path) -> None:
    (device,) = folder.glob("src/*/device.py")
    major, minor = CONTRACT
    written = re.search(r"^timberframe_contract = \((\d+), (\d+)\)$", device.read_text(), re.MULTILINE)
    assert written is not None
    assert int(written[1]) == major
    assert int(written[2]) <= minor


def test_each_package_says_what_it_changes() -> None:
    for package in PACKAGES:
        assert f"## {VERSION}" in (WORKSPACE / package / "CHANGELOG.md").read_text(), package
