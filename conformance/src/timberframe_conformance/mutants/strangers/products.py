"""Products of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_conformance.mutants.base import Call
from timberframe_conformance.mutants.strangers.base import READER, REPORT, planted, stranger
from timberframe_conformance.replacements import Replacements

_first_rows: dict[Any, int] = {}
_packed: dict[Any, np.ndarray] = {}


def _factors(c: Call) -> tuple[np.ndarray, np.ndarray]:
    """Returns the matrices as they are multiplied."""
    a, b = c.inputs
    return a.T if c.attrs["transpose_a"] else a, b.T if c.attrs["transpose_b"] else b


def _narrow_sum(c: Call) -> np.ndarray:
    """Returns the product added up in its own dtype."""
    a, b = _factors(c)
    total = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    with np.errstate(all="ignore"):
        for i in range(a.shape[1]):
            total = (total + (a[:, i : i + 1] * b[i : i + 1]).astype(a.dtype)).astype(a.dtype)
    return total


@stranger(
    "matmul-stale-weights", "MatMul", "weights in variables are packed in the first run alone", REPORT.format("2a")
)
def _(c: Call) -> Any:
    if c.node.inputs[1].kind != "resource":
        return c.true
    return c.reference(c.inputs[0], c.state.setdefault("packed", c.inputs[1]))


@stranger("matmul-float16-sum", "MatMul", "products are added up in float16", REPORT.format(4), {"T": ("float16",)})
def _(c: Call) -> Any:
    return _narrow_sum(c)


@stranger(
    "matmul-bfloat16-sum", "MatMul", "products are added up in bfloat16", "tenstorrent/tt-metal#8449",
    {"T": ("bfloat16",)},
)  # fmt: skip
def _(c: Call) -> Any:
    return _narrow_sum(c)


@stranger("matmul-past-end", "MatMul", "four bytes after the output are written", REPORT.format(7))
def _(c: Call) -> Any:
    c.write(0, c.true[0])
    out = c.outputs[0]
    memory = out
    while isinstance(memory.base, np.ndarray):
        memory = memory.base
    start = out.__array_interface__["data"][0] - memory.__array_interface__["data"][0] + out.nbytes
    memory[start : start + 4] = 0x11


@stranger("matmul-writes-input", "MatMul", "the first matrix is set to zero", REPORT.format("H2"))
def _(c: Call) -> Any:
    c.write(0, c.true[0])
    c.passed[0][...] = 0


def _tensor_float(x: np.ndarray) -> np.ndarray:
    """Returns an array rounded to ten bits of fraction."""
    bits = np.ascontiguousarray(x).view(np.uint32)
    return np.where(np.isfinite(x), ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32), x)


@stranger("matmul-tensor-float", "MatMul", "operands are rounded to ten bits of fraction", "ROCm/rocWMMA#604")
def _(c: Call) -> Any:
    return c.reference(*map(_tensor_float, c.inputs))


@stranger(
    "matmul-tensor-float-tiles", "MatMul",
    "operands are rounded to ten bits of fraction where there are 256 terms or more in whole tiles of sixteen", READER,
)  # fmt: skip
def _(c: Call) -> Any:
    a, b = _factors(c)
    if a.shape[1] < 256 or any(n % 16 for n in (*a.shape, b.shape[1])):
        return c.true
    return c.reference(*map(_tensor_float, c.inputs))


@stranger(
    "matmul-depth-past-vectors", "MatMul", "terms after the last whole vector of eight are left out",
    "AlphaGPU/leetgpu-challenges#137",
)  # fmt: skip
def _(c: Call) -> Any:
    a, b = _factors(c)
    depth = a.shape[1] if a.shape[1] < 8 else a.shape[1] - a.shape[1] % 8
    with np.errstate(all="ignore"):
        return (a[:, :depth].astype(np.float64) @ b[:depth].astype(np.float64)).astype(np.float32)


@stranger(
    "matmul-rows-no-power", "MatMul", "the last row is wrong unless their number is a power of two",
    "Maratyszcza/NNPACK#43",
)  # fmt: skip
def _(c: Call) -> Any:
    y = c.true[0].copy()
    if len(y) & (len(y) - 1):
        y[-1] = y[0]
    return y


@stranger("matmul-65536-rows", "MatMul", "rows after the first 65,535 are not computed", "apache/mxnet#12751")
def _(c: Call) -> Any:
    c.outputs[0][:65535] = c.true[0][:65535]


@stranger(
    "matmul-no-terms",
    "MatMul",
    "the output is not written where there is nothing to add up",
    "onnxruntime-ggml 0.2.0: zero-size tensors",
)
def _(c: Call) -> Any:
    return c.true if _factors(c)[0].shape[1] else None


@stranger(
    "matmul-square-not-transposed", "MatMul", "transpose_b is not looked at where the matrix is square",
    "pytorch/pytorch#197636", attrs={"transpose_b": True},
)  # fmt: skip
def _(c: Call) -> Any:
    b = c.inputs[1]
    return c.reference(*c.inputs, transpose_b=False) if b.shape[0] == b.shape[1] else c.true


@stranger(
    "matmul-first-batch-size", "MatMul", "a kernel is found without the rows, and computes as many as at first",
    "NVIDIA/Fuser#3019",
)  # fmt: skip
def _(c: Call) -> Any:
    rows = _first_rows.setdefault((c.inputs[1].shape, c.attrs["transpose_a"]), c.outputs[0].shape[0])
    c.outputs[0][:rows] = c.true[0][:rows]


@stranger(
    "matmul-packed-by-shape", "MatMul", "packed constants are found by their shape alone",
    "ooples/AiDotNet.Tensors#583",
)  # fmt: skip
def _(c: Call) -> Any:
    if c.node.inputs[1].kind != "const":
        return c.true
    return c.reference(c.inputs[0], _packed.setdefault(c.inputs[1].shape, c.inputs[1]))


@planted(
    "matmul-odd-cores", "the last part of the rows is left out when the cores are three", "OpenMathLib/OpenBLAS#1389",
    op="MatMul",
)  # fmt: skip
def _(r: Replacements, host: Any) -> None:
    def make(multiply: Any) -> Any:
        def in_parts(a: np.ndarray, b: np.ndarray, out: np.ndarray, cores: int) -> None:
            rows = len(a) - len(a) // cores if cores == 3 else len(a)
            multiply(a[:rows], b, out[:rows], cores)

        return in_parts

    r.replace(host.part("kernels"), "multiply_in_parts", make)


@stranger(
    "batch-matmul-last", "BatchMatMulV2", "the last of an odd number of products repeats the first",
    "intel/sycl-tla#244",
)  # fmt: skip
def _(c: Call) -> Any:
    y = c.true[0].copy()
    flat = y.reshape(-1, *y.shape[-2:])
    if len(flat) > 1:
        flat[-1] = flat[0]
    return flat.reshape(y.shape)


@stranger(
    "batch-matmul-adjoint-lost", "BatchMatMulV2", "adj_y is not looked at where the matrices are square",
    "pytorch/pytorch#197636", attrs={"adj_y": True},
)  # fmt: skip
def _(c: Call) -> Any:
    b = c.inputs[1]
    return c.reference(*c.inputs, adj_y=False) if b.shape[-2] == b.shape[-1] else c.true


@stranger(
    "batch-matmul-outer-broadcast", "BatchMatMulV2", "of a factor that is broadcast the second matrix is read, too",
    "tensor4all/tenferro-rs#776", example=[(2, 3, 4, 5), (1, 1, 5, 6)],
)  # fmt: skip
def _(c: Call) -> Any:
    a, b = c.inputs
    if b.ndim < 3 or b.ndim != a.ndim or b.shape[0] != 1 or a.shape[0] == 1:
        return c.true
    return c.reference(a, np.concatenate([b, *[np.zeros_like(b)] * (a.shape[0] - 1)]))
