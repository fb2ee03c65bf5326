"""The programs of examples/programs print the same numbers with TensorFlow: they start from equal seeds.

TensorFlow 2.21 has no tf.contrib, no tf.estimator and no batch normalisation of tf.layers; programs that need these are
left out.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[3] / "examples/programs"
LEFT_OUT = ("tf.contrib", "tf.estimator", "tf.layers.batch_normalization")
EAGER = "tf.enable_eager_execution"
TOLERANCE = {"image_pipeline": 1e-2}
"""The greatest relative difference of numbers, 5e-3 for others. TensorFlow decodes JPEG by a less exact transform."""


def programs() -> list[Path]:
    return [p for p in sorted(FOLDER.glob("*.py")) if not any(name in p.read_text() for name in LEFT_OUT)]


@pytest.fixture(scope="module")
def theirs(tensorflow: Any) -> dict[str, str]:
    """What each program prints with TensorFlow."""
    script = Path(__file__).parent / "programs_on_tensorflow.py"
    eager = [str(p) for p in programs() if EAGER in p.read_text()]
    others = [str(p) for p in programs() if EAGER not in p.read_text()]
    outputs: dict[str, str] = {}
    for arguments in (others, ["--eager", *eager]):
        done = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, timeout=280)
        assert done.returncode == 0, done.stderr
        outputs.update(json.loads(done.stdout.splitlines()[-1]))
    return outputs


def compared(output: str) -> list[tuple[str, list[float]]]:
    """The text of each line and its numbers; drawings are left out."""
    number = r"(?<![\w.])-?\d+(?:\.\d+)?(?:e-?\d+)?"
    lines = [line for line in output.splitlines() if re.search("[a-z]{3}", line)]
    return [(re.sub(number, "#", line), [float(n) for n in re.findall(number, line)]) for line in lines]


@pytest.mark.parametrize("program", programs(), ids=lambda path: path.stem)
def test_program_gives_the_numbers_that_tensorflow_gives(program: Path, theirs: dict[str, str]) -> None:
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found, wanted = compared(done.stdout), compared(theirs[program.stem])
    assert [text for text, _ in found] == [text for text, _ in wanted]
    for (text, ours), (_, right) in zip(found, wanted, strict=True):
        # 0.004: two of the test digits, at an accuracy
        assert ours == pytest.approx(right, rel=TOLERANCE.get(program.stem, 5e-3), abs=4e-3), text
