"""NVIDIA's libraries that CuPy loads: whether they are there, and how to get those that are not."""

from __future__ import annotations

from collections.abc import Callable

from cupy.cuda import nvrtc, runtime

from timberframe_cuda import products
from timberframe_sdk import UnavailableError


def require_libraries() -> None:
    """Raises UnavailableError unless NVRTC and cuBLAS load: it names the packages that bring them."""
    for name, wheel, load in (("NVRTC", "cuda-nvrtc", nvrtc.getVersion), ("cuBLAS", "cublas", products.library)):
        _require(name, wheel, load)


def _require(name: str, wheel: str, load: Callable[[], object]) -> None:
    try:
        load()
    except (AttributeError, ImportError, OSError, RuntimeError) as e:
        version = runtime.runtimeGetVersion() // 1000
        package = f"nvidia-{wheel}" + (f"-cu{version}" if version < 13 else "")  # from CUDA 13 on without a number
        reason = " ".join(str(e).split())
        raise UnavailableError(
            f"{name} does not load: {reason}; `pip install timberframe-cuda[cuda{version}]` brings it (in {package}), "
            f"or an NVIDIA CUDA toolkit {version} whose libraries are on LD_LIBRARY_PATH"
        ) from e
