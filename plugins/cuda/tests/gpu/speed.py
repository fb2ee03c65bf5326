"""Measures the device, beside torch on the same GPU where torch is installed.

usage: speed.py [--scale 1] [--runs 10] [--only REGEX] [--json FILE]     scale 1 is for an H100

Every case is the median of its runs, each waited for, of which the inputs are on the device before and the result stays
there. A case that fails is named, and the others go on; the status is 1 then.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import timberframe as tf

try:
    import torch

    if not torch.cuda.is_available():
        torch = None  # type: ignore[assignment] # as if it were not installed
except ImportError:
    torch = None  # type: ignore[assignment]

SPEC, ON_DEVICE = "/device:CUDA:0", tf.RunOptions(fetch_on_device=True)
Inputs = Sequence[tuple[tuple[int, ...], str]]
"""Shape and dtype of each input."""


@dataclass
class Case:
    """What is measured: with timberframe, and with torch where it has the like. operations and nbytes: of one run."""

    name: str
    inputs: Inputs
    build: Callable[..., Any]
    torch: Callable[..., Any] | None = None
    operations: float = 0.0
    nbytes: float = 0.0
    options: dict[str, bool] = field(default_factory=dict)

    def rate(self, milliseconds: float) -> str:
        if self.operations:
            return f"{self.operations / milliseconds / 1e9:.1f} TFLOP/s"
        return f"{self.nbytes / milliseconds / 1e6:.0f} GB/s" if self.nbytes else ""


def median(runs: int, run: Callable[[], object], wait: Callable[[], object]) -> float:
    """Returns milliseconds of a run and of waiting for it; three runs come before."""
    times = []
    for i in range(3 + runs):
        wait()
        start = time.perf_counter()
        run()
        wait()
        if i >= 3:
            times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def ours(case: Case, runs: int) -> tuple[float, float]:
    """Returns milliseconds of a run, and seconds of the first one, which compiles kernels."""
    with tf.Graph().as_default(), tf.device(SPEC):
        given = [
            tf.Variable(tf.cast(tf.random_uniform(shape, -0.15, 0.15, seed=i), dtype))
            for i, (shape, dtype) in enumerate(case.inputs)
        ]
        y = case.build(*(v.read_value() for v in given))
        options = {"CUDA": case.options} if case.options else {}
        with tf.Session(config=tf.SessionConfig(device_options=options)) as session:
            session.run(tf.global_variables_initializer())
            start = time.perf_counter()
            session.run(y, options=ON_DEVICE)
            first = time.perf_counter() - start
            return median(runs, lambda: session.run(y, options=ON_DEVICE), lambda: None), first


def theirs(case: Case, runs: int) -> float | None:
    if torch is None or case.torch is None:
        return None
    given = [torch.rand(shape, device="cuda").to(getattr(torch, dtype)) for shape, dtype in case.inputs]
    build = case.torch
    return median(runs, lambda: build(*given), torch.cuda.synchronize)


def products(side: Callable[[int], int]) -> list[Case]:
    n, b, t = side(8192), side(64), side(1024)
    square: Callable[[str], Inputs] = lambda dtype: [((n, n), dtype)] * 2  # noqa: E731 - a table's abbreviation
    operations = 2.0 * n**3
    cases = [
        Case(f"matmul {n} {dtype}", square(dtype), tf.matmul, lambda a, b: a @ b, operations)
        for dtype in ("float32", "bfloat16", "float16")
    ]
    cases.append(Case(f"matmul {n} tf32", square("float32"), tf.matmul, None, operations, options={"tf32": True}))
    for dtype in ("float32", "bfloat16"):
        for hw, c, k in ((side(56), side(64), 3), (side(14), side(256), 3), (side(56), side(256), 1)):
            cases.append(
                Case(
                    f"conv {b}x{hw}x{hw}x{c} {k}x{k} {dtype}", [((b, hw, hw, c), dtype), ((k, k, c, c), dtype)],
                    lambda x, w: tf.nn.conv2d(x, w, strides=[1, 1, 1, 1], padding="SAME"),
                    lambda x, w: torch.nn.functional.conv2d(
                        x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), padding=w.shape[0] // 2
                    ),
                    2.0 * b * hw * hw * c * c * k * k,
                )
            )  # fmt: skip
    equation = "bqhd,bkhd->bhqk"
    cases.append(
        Case(
            f"einsum {equation} bfloat16", [((8, t, 16, 64), "bfloat16")] * 2,
            lambda a, b: tf.einsum(equation, a, b), lambda a, b: torch.einsum(equation, a, b),
            2.0 * 8 * 16 * t**2 * 64,
        )
    )  # fmt: skip
    return cases


def bandwidth(side: Callable[[int], int]) -> list[Case]:
    n, rows = side(1 << 27), side(1 << 14)
    cases = []
    for dtype, size in (("float32", 4), ("bfloat16", 2), ("float16", 2)):
        one: Inputs = [((n,), dtype)]
        cases += [
            Case(f"add {n} {dtype}", [*one, *one], lambda a, b: a + b, lambda a, b: a + b, nbytes=3.0 * size * n),
            Case(f"tanh {n} {dtype}", one, tf.tanh, lambda a: a.tanh(), nbytes=2.0 * size * n),
            Case(f"sum {n} {dtype}", one, tf.reduce_sum, lambda a: a.sum(), nbytes=1.0 * size * n),
        ]
    table: Inputs = [((rows, 4096), "float32")]
    moved = 8.0 * rows * 4096
    keys: Inputs = [((64, side(1 << 16)), "float32")]
    return [
        *cases,
        Case(f"softmax {rows}x4096", table, tf.nn.softmax, lambda a: a.softmax(-1), nbytes=moved),
        Case(f"transpose {rows}x4096", table, tf.transpose, lambda a: a.t().contiguous(), nbytes=moved),
        Case(f"sort 64x{keys[0][0][1]}", keys, lambda a: tf.sort(a, axis=1), lambda a: a.sort(-1)[0]),
    ]


def launches() -> list[Case]:
    def tiny(x: Any) -> Any:
        for _ in range(200):  # a transpose between softmaxes, so that nothing fuses
            x = tf.transpose(tf.nn.softmax(x))
        return x

    def dense(x: Any, *weights: Any) -> Any:
        for w in weights:
            x = tf.nn.relu(tf.matmul(x, w))
        return x

    def dense_torch(x: Any, *weights: Any) -> Any:
        for w in weights:
            x = torch.relu(x @ w)
        return x

    small: Inputs = [((32, 32), "float32")]
    layers: Inputs = [((32, 256), "float32"), *[((256, 256), "float32")] * 64]
    return [
        Case("400 tiny kernels, graphs", small, tiny),
        Case("400 tiny kernels, plain", small, tiny, options={"graphs": False}),
        Case("64 dense layers of 256", layers, dense, dense_torch),
        Case("64 dense layers of 256, plain", layers, dense, options={"graphs": False}),
    ]


def copies(side: Callable[[int], int]) -> dict[str, Any]:
    """Feeds of growing size: to the device, and there and back."""
    found = {}
    for nbytes in (1 << 10, 1 << 20, side(1 << 28)):
        x = np.zeros(nbytes // 4, np.float32)
        with tf.Graph().as_default(), tf.device(SPEC), tf.Session() as session:
            p = tf.placeholder(tf.float32, x.shape)
            y = p + 1.0
            for way, options in (("to the device", ON_DEVICE), ("there and back", None)):
                times = []
                for _ in range(6):
                    start = time.perf_counter()
                    session.run(y, {p: x}, options=options)
                    times.append(1e3 * (time.perf_counter() - start))
                name, ms = f"{nbytes} bytes {way}", min(times[1:])
                found[name] = {"ms": ms, "first_ms": times[0], "bytes": nbytes}
                print(f"{name}: first {times[0]:.2f} ms, then {ms:.3f} ms, {nbytes / ms / 1e6:.2f} GB/s", flush=True)
    return found


def measure(case: Case, runs: int) -> dict[str, Any]:
    ms, first = ours(case, runs)
    other = theirs(case, runs)
    beside = "torch not measured" if other is None else f"torch {other:.3f} ms, {ms / other:.2f} times its time"
    print(f"{case.name}: {ms:.3f} ms, {beside}, {case.rate(ms)}, first run {first:.2f} s", flush=True)
    return {"ms": ms, "first_s": first, "torch_ms": other, "operations": case.operations, "bytes": case.nbytes}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--only", default="")
    parser.add_argument("--json")
    given = parser.parse_args()

    def side(n: int) -> int:
        return max(8, int(n * given.scale))

    print("beside:", "torch is not installed, or sees no GPU" if torch is None else f"torch {torch.__version__}")
    found: dict[str, Any] = {}
    failed = 0
    for case in (*products(side), *bandwidth(side), *launches()):
        if re.search(given.only, case.name):
            try:
                found[case.name] = measure(case, given.runs)
            except Exception as e:
                print(f"{case.name}: {type(e).__name__}: {str(e)[:200]}", flush=True)
                failed += 1
    if not given.only:
        found |= copies(side)
    if given.json:
        with open(given.json, "w") as file:
            json.dump(found, file, indent=1)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
