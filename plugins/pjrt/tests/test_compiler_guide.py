"""The device in docs/write-a-compiler.md works as the page says, in an environment that has JAX (`make peers`)."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax", reason="JAX is not installed; make peers installs it")

PAGE = (Path(__file__).parents[3] / "docs/write-a-compiler.md").read_text()
PROGRAMS = re.findall(r"```python\n((?:import|with) [^`]*?)```\n\n```\n(.*?)```", PAGE, re.DOTALL)
REGISTERED = """
import timberframe_sdk
import timberframe_acmexla
timberframe_sdk.register_plugin("acmexla", timberframe_acmexla)
"""


def _block(text: str) -> str:
    return next(b for b in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if text in b)


def test_programs_print_what_the_page_says(tmp_path: Path) -> None:
    module = _block("class AcmeDevice(sdk.CompilerDevice)") + _block("jax.lax.while_loop")
    (tmp_path / "timberframe_acmexla.py").write_text(module)
    assert len(PROGRAMS) == 2
    program = REGISTERED + "".join(program for program, _ in PROGRAMS)
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(output for _, output in PROGRAMS)
