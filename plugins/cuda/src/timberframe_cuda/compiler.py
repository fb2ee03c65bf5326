"""Sources in CUDA C++ compiled by NVRTC, into a cache on disk that processes share."""

from __future__ import annotations

import hashlib

from timberframe_accelerator import header_folders
from timberframe_sdk import cache_folder, headers_digest
from timberframe_sdk.program_cache import keep_file, kept_file

_FLAGS = (
    "-default-device",  # functions without a mark are the device's
    "--fmad=false",  # a * b + c rounds twice, as on every other device
    "-std=c++17",
)

ACCESS_BYTES = 16
"""The most that a work-item reads or writes at once (CUDA C++ Programming Guide, device memory accesses)."""
CACHE_BYTES = 1 << 29
"""The most that the cache on disk holds; all kernels of this project for one architecture are about 60 MB."""


def flags(target: str) -> list[str]:
    """NVRTC's options for a target such as ``sm_80`` (machine code) or ``compute_80`` (PTX)."""
    return [f"-arch={target}", *_FLAGS, *(f"-I{folder}" for folder in header_folders())]


def architecture(capability: int) -> str:
    """Returns what NVRTC compiles for: the GPU's machine code, or else PTX of the newest kind that it knows below."""
    from cupy.cuda import nvrtc

    known = nvrtc.getSupportedArchs()
    if capability in known:
        return f"sm_{capability}"
    older = [k for k in known if k < capability]
    if not older:
        raise RuntimeError(f"NVRTC {nvrtc.getVersion()} knows compute capabilities {known}; the GPU has {capability}")
    return f"compute_{max(older)}"


def compiled(source: str, target: str) -> bytes:
    """Returns what the driver loads for a source, from the cache or made now.

    RuntimeError with the compiler's message.
    """
    from cupy.cuda import nvrtc

    parts = (source, headers_digest(source, header_folders()), target, *_FLAGS, repr(nvrtc.getVersion()))
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    file = cache_folder("cuda") / f"{key}.cubin"
    kept = kept_file(file)
    if kept is not None:
        return kept
    made = _compile(source, target)
    keep_file(file, made, CACHE_BYTES)
    return made


def _compile(source: str, target: str) -> bytes:
    from cupy.cuda import nvrtc

    program = nvrtc.createProgram(source, "kernel.cu", (), ())
    try:
        nvrtc.compileProgram(program, flags(target))
        made: bytes = (nvrtc.getPTX if target.startswith("compute") else nvrtc.getCUBIN)(program)
        return made
    except nvrtc.NVRTCError as e:
        raise RuntimeError(f"{e}\n{nvrtc.getProgramLog(program)}") from e
    finally:
        nvrtc.destroyProgram(program)
