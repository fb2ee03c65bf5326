"""A share of the conformance suite on a worker's device; `make full` has all of it."""

from __future__ import annotations

import pytest

pytest.importorskip("ray", reason="ray is not installed: it has no wheel for this Python or system")

from timberframe_conformance.cli import main
from timberframe_ray import Cluster


@pytest.mark.slow
@pytest.mark.parametrize("selection", [
    "--suite=targets",  # equal bits, errors, whole models
    "--suite=device,concurrency,leaks --op=AddV2",
    "--suite=forward,gradient,faults --op=Tanh",
])  # fmt: skip
def test_a_device_of_a_worker_passes_the_suite(
    cluster: Cluster, selection: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["run", f"--device={cluster.target}", *selection.split(), "--jobs=0"])
    output = capsys.readouterr().out
    assert status == 0, output
    assert "0/device:CPU:0:" in output
