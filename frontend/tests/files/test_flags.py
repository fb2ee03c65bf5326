"""tf.flags and tf.app: settings from the command line. Each program runs in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DEFINITIONS = """
import timberframe as tf
flags = tf.app.flags
flags.DEFINE_string("name", "none", "a name")
flags.DEFINE_integer(flag_name="steps", default_value=3, docstring="a number")
tf.flags.DEFINE_boolean("fast", False, "whether")
flags.DEFINE_float("rate", 0.5, "a rate")
FLAGS = tf.flags.FLAGS
"""


def program(folder: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = folder / "program.py"
    path.write_text(DEFINITIONS + text)
    return subprocess.run([sys.executable, path, *arguments], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.slow
def test_flags_are_read_when_they_are_first_used(tmp_path: Path) -> None:
    done = program(
        tmp_path, "print(FLAGS.name, FLAGS.steps, FLAGS.fast, FLAGS.rate)", "--name=x", "--steps", "5", "--fast"
    )
    assert done.stdout == "x 5 True 0.5\n"


@pytest.mark.slow
def test_run_calls_main_and_ends_with_its_result(tmp_path: Path) -> None:
    text = "def main(argv):\n  print(argv[1:], FLAGS.steps)\n  return 3\nif __name__ == '__main__': tf.app.run()"
    done = program(tmp_path, text, "--steps=7", "other", "--unknown=1")
    assert done.stdout == "['other', '--unknown=1'] 7\n"
    assert done.returncode == 3


@pytest.mark.slow
def test_a_wrong_value_is_refused(tmp_path: Path) -> None:
    done = program(tmp_path, "tf.app.run(lambda _: None)", "--steps=many")
    assert done.returncode != 0
    assert "flag --steps=many" in done.stderr


@pytest.mark.slow
def test_flags_as_older_programs_read_and_print_them(tmp_path: Path) -> None:
    text = "FLAGS._parse_flags()\nprint(FLAGS.name, 'steps' in FLAGS.__flags)"
    assert program(tmp_path, text, "--name=x").stdout == "x True\n"


def test_a_flag_that_abseils_logging_has_may_be_defined(tmp_path: Path) -> None:
    text = "import absl.logging\nflags.DEFINE_string('log_dir', 'here', 'a folder')\nprint(FLAGS.log_dir)"
    done = program(tmp_path, text, "--log_dir=there")
    assert (done.stdout, done.stderr) == ("there\n", "")
