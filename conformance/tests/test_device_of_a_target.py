"""The suite on a device in another process."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.slow
def test_a_device_in_another_process_passes_what_it_supports(command: Any) -> None:
    status, output, _ = command(
        "run", "--device=process:1", "--suite=forward,guards,aliasing", "--op=Tanh,AddV2,Assign", "--jobs=0"
    )
    assert status == 0, output
    assert "/job:worker/replica:0/task:0/device:CPU:0:" in output


@pytest.mark.slow
@pytest.mark.parametrize("selection", [
    "--suite=device",
    "--suite=forward --op=AssignVariableOp",  # variables of one name, which stay there, in several dtypes
    "--suite=guards --op=RandomShuffle",  # random streams of one name, which go on
])  # fmt: skip
def test_a_device_in_another_process_passes_what_earlier_cases_could_disturb(command: Any, selection: str) -> None:
    status, output, _ = command("run", "--device=process:1", *selection.split(), "--jobs=0")
    assert status == 0, output


@pytest.mark.slow
def test_a_device_in_another_process_is_asked_about_updates_as_the_placer_asks(command: Any) -> None:
    """With the variable's dtype in the place of its handle."""
    status, output, _ = command("run", "--device=process:1", "--suite=networks", "--op=ResourceApplyAdam", "--jobs=0")
    assert status == 0, output
    assert "unsupported" not in output.splitlines()[-1], output
