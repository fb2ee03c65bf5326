"""Random graphs on the preferred device; the seed follows from the commit, so that every commit tries others."""

from __future__ import annotations

from pathlib import Path

import pytest

from timberframe import SessionConfig
from timberframe_conformance.cli import main
from timberframe_conformance.commit import commit_number
from timberframe_core.runtime.devices import devices_for

pytestmark = pytest.mark.slow

SECONDS = 20


def test_random_graphs_of_the_commit_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    devices = [d for d in devices_for(SessionConfig()) if d.type != "REFERENCE"]
    if not devices:
        pytest.skip("no device plugin is installed")
    seed = commit_number(Path(__file__).parent) % (1 << 31)
    device = devices[0].type.lower()
    status = main(
        ["fuzz", f"--device={device}", f"--seconds={SECONDS}", f"--seed={seed}", "--jobs=1", f"--store={tmp_path}"]
    )
    assert status == 0, capsys.readouterr().out
