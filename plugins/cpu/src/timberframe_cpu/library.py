"""The extension module, with the BLAS that its kernels call, loaded once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from timberframe_cpu import _native
from timberframe_sdk import InternalError
from timberframe_sdk.native import check_abi

ffi: Any = _native.ffi
lib: Any = _native.lib

# Read by OpenBLAS when it loads; some machines export values that halve its speed or start its own threads.
_BLAS_VARIABLES = ("OPENBLAS_", "GOTO_", "OMP_", "NVPL_", "MKL_")


@contextmanager
def _single_threaded_blas() -> Iterator[None]:
    saved = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith(_BLAS_VARIABLES)}
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # else it starts a thread for each core as soon as it is loaded
    try:
        yield
    finally:
        del os.environ["OPENBLAS_NUM_THREADS"]
        os.environ.update(saved)


def _load_blas() -> None:
    folder = Path(_native.__file__).parent
    path = next((f for f in folder.iterdir() if f.name.startswith("libscipy_openblas")), None)
    if path is None:
        raise InternalError(f"timberframe-cpu: no libscipy_openblas in {folder}; reinstall the package")
    with _single_threaded_blas():
        error = lib.tf_blas_load(os.fsencode(path))
    if error != ffi.NULL:
        raise InternalError(f"timberframe-cpu: {ffi.string(error).decode()}; the BLAS in the package must load")


check_abi(getattr(lib, "tf_abi_major", lambda: 1)(), "timberframe-cpu")  # those of version 1 do not say
_load_blas()
