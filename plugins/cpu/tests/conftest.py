"""Clusters made by hand, so that the device is tested without compiler or session."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from timberframe_core.dtypes import as_dtype
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import InferenceContext, define_op
from timberframe_core.plugin.contracts import Cluster, KernelDef, KernelNode, RunContext, Update, Value, Variable
from timberframe_core.plugin.kernels import KernelRegistry
from timberframe_cpu.device import CpuDevice
from timberframe_cpu.kernels import all_kernels
from timberframe_cpu.testing import infer_attrs, output_dtypes
from timberframe_sdk.testing.loaded import temporary_ops


class GraphBuilder:
    """Collects the nodes of one cluster; `body` starts that of a loop or branch."""

    def __init__(self, device: CpuDevice) -> None:
        self.device = device
        self.nodes: list[KernelNode] = []
        self.inputs: list[Value] = []
        self.resources: list[Value] = []
        self._ids = itertools.count()

    def body(self) -> GraphBuilder:
        return GraphBuilder(self.device)

    def input(self, dtype: Any, *shape: int) -> Value:
        value = Value(next(self._ids), np.dtype(dtype), shape, "input")
        self.inputs.append(value)
        return value

    def const(self, x: Any, dtype: Any = np.float32) -> Value:
        x = np.asarray(x, dtype)
        return Value(next(self._ids), x.dtype, x.shape, "const", x)

    def read(self, variable: Variable) -> Value:
        assert variable.shape is not None
        value = Value(next(self._ids), variable.dtype.numpy, variable.shape, "resource", variable)
        self.resources.append(value)
        return value

    def op(self, name: str, *inputs: Value, node: str = "", **attrs: Any) -> Value:
        return self.ops(name, *inputs, node=node, **attrs)[0]

    def ops(self, name: str, *inputs: Value, node: str = "", **attrs: Any) -> list[Value]:
        op = registry.get(name)
        node = node or f"n{len(self.nodes)}"
        dummies = [np.broadcast_to(np.zeros((), v.dtype), v.shape) for v in inputs]
        full = infer_attrs(op, dict(attrs), dummies)
        constants = [v.constant if v.kind == "const" else None for v in inputs]
        dtypes = [as_dtype(v.dtype) for v in inputs]
        context = InferenceContext(op, node, full, [v.shape for v in inputs], constants, dtypes)
        shapes = op.shape(context)
        dynamic = [s is None or None in s for s in shapes]
        if any(dynamic):
            assert op.bound is not None
            shapes = op.bound(context)
        outputs = [
            Value(next(self._ids), t.numpy, s, dynamic=d)
            for t, s, d in zip(output_dtypes(op, full), shapes, dynamic, strict=True)
        ]
        self.nodes.append(KernelNode(name, node, full, list(inputs), outputs, self.device, where="model.py:7"))
        return outputs

    def loop(self, *inputs: Value, cond: Cluster, body: Cluster, node: str = "loop") -> list[Value]:
        return self._control("While", inputs, body.outputs, (cond, body), node)

    def branch(
        self, predicate: Value, *inputs: Value, then: Cluster, otherwise: Cluster, node: str = "if"
    ) -> list[Value]:
        return self._control("If", (predicate, *inputs), then.outputs, (then, otherwise), node)

    def _control(
        self, op: str, inputs: Sequence[Value], like: Sequence[Value], inner: tuple[Cluster, ...], node: str
    ) -> list[Value]:
        outputs = [Value(next(self._ids), v.dtype, v.shape) for v in like]
        self.nodes.append(KernelNode(op, node, {}, list(inputs), outputs, self.device, where="model.py:9", inner=inner))
        return outputs

    def cluster(self, *outputs: Value, updates: Sequence[Update] = ()) -> Cluster:
        return Cluster(self.device, self.nodes, self.inputs, list(outputs), self.resources, list(updates))

    def run(self, outputs: Sequence[Value], *feeds: np.ndarray, context: RunContext | None = None) -> list[np.ndarray]:
        return self.device.compile(self.cluster(*outputs)).run(list(feeds), context or RunContext())


def count_to(graph: GraphBuilder, limit: float, extra: Sequence[tuple[Any, tuple[int, ...]]] = ()) -> Cluster:
    """Returns a condition that holds while the first loop variable, a float32 scalar, is below the
    limit (and not above it).
    """
    cond = graph.body()
    i = cond.input(np.float32)
    for dtype, shape in extra:
        cond.input(dtype, *shape)
    return cond.cluster(cond.op("Sub", i, cond.const(limit)))


@pytest.fixture
def counting() -> Callable[..., Cluster]:
    return count_to


@pytest.fixture(autouse=True, scope="module")
def ops() -> Iterator[None]:
    """Ops that only Python kernels have."""
    with temporary_ops():
        define_op(
            "Test>Negate", inputs=["x: T"], outputs=["y: T"], attrs=["T: type"], doc="-x", shape=lambda c: [c.shapes[0]]
        )
        define_op(
            "Test>Raise",
            inputs=["x: T"],
            outputs=["y: T"],
            attrs=["T: type"],
            doc="Fails",
            shape=lambda c: [c.shapes[0]],
        )
        define_op(
            "Test>Positive",
            inputs=["x: T"],
            outputs=["y: T"],
            attrs=["T: type"],
            doc="Elements above 0",
            shape=lambda c: [(None,)],
            bound=lambda c: [(int(np.prod(c.shapes[0])),)],
        )
        yield


def _test_kernels() -> list[KernelDef]:
    def negate(x: np.ndarray, y: np.ndarray) -> None:
        np.negative(x, out=y)

    def fail(x: np.ndarray, y: np.ndarray) -> None:
        raise RuntimeError("no luck")

    def positive(x: np.ndarray, y: np.ndarray) -> list[tuple[int, ...]]:
        found = x[x > 0]
        y[: found.size] = found
        return [found.shape]

    kernels = {"Test>Negate": negate, "Test>Raise": fail, "Test>Positive": positive}
    return [KernelDef(op, "CPU", lambda node, launcher=launcher: launcher) for op, launcher in kernels.items()]


TEST_KERNELS = _test_kernels()


@pytest.fixture
def new_device() -> Iterator[Callable[..., CpuDevice]]:
    made = []

    def new(**options: Any) -> CpuDevice:
        device = CpuDevice(**options)
        device.kernels = KernelRegistry()
        device.kernels.register([*all_kernels(), *TEST_KERNELS])
        made.append(device)
        return device

    yield new
    for device in made:
        device.close()


@pytest.fixture
def device(new_device: Callable[..., CpuDevice]) -> CpuDevice:
    return new_device()


@pytest.fixture
def graph(device: CpuDevice) -> GraphBuilder:
    return GraphBuilder(device)


@pytest.fixture
def new_graph() -> Callable[[CpuDevice], GraphBuilder]:
    return GraphBuilder
