"""The plugin's devices on emulated GPUs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

from timberframe_accelerator import Source
from timberframe_core import errors


@pytest.fixture
def devices(cuda: Any) -> Any:
    return cuda.devices({"count": {}, "memory_limit": {}})


def test_without_a_gpu_the_reason_is_reported(cuda: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMULATED_GPUS", "0")
    with pytest.raises(errors.UnavailableError, match=r"CUDA sees no GPU: .*no CUDA-capable device is detected"):
        cuda.devices({})


@pytest.mark.parametrize(("cuda_version", "package"), [("12", "nvidia-cuda-nvrtc-cu12"), ("13", "nvidia-cuda-nvrtc")])
def test_without_nvrtc_the_message_says_what_to_install(
    cuda: Any, monkeypatch: pytest.MonkeyPatch, cuda_version: str, package: str
) -> None:
    from cupy.cuda import nvrtc, runtime

    def absent() -> None:
        raise RuntimeError('Failure finding "libnvrtc.so": No such file')

    monkeypatch.setattr(nvrtc, "getVersion", absent)
    monkeypatch.setattr(runtime, "runtimeGetVersion", lambda: int(cuda_version) * 1000)
    what = r'NVRTC does not load: Failure finding "libnvrtc.so": No such file; `pip install timberframe-cuda'
    how = rf"\[cuda{cuda_version}\]` brings it \(in {package}\), or an NVIDIA CUDA toolkit {cuda_version} "
    with pytest.raises(errors.UnavailableError, match=what + how):
        cuda.devices({})


def test_without_cublas_the_message_says_what_to_install(cuda: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy.cuda

    monkeypatch.delattr(cupy.cuda, "cublas")
    monkeypatch.setitem(sys.modules, "cupy.cuda.cublas", None)
    with pytest.raises(errors.UnavailableError, match=r"cuBLAS does not load: .*\(in nvidia-cublas-cu12\)"):
        cuda.devices({})


def test_a_gpu_that_is_newer_than_nvrtc_gets_ptx(cuda: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    from cupy.cuda import nvrtc

    monkeypatch.setenv("TIMBERFRAME_CACHE", str(tmp_path))
    monkeypatch.setattr(nvrtc, "getSupportedArchs", lambda: (70, 75, 90))
    monkeypatch.setattr(nvrtc, "getCUBIN", None)
    device = cuda.devices({"count": {"CUDA": 1}, "memory_limit": {}})[0]
    assert device.architecture == "compute_75"
    y = device.empty(np.dtype(np.int32), (1,))
    source = "#include <timberframe/accelerator/language.h>\nTF_KERNEL tf_one(TF_GLOBAL int *y) { y[0] = 1; }\n"
    device.function(Source(source), "tf_one")((1,), (1,), y)
    assert device.copy_out(y).tolist() == [1]


def test_gpus_that_are_too_old_are_left_out(cuda: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from cupy.cuda import runtime

    of_new = runtime.getDeviceProperties(0)
    monkeypatch.setattr(runtime, "getDeviceProperties", lambda number: of_new | ({} if number else {"major": 3}))
    (device,) = cuda.devices({"count": {}, "memory_limit": {}})
    assert (device.spec, device.number) == ("/device:CUDA:0", 1)
    monkeypatch.setattr(runtime, "getDeviceProperties", lambda number: of_new | {"major": 3})
    with pytest.raises(errors.UnavailableError, match=r"GPU 1 \(fibers\): NVRTC .* the GPU has 30; a CUDA version"):
        cuda.devices({"count": {}, "memory_limit": {}})


def test_a_gpu_that_is_not_used_is_left_alone(devices: Any) -> None:
    from cupy.cuda import runtime

    devices[0].copy_in(np.ones(3))
    devices[1].synchronize()
    assert set(runtime.streams.values()) == {0}
    devices[1].close()
    assert set(runtime.streams.values()) == {0}


@pytest.mark.parametrize("offset", [0, 1, 4, 8])
def test_tensors_of_others_are_aligned_for_every_kernel(devices: Any, offset: int) -> None:
    x = np.arange(64, dtype=np.uint8)
    given = devices[0].copy_in(x)
    taken = devices[0].adopt(given.handle.ptr + offset, np.dtype(np.uint8), (32,), given)
    assert taken.handle.ptr % 16 == 0
    assert (taken.handle.ptr == given.handle.ptr) == (offset == 0)  # nothing is copied without need
    np.testing.assert_array_equal(devices[0].copy_out(taken), x[offset : offset + 32])


def test_every_gpu_is_a_device(devices: Any) -> None:
    assert [d.spec for d in devices] == ["/device:CUDA:0", "/device:CUDA:1"]


def test_an_unknown_option_is_refused(cuda: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"tf23.*known are tf32, graphs"):
        cuda.devices({"options": {"CUDA": {"tf23": True}}})


def test_more_memory_than_there_is_says_what_was_asked_used_and_free(devices: Any) -> None:
    kept = devices[0].allocator.allocate(1 << 20)
    message = r"allocation of 8589934592 bytes was refused by .*CUDA has \d+ of \d+ bytes free.*1048576 bytes used"
    with pytest.raises(errors.ResourceExhaustedError, match=message):
        devices[0].allocator.allocate(8 << 30)
    kept.close()


def test_idle_executables_give_their_memory_back_when_it_runs_out(cuda: Any) -> None:
    device, other = cuda.devices({"count": {"CUDA": 3}, "memory_limit": {"CUDA": 1 << 20}})[::2]
    used = device.allocator.statistics().used

    class Idle:
        def __init__(self, device: Any) -> None:
            self.arena = device.allocator.allocate(600_000)
            device.allocator.may_drop(self)

        def drop_idle(self) -> bool:
            dropped, self.arena = self.arena is not None, None
            return dropped

    idle, of_other_stream = Idle(device), Idle(other)  # both on the first GPU
    device.allocator.allocate(900_000).close()
    assert (idle.arena, of_other_stream.arena) == (None, None)
    assert device.allocator.statistics().used == used
    with pytest.raises(errors.ResourceExhaustedError, match="allocation of 1100000 bytes was refused by the limit"):
        device.allocator.allocate(1_100_000)


def test_memory_that_cupys_arrays_left_idle_is_taken(devices: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    first, runtime = devices[0], cupy.cuda.runtime
    first.allocator.free_idle()
    before = runtime.used[0]
    monkeypatch.setattr(runtime, "TOTAL", before + (1 << 20))
    monkeypatch.setattr(runtime, "ASYNCHRONOUS", True)  # else the pool keeps no block that was given back
    stream = cupy.cuda.Stream()
    with cupy.cuda.Device(0), stream:
        cupy.get_default_memory_pool().malloc(600_000)  # as an array of CuPy that nobody has any more
    assert runtime.used[0] >= before + 600_000
    taken = first.allocator.allocate(700_000)
    assert before + 700_000 <= runtime.used[0] <= before + (1 << 20)
    taken.close()


@pytest.mark.parametrize("size", [5, 100_000])
def test_a_tensor_goes_from_one_gpu_to_another(devices: Any, size: int) -> None:
    first, second = devices
    x = np.arange(2 * size, dtype=np.float32)[::2]
    there = second.copy_from(first, first.copy_in(x))
    assert there.handle.device_id == 1
    np.testing.assert_array_equal(second.copy_out(there), x)


def test_a_tensor_of_another_kind_of_device_goes_through_the_host(devices: Any) -> None:
    assert devices[0].copy_from(object(), None) is None


def test_a_source_is_compiled_once_for_all_processes(cuda: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    from timberframe_cuda import compiler

    monkeypatch.setenv("TIMBERFRAME_CACHE", str(tmp_path))
    source = "#include <timberframe/accelerator/language.h>\nTF_KERNEL tf_none() {}\n"
    made = compiler.compiled(source, "sm_80")
    monkeypatch.setenv("CXX", "/bin/false")
    assert compiler.compiled(source, "sm_80") == made
    assert [f.suffix for f in (tmp_path / "cuda").iterdir()] == [".cubin"]


@pytest.mark.slow
def test_a_share_of_the_conformance_suite_holds(emulated_environment: dict[str, str]) -> None:
    program = "import sys; from timberframe_conformance.cli import main; sys.exit(main(sys.argv[1:]))"
    chosen = ["--share", "commit/80", "--suite", "forward,errors,guards", "--jobs", "1"]
    command = [sys.executable, "-c", program, "run", "--device=cuda", *chosen]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=emulated_environment)
    assert done.returncode == 0, done.stdout + done.stderr


def test_work_is_timed_by_events_of_the_gpu(devices: Any) -> None:
    result, start, end = devices[0].timed(lambda: time.sleep(0.01) or "made")
    assert result == "made"
    assert 10e6 <= end - start < 1e9


def test_the_cache_on_disk_keeps_what_was_used_last(cuda: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    from timberframe_cuda import compiler

    monkeypatch.setenv("TIMBERFRAME_CACHE", str(tmp_path))
    header = "#include <timberframe/accelerator/language.h>\n"
    sources = [f"{header}TF_KERNEL tf_none{i}() {{}}\n" for i in range(4)]
    size = len(compiler.compiled(sources[0], "sm_80"))
    old = next((tmp_path / "cuda").iterdir())
    monkeypatch.setattr(compiler, "CACHE_BYTES", 3 * size + size // 2)
    compiler.compiled(sources[1], "sm_80")
    older = next(p for p in (tmp_path / "cuda").iterdir() if p != old)
    os.utime(older, (1, 1))
    os.utime(old, (2, 2))
    compiler.compiled(sources[0], "sm_80")  # is used again
    for source in sources[2:]:
        compiler.compiled(source, "sm_80")
    left = set((tmp_path / "cuda").iterdir())
    assert older not in left
    assert 0 < len(left) <= 3
