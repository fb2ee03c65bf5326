"""Finds a backend of PyTorch: one that is built in, or one that a module registers as PrivateUse1."""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from timberframe_core.errors import NotFoundError, UnavailableError
from timberframe_core.failures import describe_failure
from timberframe_torch import lazy as torch
from timberframe_torch.settings import TYPE, Settings

AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"
_KEYS = {"cpu": "CPU", "cuda": "CUDA", "xpu": "XPU", "mps": "MPS", "mtia": "MTIA", "hpu": "HPU", "xla": "XLA"}
"""By the names of backends that torch knows their keys of dispatch; all others are PrivateUse1."""
_PACKAGES = ("torch_{}", "{}", "{}_torch", "pytorch_{}")
"""What modules of backends are called."""
DTYPES = (
    "float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool", "complex64",
    "complex128",
)  # fmt: skip
"""Of tensors, as far as a backend holds them."""
_lock = threading.Lock()


@dataclass(frozen=True)
class Backend:
    """A device of a backend. device: torch's. key: what its kernels are registered under. module: its own, or "".

    dtypes: names of those that it holds.
    """

    name: str
    device: Any
    key: str
    module: str
    dtypes: tuple[str, ...]

    @property
    def is_host(self) -> bool:
        """Whether its memory is the host's, so that tensors of the CPU are its own."""
        return self.name == "cpu"


def import_torch() -> None:
    """Imports torch without the backends that packages would load with it, one of which may not even let it start."""
    os.environ.setdefault(AUTOLOAD, "0")
    try:
        importlib.import_module("torch")
    except Exception as e:
        raise UnavailableError(
            f"{TYPE}: torch cannot be imported: {describe_failure(e)}; PyTorch is required, which the package of the "
            "backend asks for, or `pip install torch`"
        ) from e


def find_backend(settings: Settings) -> Backend:
    """Returns the backend that the options name, ready to be used.

    NotFoundError says what there is; UnavailableError: its module cannot be imported, or it finds no such device.
    """
    import_torch()
    name = settings.hardware.lower()
    with _lock:
        module = _load(name, settings.module)
    try:
        device = torch.device(name, settings.device_index) if name != "cpu" else torch.device("cpu")
    except RuntimeError as e:
        raise NotFoundError(f"{TYPE}: no backend '{name}'; {_known(name)}") from e
    try:
        torch.empty(1, dtype=torch.uint8, device=device)
    except Exception as e:  # each backend has its own way to say that there is no hardware
        raise UnavailableError(f"{TYPE}: {device} cannot be used: {_first_line(e)}; {_known(name)}") from e
    return Backend(name, device, _KEYS.get(name, "PrivateUse1"), module, _held(device))


def _load(name: str, module: str) -> str:
    """Imports what registers a backend that is not registered yet, and returns the module's name."""
    if module:
        return _imported(name, module)
    if name in _KEYS or torch._C._get_privateuse1_backend_name() == name:
        return ""
    plain = name.replace("-", "_")
    for candidate in dict.fromkeys(form.format(plain) for form in _PACKAGES):
        if find_spec(candidate) is not None:
            return _imported(name, candidate)
    return ""


def _imported(name: str, module: str) -> str:
    try:
        importlib.import_module(module)
    except Exception as e:
        raise UnavailableError(
            f"{TYPE}: module {module}, which is to register the backend '{name}', cannot be imported: "
            f"{describe_failure(e)}"
        ) from e
    return module


def _known(name: str) -> str:
    registered = torch._C._get_privateuse1_backend_name()
    own = "" if registered == "privateuseone" else f", {registered}"
    tried = ", ".join(form.format(name.replace("-", "_")) for form in _PACKAGES)
    return (
        f"the backends of torch {torch.__version__} are {', '.join(_KEYS)}{own}; the name of one, or of a module that "
        f"registers it ({tried}), or the option module is required"
    )


def _held(device: Any) -> tuple[str, ...]:
    """Returns the dtypes whose tensors the device makes."""
    found = []
    for name in DTYPES:
        try:
            torch.empty(2, dtype=getattr(torch, name), device=device)
        except Exception:  # a backend says in its own way what it does not hold
            continue
        found.append(name)
    return tuple(found)


def _first_line(e: Exception) -> str:
    return f"{type(e).__name__}: {str(e).strip().splitlines()[0] if str(e).strip() else 'without a message'}"


def switches() -> Mapping[str, Any]:
    """Returns what is set in torch for the whole process and changes what kernels give."""
    tiny = torch.full((16,), 1e-40) * 1.0
    backends = torch.backends
    found = {
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "interop threads": torch.get_num_interop_threads(),
        "matmul precision": torch.get_float32_matmul_precision(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "denormals on the CPU": "kept" if bool((tiny != 0).all()) else "flushed",
        "oneDNN": backends.mkldnn.is_available() and backends.mkldnn.enabled,
        "CPU capability": backends.cpu.get_cpu_capability(),
    }
    if torch.version.cuda:
        found |= {"TF32 products": backends.cuda.matmul.allow_tf32, "TF32 convolutions": backends.cudnn.allow_tf32}
    return found
