"""Native kernels of this plugin: looked up by name for the instruction set in use, and called one by one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import numpy as np

from timberframe_cpu.library import ffi, lib
from timberframe_sdk import InvalidArgumentError, NotFoundError, as_dtype
from timberframe_sdk.native import TENSOR, Native, failure, tensor_row, words

ISAS = ("scalar", "avx2", "avx512", "amx")
"""Instruction sets in rising order. `scalar` is what every processor of the architecture has (with NEON on ARM). For
`amx` there are kernels of products of bfloat16 alone; all else is that of avx512."""

ISA_VARIABLE = "TIMBERFRAME_CPU_ISA"


def available_isas() -> tuple[str, ...]:
    """Returns the instruction sets that this machine has."""
    return ISAS[: lib.tf_best_isa() + 1]


def check_isa(name: str, source: str) -> str:
    """`name` if this machine has that instruction set, else InvalidArgumentError that says who asked for it."""
    if name not in available_isas():
        raise InvalidArgumentError(f"{source} is {name!r}; this machine has {', '.join(available_isas())}")
    return name


@cache
def default_isa() -> str:
    """Returns the instruction set of TIMBERFRAME_CPU_ISA if that is set, else the best one of this machine."""
    wish = os.environ.get(ISA_VARIABLE)
    return check_isa(wish, ISA_VARIABLE) if wish else available_isas()[-1]


_isa: ContextVar[str | None] = ContextVar("timberframe_cpu_isa", default=None)


def isa() -> str:
    """Returns the instruction set that `native` chooses kernels for at the moment."""
    return _isa.get() or default_isa()


@contextmanager
def using_isa(name: str | None) -> Iterator[None]:
    """Makes `native` choose kernels for this instruction set in the block; None leaves the choice as it is."""
    token = _isa.set(name and check_isa(name, "isa"))
    try:
        yield
    finally:
        _isa.reset(token)


@cache
def find(name: str, isa: str) -> tuple[int, str]:
    """Address of the kernel function, and the instruction set of the variant that was found."""
    found = ffi.new("int32_t *")
    address = lib.tf_kernel_address(name.encode(), ISAS.index(isa), found)
    if not address:
        raise NotFoundError(
            f"native kernel {name}: the build has none of this name for {isa} or below; it must be in a TF_TABLE that "
            "csrc/meson.build lists, and the plugin must be built again after its sources change"
        )
    return address, ISAS[found[0]]


@cache
def multiplies_bfloat16(isa: str) -> bool:
    """Returns whether kernels for this instruction set may multiply pairs of bfloat16 (csrc/conv/pairs.c)."""
    try:
        return bool(lib.tf_multiplies_bfloat16()) and bool(find("conv2d_packed_pairs_float", isa))
    except NotFoundError:  # the compiler of this build does not know the instruction
        return False


def built_isa() -> str:
    """Returns the instruction set that compute kernels really have: `isa()`, or less where this
    build leaves variants out.
    """
    return find("exp_float32", isa())[1]


def native(name: str, *parameters: Any, reasons: Sequence[str] = ()) -> Native:
    """Returns the C kernel of this name in the best variant that `isa()` allows; what a kernel's builder returns.

    parameters: ints, bools and floats, which become int64 words (floats as the bits of a double).
    reasons: messages for the reasons 1, 2... given to tf_fail, ``<fact>; <requirement>``, with {0} to {3} for details.
    """
    return Native(name, find(name, isa())[0], words(parameters), tuple(reasons))


def call(
    kernel: Native,
    inputs: Sequence[np.ndarray],
    outputs: Sequence[np.ndarray],
    workspace: np.ndarray | None = None,
    threads: int = 1,
    op: str = "",
    node: str = "",
) -> list[tuple[int, ...]]:
    """Runs one kernel on contiguous arrays; returns the outputs' shapes as the kernel left them.

    Raises the error that the kernel reported, as ``<op> '<node>': ...``.
    """
    results = list(outputs) if workspace is None else [*outputs, workspace]
    ins, outs = _tensors(inputs), _tensors(results)
    parameters = np.array(kernel.parameters or (0,), np.int64)
    error = ffi.new("tf_error *")
    code = lib.tf_call_kernel(
        kernel.function, len(inputs), ffi.from_buffer("tf_tensor[]", ins), len(results),
        ffi.from_buffer("tf_tensor[]", outs), ffi.from_buffer("int64_t[]", parameters), threads, error,
    )  # fmt: skip
    if code:
        raise failure(op or kernel.name, node or kernel.name, code, error.reason, list(error.detail), kernel.reasons)
    return [tuple(t["shape"][: t["rank"]].tolist()) for t in outs[: len(outputs)]]


def _tensors(arrays: Sequence[np.ndarray]) -> np.ndarray:
    rows = []
    for a in arrays:
        if not a.flags.c_contiguous:
            raise InvalidArgumentError(f"array of strides {a.strides}; a native kernel takes contiguous arrays")
        rows.append(tensor_row(as_dtype(a.dtype).number, a.ctypes.data, a.shape))
    return np.array(rows or [tensor_row(1, 0, ())], TENSOR)
