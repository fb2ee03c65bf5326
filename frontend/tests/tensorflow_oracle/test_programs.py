"""The programs of examples/programs print the same numbers with TensorFlow: they start from equal seeds.

TensorFlow 2.21 has no tf.contrib, no tf.estimator and no batch normalisation of tf.layers; programs that need these are
left out.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3] / "examples/programs"
LEFT_OUT = ("tf.contrib", "tf.estimator", "tf.layers.batch_normalization")
EAGER = "tf.enable_eager_execution"
TOLERANCE = {"image_pipeline": 1e-2}
"""The greatest relative difference of numbers, 5e-3 for others. TensorFlow decodes JPEG by a less exact transform."""


def programs() -> list[Path]:
    return [p for p in sorted(FOLDER.glob("*.py")) if not any(name in p.read_text() for name in LEFT_OUT)]


def theirs(program: Path) -> str:
    """Returns what a program prints with TensorFlow."""
    script = Path(__file__).parent / "programs_on_tensorflow.py"
    eager = ["--eager"] if EAGER in program.read_text() else []
    done = subprocess.run([sys.executable, script, *eager, program], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout


def compared(output: str) -> list[tuple[str, list[float]]]:
    """Returns the text of each line and its numbers; drawings are left out."""
    number = r"(?<![\w.])-?\d+(?:\.\d+)?(?:e-?\d+)?"
    lines = [line for line in output.splitlines() if re.search("[a-z]{3}", line)]
    return [(re.sub(number, "#", line), [float(n) for n in re.findall(number, line)]) for line in lines]


@pytest.mark.parametrize("program", programs(), ids=lambda path: path.stem)
@pytest.mark.usefixtures("tensorflow")
def test_program_gives_the_numbers_that_tensorflow_gives(program: Path) -> None:
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found, wanted = compared(done.stdout), compared(theirs(program))
    assert [text for text, _ in found] == [text for text, _ in wanted]
    for (text, ours), (_, right) in zip(found, wanted, strict=True):
        # 0.004: two of the test digits, at an accuracy
        assert ours == pytest.approx(right, rel=TOLERANCE.get(program.stem, 5e-3), abs=4e-3), text
