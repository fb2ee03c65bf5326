"""Counts what a run asks of CUDA's driver and of cuBLAS, on the emulator: the table in docs/performance.md.

    E=plugins/cuda/tests/emulator
    PYTHONPATH=$E:$E/driver python $E/driver_calls.py

Of a dense network (LAYERS of a product, an addition and relu) and of its training step (the gradients, and an update of
all variables), in a run after those in which graphs are captured. Before: no graph holds a product, as when CuPy called
cuBLAS, which it does on no stream that is being captured.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

os.environ.setdefault("TIMBERFRAME_PLUGINS", "cpu,cuda")

import cupy
import numpy as np
from cupy.cuda import cublas, runtime

import timberframe as tf
from timberframe_cuda import graphs
from timberframe_sdk.execution.steps import Step

LAYERS = 72
UNITS, ROWS = 8, 16
RUNS = 6
"""Runs before the one that is counted, in which addresses recur and graphs are captured."""
KERNELS, GRAPHS, COPIES, BYTES, PRODUCTS = "kernels", "graphs", "copies", "bytes of copies", "products"
COUNTED = {
    KERNELS: (cupy.cuda.Function, "__call__"),
    GRAPHS: (cupy.cuda.Graph, "launch"),
    COPIES: (runtime, "memcpyAsync"),
}
"""The calls that enqueue work; products are counted by the emulated cuBLAS itself."""


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """The calls in the block, and the bytes of its copies."""
    found: Counter[str] = Counter()
    before = {name: getattr(owner, method) for name, (owner, method) in COUNTED.items()}

    def counting(name: str) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            found[name] += 1
            if name == COPIES:
                found[BYTES] += given[2]
            return before[name](*given, **named)

        return call

    products = cublas.calls
    for name, (owner, method) in COUNTED.items():
        setattr(owner, method, counting(name))
    try:
        yield found
    finally:
        for name, (owner, method) in COUNTED.items():
            setattr(owner, method, before[name])
        found[PRODUCTS] = cublas.calls - products


@contextmanager
def products_in_no_graph() -> Iterator[None]:
    """Launches every step whose kernel calls cuBLAS by itself in the block."""
    with_products: set[int] = set()
    build, only_launches = graphs.CapturingExecutable._build, graphs._only_launches

    def building(self: Any, node: Any, kernel: Any) -> Any:
        multiplier, asked = self.device.multiplier, []
        self.device.multiplier = lambda wanted: asked.append(found := multiplier(wanted)) or found
        try:
            built = build(self, node, kernel)
        finally:
            del self.device.multiplier
        if any(asked):
            with_products.add(id(node))
        return built

    def repeats(step: Step) -> bool:
        return id(step.node) not in with_products and only_launches(step)

    graphs.CapturingExecutable._build, graphs._only_launches = building, repeats  # type: ignore[method-assign]
    try:
        yield
    finally:
        graphs.CapturingExecutable._build, graphs._only_launches = build, only_launches  # type: ignore[method-assign]


def count(trained: bool) -> Counter[str]:
    """Returns what one run of the network, or of its training step, asks for."""
    rng = np.random.default_rng(0)
    fed = rng.standard_normal((ROWS, UNITS)).astype(np.float32)
    with tf.Graph().as_default(), tf.device("/device:CUDA:0"):
        x = y = tf.placeholder(tf.float32, fed.shape)
        for _ in range(LAYERS):
            weights = (rng.standard_normal((UNITS, UNITS)) / UNITS).astype(np.float32)
            layer = [tf.Variable(a) if trained else tf.constant(a) for a in (weights, np.zeros(UNITS, np.float32))]
            y = tf.nn.relu(tf.matmul(y, layer[0]) + layer[1])
        fetched: Any = y
        if trained:
            loss = tf.reduce_sum(y)
            fetched = [loss, tf.train.GradientDescentOptimizer(1e-3).minimize(loss)]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(RUNS):
                session.run(fetched, {x: fed})
            with counted() as found:
                session.run(fetched, {x: fed})
    return found


ROWS_OF_TABLE: dict[str, Callable[[Counter[str]], str]] = {
    "calls of the driver and of cuBLAS that enqueue work": lambda found: str(
        sum(found[name] for name in (*COUNTED, PRODUCTS))
    ),
    "kernels launched outside graphs": lambda found: str(found[KERNELS]),
    "products by cuBLAS outside graphs": lambda found: str(found[PRODUCTS]),
    "graphs launched": lambda found: str(found[GRAPHS]),
    "copies, and their bytes": lambda found: f"{found[COPIES]}, {found[BYTES]:,}",
}
"""What the page shows of each count."""


def main() -> None:
    """Prints the page's table."""
    columns = []
    for trained in (False, True):
        with products_in_no_graph():
            columns.append(count(trained))
        columns.append(count(trained))
    print("|what a run asks for|dense network, before|now|training step, before|now|")
    print("|-|-|-|-|-|")
    for name, shown in ROWS_OF_TABLE.items():
        print(f"|{name}|{'|'.join(map(shown, columns))}|")


if __name__ == "__main__":
    main()
