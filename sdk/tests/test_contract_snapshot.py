"""What plugins may use is what contract.txt says: plugins of others rest on it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from timberframe_sdk.native import ABI_MAJOR, TENSOR

FOLDER = Path(__file__).parent
_spec = importlib.util.spec_from_file_location("contract_snapshot", FOLDER / "contract_snapshot.py")
assert _spec is not None
assert _spec.loader is not None
contract_snapshot = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(contract_snapshot)
BEFORE = "CONTRACT = (1, 4)\ndef old()\n"


def test_changes_of_the_contract_are_reported() -> None:
    """In a process of its own, which other tests have not changed."""
    command = [sys.executable, "-c", "import contract_snapshot as s; print(s.contract(), end='')"]
    now = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=FOLDER).stdout
    before = (FOLDER / "contract.txt").read_text()
    words = contract_snapshot.missing_version(before, now) or "\n".join(contract_snapshot.changes(before, now))
    assert now == before, f"what plugins may use has changed; run `python sdk/tests/contract_snapshot.py`: {words}"


@pytest.mark.parametrize(
    ("after", "wanted"),
    [
        ("CONTRACT = (1, 4)\ndef new()\ndef old()\n", r"have come and CONTRACT is \(1, 4\); raise it to \(1, 5\)"),
        ("CONTRACT = (1, 4)\ndef old(x)\n", r"have changed or gone and CONTRACT is \(1, 4\); raise it to \(2, 0\)"),
        ("CONTRACT = (1, 5)\n", r"raise it to \(2, 0\):\n.*\n-def old\(\)"),
    ],
)
def test_a_change_without_a_higher_version_is_not_written(
    after: str, wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = tmp_path / "contract.txt"
    snapshot.write_text(BEFORE)
    monkeypatch.setattr(contract_snapshot, "SNAPSHOT", snapshot)
    monkeypatch.setattr(contract_snapshot, "contract", lambda: after)
    with pytest.raises(SystemExit, match=wanted):
        contract_snapshot.write()
    assert snapshot.read_text() == BEFORE


@pytest.mark.parametrize(
    ("after", "wanted"),
    [
        ("def f(x: 'int', y: 'int' = 1, z: 'str' = '') -> 'None'", (1, 5)),
        ("def f(x: 'int', y: 'int' = 1, z: 'str') -> 'None'", (2, 0)),
        ("def f(z: 'int' = 1, x: 'int', y: 'int' = 1) -> 'None'", (2, 0)),
        ("def f(x: 'int', y: 'int' = 1, z: 'str' = '') -> 'int'", (2, 0)),
        ("def f(x: 'int') -> 'None'", (2, 0)),
    ],
)
def test_optional_parameters_at_the_end_are_additions(after: str, wanted: tuple[int, int]) -> None:
    before = "CONTRACT = (1, 4)\ndef f(x: 'int', y: 'int' = 1) -> 'None'"
    found = contract_snapshot.missing_version(before, f"CONTRACT = (1, 4)\n{after}")
    assert f"raise it to {wanted}" in found
    assert contract_snapshot.missing_version(before, f"CONTRACT = {wanted}\n{after}") is None


@pytest.mark.parametrize("after", ["CONTRACT = (1, 5)\ndef old()\ndef new()\n", "CONTRACT = (2, 0)\n", BEFORE])
def test_a_change_with_its_version_is_written(after: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = tmp_path / "contract.txt"
    snapshot.write_text(BEFORE)
    monkeypatch.setattr(contract_snapshot, "SNAPSHOT", snapshot)
    monkeypatch.setattr(contract_snapshot, "contract", lambda: after)
    contract_snapshot.write()
    assert snapshot.read_text() == after


def test_hooks_are_part_of_the_contract() -> None:
    assert "hook timberframe_kernels(self) -> 'list[KernelDef]'" in contract_snapshot.contract().splitlines()


def test_the_snapshot_has_the_layout_that_python_uses() -> None:
    lines = (FOLDER / "contract.txt").read_text().splitlines()
    assert f"struct tf_tensor: {TENSOR.itemsize} bytes" in lines
    for name in ("data", "size", "rank", "shape", "strides"):
        kind, offset = TENSOR.fields[name][:2]  # type: ignore[index]  # a structured dtype has fields
        assert f"struct tf_tensor.{name}: {kind.itemsize} bytes at {offset}" in lines
    assert f"TF_ABI_MAJOR = {ABI_MAJOR}" in lines
