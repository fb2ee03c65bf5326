"""Programs of guides and of packages' READMEs run in processes of their own, and end as their pages say."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

from timberframe_sdk.testing.installed import installed_plugin

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


def block(page: str, text: str) -> re.Match[str]:
    """Returns the block of a page that has a text, [1], and the output below it, [2]."""
    blocks = re.finditer(r"```python\n(.*?)```(?:[^`]*\n```\n(.*?)```)?", (ROOT / page).read_text(), re.DOTALL)
    (found,) = (b for b in blocks if text in b[1])
    return found


def end_of(program: str, folder: Path, *command: str) -> list[str]:
    """Returns the lines that a program prints as `example.py`, and its error's, without the
    traceback and the folder.
    """
    (folder / "example.py").write_text(program)
    done = subprocess.run(
        [sys.executable, *command, "example.py"], cwd=folder, text=True, capture_output=True, timeout=120, check=False
    )
    assert done.returncode == 0 or "Error: " in done.stderr.splitlines()[-1], done.stderr
    error = done.stderr.splitlines()[-1:] if done.returncode else []
    return [line.replace(f"{folder}/", "") for line in (*done.stdout.splitlines(), *error)]


@pytest.mark.parametrize(
    ("page", "texts", "of_the_machine", "plugins"),
    [
        ("docs/write-a-pass.md", ["CUBES = Pass", 'register_plugin("cubes"'], 0, "-opencl,-cuda"),
        ("docs/write-a-target.md", ['tf.Session("process:2"'], 0, "-opencl,-cuda"),
        ("plugins/cpu/README.md", ["available_isas"], 1, "-opencl,-cuda"),
        ("plugins/opencl/README.md", ["fetch_on_device"], 0, "-cuda"),
    ],
)
def test_a_program_ends_as_its_page_says(
    page: str, texts: list[str], of_the_machine: int, plugins: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyopencl" if "opencl" in page else "timberframe_cpu")
    monkeypatch.setenv("TIMBERFRAME_PLUGINS", plugins)
    blocks = [block(page, text) for text in texts]
    imports = "" if "import" in blocks[0][1] else "import timberframe as tf\n"
    found = end_of(imports + "".join(b[1] for b in blocks), tmp_path)
    assert found[of_the_machine:] == blocks[-1][2].splitlines()[of_the_machine:]


def test_a_pass_over_graphs_rewrites_what_its_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("timberframe_cpu")
    monkeypatch.setenv("TIMBERFRAME_PLUGINS", "-opencl,-cuda")
    used = """
import timberframe as tf
import timberframe_sdk as sdk

class Plugin:
    timberframe_contract = (2, 0)
    timberframe_passes = sdk.hookimpl(lambda: [RELUS])

sdk.register_plugin("relus", Plugin)
x = tf.placeholder(tf.float32, [2])
y = tf.maximum(x, 0.0, name="most")
with tf.Session() as session:
    print(session.run(y, {x: [-1, 2]}), session.explain(y, {x: [-1, 2]}).rewritten("relus"))
"""
    assert end_of(block("docs/write-a-pass.md", "RELUS = Pass")[1] + used, tmp_path) == ["[0. 2.] ('most',)"]


def test_kernels_of_a_package_cover_nodes_as_its_readme_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("timberframe_cpu")
    monkeypatch.setenv("TIMBERFRAME_PLUGINS", "-opencl,-cuda")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "examples/conv_pack/src"))
    layer = block("examples/conv_pack/README.md", "images}")
    with installed_plugin(tmp_path, "conv_pack", "timberframe_conv_pack"):
        assert end_of(layer[1], tmp_path) == layer[2].splitlines()


def test_an_accelerator_runs_a_kernel_that_can_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyopencl")
    monkeypatch.setenv("TIMBERFRAME_PLUGINS", "-opencl,-cuda")
    page = "docs/write-an-accelerator.md"
    device, program = block(page, "class AcmeDevice")[1], block(page, '{"_kernel": "checked"}')
    kernels = "return accelerator_kernels(TYPE)"
    assert kernels in device
    more = device.replace(kernels, f"{kernels} + relu.KERNELS + root.KERNELS")
    (tmp_path / "timberframe_acmecl.py").write_text(f"import relu, root\n{more}")
    for name in ("relu", "root"):
        (tmp_path / f"{name}.py").write_text(block(page, f"TF_KERNEL acme_{name}")[1])
    with installed_plugin(tmp_path, "acmecl", "timberframe_acmecl"):
        assert end_of(program[1], tmp_path) == program[2].splitlines()


def test_a_program_for_tensorflow_runs_as_the_guide_to_migration_says(tmp_path: Path) -> None:
    program = block("docs/migrate.md", "import tensorflow as tf")[1]
    assert end_of(program, tmp_path, "-m", "timberframe.compat", "check") == ["nothing is missing"]
    assert end_of(program, tmp_path, "-m", "timberframe.compat", "run") == ["loss 0.0"]


def test_an_allocator_refuses_what_its_readme_says() -> None:
    shown = block("sdk/README.md", ">>>")[1]
    raised = r"Traceback (most recent call last):\n  ...\ntimberframe_core.errors.\1 \2\n"
    text, count = re.subn(r"^(\w+Error: .*)\n(\w.*)\n", raised, shown, flags=re.MULTILINE)
    found = doctest.DocTestRunner().run(doctest.DocTestParser().get_doctest(text, {}, "sdk/README.md", None, 0))
    assert (count, found.failed, found.attempted) == (1, 0, 5)
