"""The programs of examples/programs run, and show what they assert; each is written for TensorFlow 1."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import timberframe as tf
from timberframe.compat.checking import check
from timberframe_core.runtime.devices import devices_for

FOLDER = Path(__file__).parents[2] / "examples/programs"
PROGRAMS = sorted(FOLDER.glob("*.py"))
OUTPUTS = dict(
    re.findall(r"```\n\$ python examples/programs/(\w+)\.py\n(.*?)```", (FOLDER / "README.md").read_text(), re.S)
)


def outline(output: str) -> list[str]:
    """Returns what an output has in front of its results: those differ in their last digits from
    one processor to another.
    """
    lines = [line for line in output.splitlines() if re.search("[a-z]{3}", line)]
    return [re.sub(r"\d+(\.\d+)?", "0", re.split(": |;", line)[0]) for line in lines]


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_program_runs_and_prints_what_the_page_says(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not any(d.type == "CPU" for d in devices_for(tf.SessionConfig())):
        pytest.skip("the CPU's plugin is not installed")
    if "enable_eager_execution" in program.read_text():  # which is for all of a process
        done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        printed = done.stdout
    else:
        with tf.Graph().as_default():
            runpy.run_path(str(program), run_name="__main__")
        printed = capsys.readouterr().out
    assert outline(printed) == outline(OUTPUTS[program.stem])


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_program_is_short_and_uses_names_of_tensorflow_1(program: Path) -> None:
    text = program.read_text()
    assert text.count("\n") <= 100
    assert check(text.replace("import timberframe as tf", "import tensorflow as tf")) == []


def test_the_page_lists_all_programs() -> None:
    listed = re.findall(r"^\|\[(\w+\.py)\]\(\1\)\|", (FOLDER / "README.md").read_text(), re.MULTILINE)
    assert listed == [path.name for path in PROGRAMS]
