"""The programs in the documents for users run one after the other, and print what the documents say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import timberframe as tf
from timberframe_core.runtime.devices import devices_for

ROOT = Path(__file__).parents[2]
DOCUMENTS = (
    "README.md",
    "docs/start.md",
    "docs/errors.md",
    "docs/use.md",
    "docs/data.md",
    "docs/eager.md",
    "docs/train.md",
    "docs/write-a-host-op.md",
    "frontend/README.md",
    "core/README.md",
)
BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)
MARK = "== end of a program"


def _programs(document: str) -> list[tuple[str, str]]:
    """Returns each program with the output that follows it, "" where none does; those for OpenCL are left out."""
    text = (ROOT / document).read_text()
    found = []
    blocks = list(BLOCK.finditer(text))
    for block, after in zip(blocks, [*blocks[1:], None], strict=True):
        follows = after is not None and not after[1] and not text[block.end() : after.start()].strip()
        if block[1] == "python" and "opencl" not in block[2] and not block[2].startswith(">>>"):
            found.append((block[2], after[2] if after is not None and follows else ""))
    return found


def _without_lines(output: str) -> str:
    """Returns an output without the file and line that errors name, which are those of the reader's own program."""
    return re.sub(r"\[(/device:\S+, )?\S+:\d+\]|made at \S+:\d+", "[here]", output.strip())


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS)
def test_programs_print_what_the_document_says(document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not any(d.type == "CPU" for d in devices_for(tf.SessionConfig())):
        pytest.skip("the CPU's plugin is not installed")
    programs = _programs(document)
    monkeypatch.setenv("TIMBERFRAME_PLUGINS", "-opencl,-cuda")
    (tmp_path / "frontend").symlink_to(ROOT / "frontend")  # they read files of the tests by their paths
    source = "".join(f"{program}\nprint({MARK!r})\n" for program, _ in programs)
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split(f"{MARK}\n")
    for (program, output), found in zip(programs, printed, strict=False):
        if output:
            assert _without_lines(found) == _without_lines(output), program
