"""The arrows between packages and inside them, and what the core must not know.

An arrow is an import: at load, inside a function, or by `import_module` of a name that is written out.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

WORKSPACE = Path(__file__).parents[2]
ALLOWED = {
    "core/src/timberframe_core": {"timberframe_core"},
    "core/src/timberframe_ops": {"timberframe_core", "timberframe_ops"},
    "frontend/src/timberframe": {"timberframe_core", "timberframe_ops", "timberframe"},
    "frontend/src/timberframe_contrib": {"timberframe_core", "timberframe", "timberframe_contrib"},
    "sdk/src/timberframe_sdk": {"timberframe_core", "timberframe_ops", "timberframe_sdk"},
    "plugins/cpu/src/timberframe_cpu": {"timberframe_core", "timberframe_ops", "timberframe_sdk", "timberframe_cpu"},
    "plugins/accelerator/src/timberframe_accelerator": {
        "timberframe_core",
        "timberframe_ops",
        "timberframe_sdk",
        "timberframe_accelerator",
    },
    "plugins/opencl/src/timberframe_opencl": {
        "timberframe_core",
        "timberframe_sdk",
        "timberframe_accelerator",
        "timberframe_opencl",
    },
    "plugins/cuda/src/timberframe_cuda": {
        "timberframe_core",
        "timberframe_sdk",
        "timberframe_accelerator",
        "timberframe_cuda",
    },
    "plugins/ray/src/timberframe_ray": {"timberframe_sdk", "timberframe_ray"},
    "plugins/onnx/src/timberframe_onnx": {
        "timberframe_core",
        "timberframe",
        "timberframe_onnx",
        "timberframe_conformance",
    },
    "plugins/onnxruntime/src/timberframe_onnxruntime": {
        "timberframe_core",
        "timberframe_ops",
        "timberframe_sdk",
        "timberframe_onnx",
        "timberframe_onnxruntime",
    },
    "plugins/torch/src/timberframe_torch": {
        "timberframe_core",
        "timberframe_ops",
        "timberframe_sdk",
        "timberframe_torch",
    },
    "plugins/pjrt/src/timberframe_pjrt": {"timberframe_core", "timberframe_ops", "timberframe_sdk", "timberframe_pjrt"},
    "serving/src/timberframe_serving": {"timberframe_core", "timberframe", "timberframe_onnx", "timberframe_serving"},
    "conformance/src/timberframe_conformance": {
        "timberframe_core",
        "timberframe_ops",
        "timberframe",
        "timberframe_sdk",
        "timberframe_conformance",
    },
}
"""By import package, those that it may import."""
FACE = WORKSPACE / "frontend/src/timberframe/__init__.py"
"""The one file that type checkers see `timberframe_contrib` in: users know it as `tf.contrib` and the like."""
TEMPLATES = WORKSPACE / "sdk/src/timberframe_sdk/templates"
"""Packages for vendors to begin with, which the SDK has as data: they import what devices of vendors may."""
FOR_VENDORS = {"timberframe_sdk", "timberframe_accelerator"}
LAYERS = ("drawing", "ops", "graph", "graphdef", "config", "plugin", "compiler", "gradients", "runtime")
"""Parts of the core, each above those that it may import. All other modules stand below them."""


@functools.cache
def modules(package: str) -> Mapping[str, Path]:
    """Returns the files of a package's modules by their names; native modules are known by their stubs."""
    folder = WORKSPACE / package
    found = (p for kind in ("*.pyi", "*.py") for p in folder.rglob(kind))
    names = {p.relative_to(folder.parent).with_suffix(""): p for p in found if TEMPLATES not in p.parents}
    return {".".join(n.parts).removesuffix(".__init__"): path for n, path in names.items()}


def imports(path: Path, types: bool = True) -> set[str]:
    """Returns what a file imports, by whole names; types: also what only type checkers see."""
    run, checked = _imports(path)
    return run | checked if types else run


@functools.cache
def _imports(path: Path) -> tuple[set[str], set[str]]:
    """Returns what a file imports when it is loaded or runs, and what type checkers see in it."""
    run: set[str] = set()
    checked: set[str] = set()
    waiting: list[tuple[ast.AST, set[str]]] = [(ast.parse(path.read_text()), run)]
    while waiting:
        node, found = waiting.pop()
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING" | "_TYPE_CHECKING")):
                waiting += [(n, checked) for n in node.body] + [(n, found) for n in node.orelse]
                continue
            case ast.Import(names=names):
                found.update(alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names):
                found.update(f"{module}.{alias.name}" for alias in names)
            case ast.Call(
                func=ast.Name(id=name) | ast.Attribute(attr=name), args=[ast.Constant(value=str(module)), *_]
            ) if name in ("import_module", "__import__"):
                found.add(module)
        waiting += [(n, found) for n in ast.iter_child_nodes(node)]
    return run, checked


