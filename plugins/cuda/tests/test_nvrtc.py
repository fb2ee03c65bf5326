"""NVRTC takes the sources of all kernels, without a warning, and ptxas's figures stay within their limits.

A run of the tests takes a share that the commit chooses; ``python plugins/cuda/tests/test_nvrtc.py`` takes all.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from timberframe_conformance.commit import commit_number
from timberframe_cuda.compiler import flags

pytestmark = pytest.mark.slow

ARCHITECTURES = "sm_75", "sm_80", "sm_90"
SHARE = 40


def complaints(tasks: Sequence[tuple[str, str, str]], limited: bool = True) -> list[str]:
    """Returns what is wrong with (source, what it is for, architecture): NVRTC's messages, and
    figures over their limits.

    limited: whether the sources are of ops' first samples, which the limits are of.
    """
    import kernel_figures
    import nvrtc

    known = limited and kernel_figures.made_with() == nvrtc.version()

    def one(task: tuple[str, str, str]) -> str:
        source, what, architecture = task
        log = nvrtc.log(source, [*flags(architecture), "--ptxas-options=-v"])
        found = [line for line in log.splitlines() if not line.startswith("ptxas ")]
        found += kernel_figures.complaints(log, what.split()[0], known and architecture == kernel_figures.ARCHITECTURE)
        return "\n".join([f"{what}, {architecture}:", *found, source]) if found else ""

    with ThreadPoolExecutor(2) as pool:
        return [message for message in pool.map(one, tasks) if message]


def test_nvrtc_takes_a_share_of_all_kernels(emulator: None) -> None:
    import nvrtc
    from kernel_sources import kernel_sources

    if nvrtc.library() is None:
        pytest.skip("NVRTC is not installed; the package nvidia-cuda-nvrtc has it")

    commit = str(commit_number(Path(__file__).parent))
    tasks = [(s, w, a) for s, w in kernel_sources(1).items() for a in ARCHITECTURES]
    tasks.sort(key=lambda task: hashlib.sha256("".join((commit, *task)).encode()).digest())
    assert not complaints(tasks[:SHARE])


def test_the_kernels_of_variables_are_among_the_sources(emulator: None) -> None:
    from kernel_sources import kernel_sources

    asking = [
        what for what in kernel_sources(1, ["ResourceApplyAdam"]).values() if what.startswith("ResourceApplyAdam")
    ]
    assert len(asking) == len(("float16", "bfloat16", "float32", "float64"))


def test_an_op_of_which_no_sample_is_built_is_an_error(emulator: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here since no session has the device."""
    import kernel_sources

    monkeypatch.setattr(kernel_sources.RecordingDevice, "asynchronous", True)
    with pytest.raises(RuntimeError, match=r"no sample of these ops is built: \{'ResourceApplyAdam'"):
        kernel_sources.kernel_sources(1, ["ResourceApplyAdam"])


SPILLING = """
extern "C" __global__ void __launch_bounds__(1024) tf_spilling(const float *x, float *y) {
  float kept[128];
  for (int i = 0; i < 128; i++) kept[i] = x[i * 1024 + threadIdx.x];
  for (int j = 0; j < 128; j++)
    for (int i = 0; i < 128; i++) y[(i * 128 + j) * 1024 + threadIdx.x] = kept[i] * kept[j];
}
"""


def test_registers_that_a_kernel_spills_are_found(emulator: None) -> None:
    import nvrtc

    if nvrtc.library() is None:
        pytest.skip("NVRTC is not installed; the package nvidia-cuda-nvrtc has it")

    (found,) = complaints([(SPILLING, "Spilling {}", "sm_80")])
    assert re.search(r"tf_spilling spills \d+ bytes; SPILLS in kernel_figures.py has no reason for it", found)


def test_a_kernel_that_takes_more_than_its_limit_is_found(emulator: None, monkeypatch: pytest.MonkeyPatch) -> None:
    import kernel_figures

    log = (
        "ptxas info    : Compiling entry function 'tf_x' for 'sm_90'\n"
        "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 40 registers, used 1 barriers, 8448 bytes smem"
    )
    found = kernel_figures.Figures(registers=40, stack=0, spilled=0, shared=8448)
    assert list(kernel_figures.read(log)) == [("tf_x", found)]
    for name, limit in [("registers", 39), ("shared", 8447), ("shared", 8448)]:
        limits = {("tf_x", "X"): dataclasses.replace(found, **{name: limit})}
        monkeypatch.setattr(kernel_figures, "limits", lambda limits=limits: limits)
        assert bool(kernel_figures.complaints(log, "X", True)) == (limit != 8448)
    spilling = {("tf_x", "X"): dataclasses.replace(found, spilled=8)}
    monkeypatch.setattr(kernel_figures, "limits", lambda: spilling)
    assert kernel_figures.check(spilling) == 1  # for SPILLS does not say why
    assert kernel_figures.complaints(log, "Y", True) == [
        f"tf_x of Y: {found}, and no limit; run kernel_figures.py if that is meant"
    ]


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).with_name("emulator")))
    from kernel_sources import kernel_sources

    found = kernel_sources(1000, sys.argv[1:])
    bad = complaints([(s, w, a) for s, w in found.items() for a in ARCHITECTURES], limited=False)
    print("\n".join(bad))
    print(f"{len(found)} sources, {len(ARCHITECTURES)} architectures, {len(bad)} refused or with a warning")
    sys.exit(bool(bad))
