"""What plugins may use is what it was: plugins of others rest on it. Changes are errors, additions are warnings."""

from __future__ import annotations

import difflib
import subprocess
import sys
import warnings
from pathlib import Path

from timberframe_sdk.native import ABI_MAJOR, TENSOR

FOLDER = Path(__file__).parent


def test_changes_of_the_contract_are_reported() -> None:
    """In a process of its own, which other tests have not changed."""
    command = [sys.executable, "-c", "import contract_snapshot as s; print(s.contract(), end='')"]
    now = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=FOLDER).stdout
    before = (FOLDER / "contract.txt").read_text()
    changes = list(difflib.unified_diff(before.splitlines(), now.splitlines(), n=0, lineterm=""))[2:]
    report = (
        "what plugins may use has changed; raise the second number of CONTRACT if it has only grown, else the first, "
        "and run `python sdk/tests/contract_snapshot.py`:\n" + "\n".join(changes)
    )
    assert not any(line.startswith("-") for line in changes), report
    if changes:
        warnings.warn(report, stacklevel=1)


def test_the_snapshot_has_the_layout_that_python_uses() -> None:
    lines = (FOLDER / "contract.txt").read_text().splitlines()
    assert f"struct tf_tensor: {TENSOR.itemsize} bytes" in lines
    for name in ("data", "size", "rank", "shape", "strides"):
        kind, offset = TENSOR.fields[name][:2]  # type: ignore[index]  # a structured dtype has fields
        assert f"struct tf_tensor.{name}: {kind.itemsize} bytes at {offset}" in lines
    assert f"TF_ABI_MAJOR = {ABI_MAJOR}" in lines
