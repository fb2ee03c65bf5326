"""CLBlast's matrix product as a peer: its C library, unmodified, on pyopencl's arrays."""

from __future__ import annotations

import ctypes
import ctypes.util
from dataclasses import replace
from functools import cache
from typing import Any

from timberframe_conformance.bench.workload import Workload

_ROW_MAJOR, _PLAIN = 101, 111  # CLBlastLayoutRowMajor, CLBlastTransposeNo of clblast_c.h


@cache
def library() -> ctypes.CDLL | None:
    """Returns the installed library, None without one."""
    name = ctypes.util.find_library("clblast")
    return None if name is None else ctypes.CDLL(name)


def _product(a: Any, b: Any) -> Any:
    """Returns the product of two float32 matrices, waited for."""
    import pyopencl.array

    found = library()
    assert found is not None
    (rows, depth), columns, queue = a.shape, b.shape[1], a.queue
    result: Any = pyopencl.array.empty(queue, (rows, columns), a.dtype, allocator=a.allocator)
    sizes = [ctypes.c_size_t(n) for n in (rows, columns, depth)]
    one, none, start = ctypes.c_float(1), ctypes.c_float(0), ctypes.c_size_t(0)
    x, y, z = (ctypes.c_void_p(array.base_data.int_ptr) for array in (a, b, result))
    handle = ctypes.c_void_p(queue.int_ptr)
    status = found.CLBlastSgemm(
        _ROW_MAJOR, _PLAIN, _PLAIN, *sizes, one, x, start, sizes[2], y, start, sizes[1], none, z, start, sizes[1],
        ctypes.byref(handle), None,
    )  # fmt: skip
    if status:
        raise RuntimeError(f"CLBlastSgemm returned {status}; 0 is success")
    queue.finish()
    return result


def with_clblast(workload: Workload) -> Workload:
    """Returns the workload with CLBlast among its peers, if it is a matrix product."""
    if not workload.name.startswith("matmul "):
        return workload
    peers = {**workload.peers, "clblast": _product}
    return replace(workload, peers=peers, targets=[*workload.targets, ("clblast", 0.9)])
