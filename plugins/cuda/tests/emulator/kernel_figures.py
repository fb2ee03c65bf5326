"""The figures of ptxas for kernels: registers of a work-item, bytes of its stack and of spills, shared memory.

``kernel_figures.csv`` has the limits, which are what was found by

    python plugins/cuda/tests/emulator/kernel_figures.py [--check] [op ...]

at sm_90: of each op, the most that a kernel takes in any dtype, for the op's first sample. So a change that takes more
shows in review; --check compares all of them and writes nothing. A kernel that spills registers is in SPILLS with the
reason, and none of a kernel's groups may take more than a multiprocessor has, whether the table has it or not.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, fields
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_suffix(".csv")
ARCHITECTURE = "sm_90"
REGISTERS = 1 << 16
"""Registers that a group of work-items shares (CUDA C++ Programming Guide, technical specifications)."""
SHARED_BYTES = 48 * 1024
"""Static shared memory that a group may have, from the same table."""
GROUP = 256
"""Work-items of a group where a kernel does not fix them."""
_CONVOLUTION = "a tile's sums and the indices of its window take more than ptxas gives; most convolutions are products"
SPILLS = {
    "tf_convolve": _CONVOLUTION,
    "tf_convolve_filter": _CONVOLUTION,
    "tf_matmul": "one register of 8-bit operands beside bfloat16, in groups of 16 for matrices of a few elements",
}
"""Why a kernel may spill registers, by its name; how many bytes, is in the table."""
_ENTRY = re.compile(
    r"Compiling entry function '(\w+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
    r".*?Used (\d+) registers([^\n]*)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Figures:
    """Of a kernel; spilled: bytes stored and loaded again."""

    registers: int
    stack: int
    spilled: int
    shared: int

    def most(self, other: Figures) -> Figures:
        return Figures(*map(max, astuple(self), astuple(other)))


def read(log: str) -> Iterator[tuple[str, Figures]]:
    """Kernels and their figures in what NVRTC prints with ``--ptxas-options=-v``."""
    for name, stack, stored, loaded, registers, rest in _ENTRY.findall(log):
        shared = re.search(r"(\d+) bytes smem", rest)
        yield name, Figures(int(registers), int(stack), int(stored) + int(loaded), int(shared[1]) if shared else 0)


@cache
def limits() -> dict[tuple[str, str], Figures]:
    """By kernel and op."""
    with TABLE.open() as file:
        rows = list(csv.reader(line for line in file if not line.startswith("#")))
    return {(kernel, op): Figures(*map(int, numbers)) for kernel, op, *numbers in rows[1:]}


def made_with() -> str:
    """Returns the version of NVRTC of the table's figures."""
    return TABLE.read_text().split("\n", 1)[0].split()[2].rstrip(",")


def complaints(log: str, op: str, with_limits: bool) -> list[str]:
    """Returns the faults of kernels of an op's source. with_limits: whether the table's limits are this compiler's."""
    found = []
    for kernel, figures in read(log):
        found += faults(kernel, figures)
        if with_limits and (excess := beyond(kernel, op, figures)):
            found.append(f"{excess}; run kernel_figures.py if that is meant")
    return found


def faults(kernel: str, figures: Figures) -> Iterator[str]:
    """Returns what is wrong with a kernel whatever its limit is."""
    if figures.spilled and kernel not in SPILLS:
        yield f"{kernel} spills {figures.spilled} bytes; SPILLS in kernel_figures.py has no reason for it"
    if figures.registers * GROUP > REGISTERS or figures.shared > SHARED_BYTES:
        yield f"{kernel}: {figures}; no GPU starts a group of {GROUP}"


def beyond(kernel: str, op: str, figures: Figures) -> str:
    """Returns what is over a kernel's limit, or that it has none; empty where it stays within."""
    limit = limits().get((kernel, op))
    if limit is None:
        return f"{kernel} of {op}: {figures}, and no limit"
    return "" if limit.most(figures) == limit else f"{kernel} of {op}: {figures}, the limit is {limit}"


def measure(ops: list[str]) -> dict[tuple[str, str], Figures]:
    """Returns the figures of all kernels, or of some ops'."""
    import nvrtc
    from kernel_sources import kernel_sources
    from timberframe_cuda.compiler import flags

    options = [*flags(ARCHITECTURE), "--ptxas-options=-v"]
    found: dict[tuple[str, str], Figures] = {}
    sources = kernel_sources(1, ops)
    with ThreadPoolExecutor(2) as pool:
        logs = pool.map(lambda source: nvrtc.log(source, options), sources)
        for asking, log in zip(sources.values(), logs, strict=True):
            for kernel, figures in read(log):
                key = kernel, asking.split()[0]
                found[key] = figures.most(found.get(key, figures))
    return found


def check(figures: dict[tuple[str, str], Figures]) -> int:
    """Says what is wrong, over its limit or without one; the number of these."""
    found = [excess for key, kernel in figures.items() if (excess := beyond(*key, kernel))]
    found += [fault for (kernel, _), used in figures.items() for fault in faults(kernel, used)]
    print(*found, f"{len(figures)} kernels of ops, {len(found)} faults", sep="\n")
    return len(found)


def write(figures: dict[tuple[str, str], Figures], compiler: str) -> None:
    with TABLE.open("w", newline="") as file:
        file.write(f"# NVRTC {compiler}, {ARCHITECTURE}; kernel_figures.py makes this\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["kernel", "op", *(f.name for f in fields(Figures))])
        writer.writerows([*key, *astuple(figures[key])] for key in sorted(figures))
    print(f"{len(figures)} rows; spilling: {sorted({kernel for (kernel, _), f in figures.items() if f.spilled})}")


def main(arguments: list[str]) -> int:
    import nvrtc

    ops = [a for a in arguments if a != "--check"]
    figures = measure(ops)
    if "--check" in arguments:
        if made_with() != nvrtc.version():
            print(f"not compared: the limits are of NVRTC {made_with()}, this one is {nvrtc.version()}")
            return 0
        return int(check(figures) > 0)
    write(limits() | figures if ops and TABLE.exists() else figures, nvrtc.version())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
