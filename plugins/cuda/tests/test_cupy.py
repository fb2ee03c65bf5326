"""The CuPy that is installed is as the table of its declarations says; where none is, there is nothing to compare."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

EMULATOR = str(Path(__file__).with_name("emulator"))


def test_cupy_is_as_the_table_says(monkeypatch: pytest.MonkeyPatch) -> None:
    if find_spec("cupy") is None:
        pytest.skip("CuPy is not installed")
    monkeypatch.syspath_prepend(EMULATOR)
    from cupy_calls.installed import differences

    found, compared = differences()
    assert not found
    assert compared > 50


def test_a_unique_id_of_nccl_is_what_the_plugin_makes_of_its_bytes() -> None:
    if find_spec("cupy") is None:
        pytest.skip("CuPy is not installed")
    from cupy.cuda import nccl

    if not nccl.available:
        pytest.skip("NCCL is not installed")
    from timberframe_cuda.collectives import as_bytes, as_unique_id

    made = nccl.get_unique_id()  # needs no GPU
    assert len(as_bytes(made)) == 128
    assert as_unique_id(as_bytes(made)) == made


def test_nvrtc_compiles_through_cupy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if find_spec("cupy") is None:
        pytest.skip("CuPy is not installed")
    from cupy.cuda import nvrtc

    try:
        nvrtc.getVersion()  # needs no GPU
    except RuntimeError as e:
        pytest.skip(f"NVRTC is not installed: {e}")
    from timberframe_cuda import compiler

    monkeypatch.setenv("TIMBERFRAME_CACHE", str(tmp_path))
    source = 'extern "C" __global__ void tf_two(int *x) { *x = 2; }'
    assert compiler.compiled(source, "sm_80").startswith(b"\x7fELF")
    assert b".target sm_80" in compiler.compiled(source, "compute_80")
    with pytest.raises(RuntimeError, match="absent"):
        compiler.compiled("__global__ void tf_wrong() { absent(); }", "sm_80")
