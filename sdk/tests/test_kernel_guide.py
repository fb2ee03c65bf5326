"""The code in docs/write-a-kernel.md works as the page says, put together as the page puts it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "write-a-kernel.md").read_text()
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", PAGE, re.DOTALL)
LOADED = """
import timberframe_sdk
import timberframe_scale

timberframe_sdk.register_plugin("scale", timberframe_scale)
"""


def block(beginning: str, language: str = "python") -> str:
    """Returns the block of code that has this text."""
    return next(text for kind, text in BLOCKS if kind == language and beginning in text)


def output_of(program: str) -> str:
    """Returns the block below a program."""
    return PAGE.split(f"{program}```\n\n```\n", 1)[1].split("```")[0]


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the package timberframe_scale, with all that the page adds to it, but for what is in C."""
    folder = tmp_path_factory.mktemp("guide")
    module = folder / "timberframe_scale"
    module.mkdir()
    parts = ('"Acme>Scale",\n    inputs', '"Acme>Swing"', "def whole_vectors", "DENSE = (")
    (module / "__init__.py").write_text("\n".join(block(part) for part in parts))
    return folder


def run(program: str, package: Path, loaded: str = LOADED) -> str:
    """Returns what a program prints that has the package."""
    (package / "program.py").write_text(f"{loaded}\n{program}")
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=package, text=True, capture_output=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_program_prints_what_the_page_says(package: Path) -> None:
    program = block('apply_op("Acme>Scale", [x], {"factor": 3.0})')
    assert run(program, package) == output_of(program)


def test_an_elementwise_op_runs_by_its_source(package: Path) -> None:
    program = """
import timberframe as tf
with tf.Session() as session:
    print(*session.run(tf.raw_ops.Acme_Swing(x=[0.0, 1.0], factor=2.0)))
"""
    np.testing.assert_allclose([float(y) for y in run(program, package).split()], 2 * np.tanh([0.0, 1.0]), rtol=1e-6)


def test_the_kernel_for_whole_vectors_runs_what_it_takes_alone(package: Path) -> None:
    program = """
import numpy as np
import timberframe as tf
with tf.Session() as session:
    for size in (16, 7):
        x = tf.placeholder(tf.float32, [size])
        y, feeds = tf.raw_ops.Acme_Scale(x=x, factor=3.0), {x: np.ones(size)}
        print(session.run(y, feeds).sum(), session.explain(y, feeds).kernels[0].kernel)
"""
    printed = run(program, package).split()
    assert printed == ["48.0", "timberframe_scale.scale_vectors", "21.0", "timberframe_scale.scale"]


def test_the_kernel_for_an_op_that_exists_takes_the_place_of_the_cpus(tmp_path: Path) -> None:
    (tmp_path / "timberframe_softsign.py").write_text(block('"Softsign", "CPU"'))
    program = """
import timberframe as tf
x = tf.placeholder(tf.float32, [3])
y, feeds = tf.nn.softsign(x), {x: [-1.0, 0.0, 3.0]}
with tf.Session() as session:
    print(*session.run(y, feeds), session.explain(y, feeds).kernels[0].kernel)
"""
    loaded = LOADED.replace("scale", "softsign")
    assert run(program, tmp_path, loaded) == "-0.5 0.0 0.75 timberframe_softsign.softsign\n"


def test_the_kernel_for_several_nodes_runs_them_as_one(package: Path) -> None:
    program = """
import numpy as np
import timberframe as tf
x, bias = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.float32, [2])
y = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, tf.ones([3, 2])), bias))
feeds = {x: np.ones((2, 3)), bias: [1.0, -9.0]}
with tf.Session() as session:
    print(session.run(y, feeds).tolist(), "Acme>Dense" in str(session.explain(y, feeds)))
"""
    assert run(program, package) == "[[4.0, 0.0], [4.0, 0.0]] True\n"


def with_kernel_in_c(package: Path, folder: Path) -> None:
    """Writes the package with the kernel in C, as it is built."""
    project = block('name = "timberframe-scale"', "toml").split("[project]")[1].split("[tool.hatch")[0]
    (folder / "pyproject.toml").write_text(block('"setuptools', "toml") + "[project]" + project)
    (folder / "setup.py").write_text(block("from setuptools import"))
    module = folder / "src" / "timberframe_scale"
    module.mkdir(parents=True)
    (module / "scale.c").write_text(block("tf_fail", "c"))
    (module / "native.py").write_text(block("NativeLibrary(Path"))
    text = (package / "timberframe_scale" / "__init__.py").read_text()
    with_both = text.replace("@hookimpl\ndef timberframe_kernels():\n    return KERNELS\n", block("native.KERNELS"))
    assert with_both != text
    (module / "__init__.py").write_text(with_both)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed")
def test_the_wheel_has_the_kernel_in_c_which_refuses_negative_numbers(package: Path, tmp_path: Path) -> None:
    with_kernel_in_c(package, tmp_path)
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(tmp_path)]
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", *options, str(tmp_path)],
        env={**os.environ, "CFLAGS": "-Wall -Wextra -Werror"},
        check=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.startswith("timberframe_scale-0.1.0-cp311-abi3-")
    shutil.unpack_archive(wheel, tmp_path / "installed", "zip")
    printed = run(block('"_kernel": "checked"'), tmp_path / "installed")
    printed = re.sub(r"program\.py:\d+", "label.py:5", re.sub(r"\S+/program\.py", "program.py", printed))
    assert printed == output_of(block('"_kernel": "checked"'))
