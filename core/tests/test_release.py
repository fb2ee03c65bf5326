"""All packages of the workspace are released together, under one version and for the same Pythons."""

from __future__ import annotations

import ast
import platform
import re
import sys
import tomllib
import zipfile
from pathlib import Path
from types import SimpleNamespace
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
    "plugins/onnx",
    "plugins/onnxruntime",
    "plugins/torch",
    "plugins/pjrt",
    "plugins/opencl",
    "plugins/ray",
    "serving",
)
TEMPLATES = sorted(p.parent for p in WORKSPACE.glob("sdk/src/timberframe_sdk/templates/*/pyproject.toml"))
VERSION = timberframe_core.__version__


@pytest.fixture(autouse=True)
def _tools_of_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(WORKSPACE / "release")


def project(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    return found


def requirements(folder: Path) -> list[Requirement]:
    """Returns what a package requires of Timberframe."""
    found = project(folder)
    texts = [*found["dependencies"], *(t for extra in found.get("optional-dependencies", {}).values() for t in extra)]
    return [r for r in map(Requirement, texts) if r.name.startswith("timberframe")]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_has_the_version_of_all(package: str) -> None:
    assert project(WORKSPACE / package)["version"] == VERSION


def test_the_build_file_of_the_native_code_has_that_version() -> None:
    text = (WORKSPACE / "plugins/cpu/meson.build").read_text()
    assert re.findall(r"version: '([^']+)',\n  license", text) == [VERSION]


def test_all_packages_are_for_the_same_pythons_and_those_to_come() -> None:
    assert {project(WORKSPACE / p)["requires-python"] for p in PACKAGES} == {">=3.11"}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_has_the_licence_keywords_and_classifiers(package: str) -> None:
    found = project(WORKSPACE / package)
    assert (WORKSPACE / package / "LICENSE").read_bytes() == (WORKSPACE / "LICENSE").read_bytes()
    assert found["license-files"] == ["LICENSE"]
    assert found["keywords"]
    assert "Typing :: Typed" in found["classifiers"]


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


def test_a_compiler_for_wheels_compiles_with_gcc_and_links_against_an_old_glibc(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import cc

    monkeypatch.setattr(cc.shutil, "which", lambda name: None)
    assert cc.command("x86_64", "2.28", ["-c", "a.c"])[-2:] == ["-c", "a.c"]
    assert "ziglang" not in cc.command("x86_64", "2.28", ["-c", "-shared", "a.c"])
    monkeypatch.setattr(cc.subprocess, "run", lambda *_, **__: SimpleNamespace(stdout="libgcc.a\n"))
    linked = cc.command(platform.machine(), "2.28", ["-shared", "a.o", "-o", "a.so"])
    assert linked[1:6] == ["-m", "ziglang", "cc", "-target", f"{platform.machine()}-linux-gnu.2.28"]
    assert linked.index("a.o") < linked.index("libgcc.a"), "zig's own runtime library would bring its exp and memcpy"


def test_no_wheel_is_built_for_a_system_that_nobody_has_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import wheels

    monkeypatch.setattr(wheels, "sources_and_pure_wheels", lambda: None)
    monkeypatch.setattr(wheels, "DIST", tmp_path / "dist")
    monkeypatch.setattr(wheels.platform, "system", lambda: "Darwin")
    monkeypatch.setattr(sys, "argv", ["wheels.py"])
    with pytest.raises(SystemExit, match=r"no timberframe-cpu for Darwin: .* nobody has run the tests there"):
        wheels.main()


def test_a_wheel_with_another_module_than_one_is_refused(tmp_path: Path) -> None:
    import wheels

    wheel = tmp_path / "timberframe_cpu-1-cp311-abi3-manylinux_2_28_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        for name in ("LICENSE.openblas", "_native.abi3.so", "_native.cpython-311.so", "libscipy_openblas.so"):
            file.writestr(f"timberframe_cpu/{name}", "")
    with pytest.raises(wheels.ReleaseError, match=r"_native.cpython-311.so.*; one module, and OpenBLAS"):
        wheels.check(wheel, "x86_64")


MODULES = {
    "google.protobuf": "protobuf",
    "PIL": "pillow",
    "absl": "absl-py",
    "cupy": "cupy-cuda12x",
    "grpc": "grpcio",
    "opentelemetry.exporter.otlp.proto.http": "opentelemetry-exporter-otlp-proto-http",
    "opentelemetry.sdk": "opentelemetry-sdk",
    "opentelemetry": "opentelemetry-api",
    "re2": "google-re2",
}
"""The packages of modules that have another name."""
UNSEEN = {
    "plugins/cpu": {"cffi"},  # its compiled module imports it
    "plugins/cuda": {"cupy-cuda13x"},  # the other package with the module cupy
    "conformance": {"pytest-benchmark", "pytest-xdist"},  # pytest loads them
    "serving": {"httptools"},  # uvicorn loads it
}
"""What packages use without an import of their own."""
OPTIONAL = {
    "conformance": {"jax", "pyopencl", "tensorflow", "torch", "typing-extensions"},
    "plugins/torch": {"torch"},  # it comes with the backend that is judged
    "plugins/pjrt": {"jax"},  # it comes with the plugin that is judged
}
"""What packages import where it is installed, or for type checkers alone."""


def imported(folder: Path) -> set[str]:
    """Returns the packages of others that a package's modules import, anywhere in them."""
    names: set[str] = set()
    for file in folder.glob("src/**/*.py"):
        if "templates" not in file.parts:  # these become packages of their own
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Import):
                    names.update(alias.name for alias in node.names)
                elif isinstance(node, ast.ImportFrom):
                    names.add(node.module or "")
    found = {next((p for m, p in MODULES.items() if f"{n}.".startswith(f"{m}.")), n.split(".")[0]) for n in names}
    return {n.replace("_", "-") for n in found - sys.stdlib_module_names if not n.startswith("timberframe")}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_requires_what_it_imports_and_nothing_else(package: str) -> None:
    found = project(WORKSPACE / package)
    texts = [*found["dependencies"], *(t for extra in found.get("optional-dependencies", {}).values() for t in extra)]
    required = {r.name.replace("_", "-") for r in map(Requirement, texts) if not r.name.startswith("timberframe")}
    used = imported(WORKSPACE / package) | UNSEEN.get(package, set())
    assert used - OPTIONAL.get(package, set()) == required


@pytest.mark.parametrize(
    ("system", "machine", "has_wheel"),
    [("linux", "x86_64", True), ("linux", "aarch64", True), ("darwin", "arm64", False), ("win32", "AMD64", False)],
)
def test_the_suite_asks_for_kernels_of_the_cpu_only_where_there_is_a_wheel(
    system: str, machine: str, has_wheel: bool
) -> None:
    environment = {"sys_platform": system, "platform_machine": machine, "extra": ""}
    asked, found = ["timberframe-conformance"], set[str]()
    folders = {project(WORKSPACE / p)["name"]: WORKSPACE / p for p in PACKAGES}
    while asked:
        name = asked.pop()
        found.add(name)
        texts = project(folders[name])["dependencies"]
        needed = [r for r in map(Requirement, texts) if r.marker is None or r.marker.evaluate(environment)]
        asked += [r.name for r in needed if r.name in folders and r.name not in found]
    assert ("timberframe-cpu" in found) is has_wheel
    assert {"timberframe-core", "timberframe-sdk", "timberframe"} <= found
