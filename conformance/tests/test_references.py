"""The reference device, judged like any other: what references compute and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest


def test_references_refuse_what_ops_refuse(command: Any) -> None:
    status, output, _ = command("run", "--device=reference", "--suite=errors", "--share=commit/4", "--jobs=0")
    assert status == 0, output


@pytest.mark.slow
def test_reference_device_passes_the_share_of_the_commit(command: Any) -> None:
    status, output, _ = command("run", "--device=reference", "--share=commit/24", "--jobs=0")
    assert status == 0, output