def arrows(known: Mapping[str, Path]) -> dict[str, set[str]]:
    """For each of these modules those among them that it imports when it is loaded or runs."""
    found: dict[str, set[str]] = {}
    for name, path in known.items():
        targets = {_module(imported, known) for imported in imports(path, types=False)}
        found[name] = {t for t in targets if t and t != name}
    return found


def _module(imported: str, known: Mapping[str, Path]) -> str:
    """Returns the module that an imported name is, or is in; empty for one of others."""
    while imported and imported not in known:
        imported = imported.rpartition(".")[0]
    return imported


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Returns the modules that reach each other, group by group: what is left when nobody
    imports the others, or by them.
    """
    rest = {name: set(targets) for name, targets in graph.items()}
    while True:
        imported = {t for targets in rest.values() for t in targets}
        ends = [n for n, targets in rest.items() if n not in imported or not targets & rest.keys()]
        if not ends:
            break
        for name in ends:
            del rest[name]
        for targets in rest.values():
            targets.difference_update(ends)
    reach = {n: _reached(n, rest) for n in rest}
    groups = {tuple(sorted(m for m in reach[n] if n in reach[m])) for n in rest}
    return sorted(list(g) for g in groups if g)


def _reached(start: str, graph: Mapping[str, set[str]]) -> set[str]:
    """Returns all modules that one imports, in however many steps."""
    found: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += graph[name]
    return found


@pytest.mark.parametrize("package", ALLOWED)
def test_packages_import_only_those_below_them(package: str) -> None:
    for path in modules(package).values():
        imported = imports(path, types=path != FACE)
        foreign = {m.split(".")[0] for m in imported if m.startswith("timberframe")} - ALLOWED[package]
        assert not foreign, f"{path} imports {foreign}"


def test_packages_for_vendors_import_what_devices_may() -> None:
    for path in TEMPLATES.glob("*/src/**/*.py"):
        own = {f"timberframe_acme{path.relative_to(TEMPLATES).parts[0]}"}
        foreign = {m.split(".")[0] for m in imports(path) if m.startswith("timberframe")} - FOR_VENDORS - own
        assert not foreign, f"{path} imports {foreign}"


@pytest.mark.parametrize("package", ALLOWED)
def test_modules_of_a_package_import_each_other_in_no_circle(package: str) -> None:
    assert circles(arrows(modules(package))) == []


def test_circles_are_found_through_imports_in_functions(tmp_path: Path) -> None:
    texts = {
        "top": "import a",
        "a": "from b import x",
        "b": "def f():\n    from importlib import import_module\n    import_module('a')",
        "c": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import top\nimport b",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    assert circles(arrows({name: tmp_path / f"{name}.py" for name in texts})) == [["a", "b"]]


def test_every_folder_of_the_core_is_a_layer() -> None:
    folders = {p.parent.name for p in (WORKSPACE / "core/src/timberframe_core").glob("*/__init__.py")}
    assert folders <= set(LAYERS)


@pytest.mark.parametrize("layer", ["", *LAYERS])
def test_layers_of_the_core_import_only_those_below_them(layer: str) -> None:
    height = {part: i for i, part in enumerate(LAYERS)}
    for name, targets in arrows(modules("core/src/timberframe_core")).items():
        if height.get(_part(name), -1) == height.get(layer, -1):
            wrong = {t for t in targets if height.get(_part(t), -1) > height.get(layer, -1)}
            assert not wrong, f"{name} imports {wrong}"


def _part(module: str) -> str:
    """Returns the folder of the core, or the module at its top, in which a module is."""
    return module.split(".")[1] if "." in module else ""


@pytest.mark.parametrize("package", ["core", "frontend", "sdk", "conformance"])
def test_every_folder_is_a_room_on_the_page(package: str) -> None:
    roots = (WORKSPACE / package / "src").glob("timberframe*")
    page = (WORKSPACE / "docs/architecture.md").read_text()
    folders = [p.name for root in roots for p in root.iterdir() if p.is_dir() and not p.name.startswith("_")]
    assert [name for name in folders if f"`{name}/`" not in page] == []


def test_the_core_names_no_device_type() -> None:
    for path in (WORKSPACE / "core/src").rglob("*.py"):
        found = re.search(r"""["'](CPU|GPU|CUDA|OPENCL)["']""", path.read_text())
        assert found is None, f"{path} has {found}"


def test_files_stay_readable_in_one_sitting() -> None:
    long = {
        str(path.relative_to(WORKSPACE)): lines
        for package in ALLOWED
        for path in (WORKSPACE / package).rglob("*.py")
        if (lines := path.read_text().count("\n")) > 450
    }
    assert not long
