"""Models: whole small networks, of the kinds that users bring."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_conformance.case import Case, Measured, generator
from timberframe_conformance.twin import Twin, Value
from timberframe_core.ops.definition.opdef import OpDef

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "models"


def collect(target: Target, ops: Sequence[OpDef]) -> Iterator[Case]:
    """Yields each model in float32 and float64, at two batch sizes."""
    for name, build in MODELS.items():
        for dtype in ("float32", "float64"):
            for batch in (1, 5):
                if dtype == "float64" and name == "mobile":
                    continue  # FusedBatchNormV3 has no float64
                run = functools.partial(_run, build, name, dtype, batch)
                yield Case(SUITE, "Model", (("T", dtype),), f"{name}-batch={batch}", run)


class Net:
    """Layers on a Twin, with weights of the usual scale from a seeded generator."""

    def __init__(self, twin: Twin, rng: np.random.Generator, dtype: str) -> None:
        self.twin = twin
        self.rng = rng
        self.dtype = dtype

    def weights(self, *shape: int) -> Value:
        scale = float(max(1, int(np.prod(shape[:-1])))) ** -0.5
        return self.twin.constant(self.rng.normal(0, scale, shape), self.dtype)

    def op(self, name: str, *inputs: Any, **attrs: Any) -> Value:
        return self.twin.op(name, list(inputs), attrs)

    def shape(self, *sizes: int) -> Value:
        return self.twin.constant(list(sizes))

    def dense(self, x: Value, width: int, activation: str = "") -> Value:
        y = self.op("BiasAdd", self.op("MatMul", x, self.weights(x.wide.shape[1], width)), self.weights(width))
        return self.op(activation, y) if activation else y

    def conv(self, x: Value, channels: int, size: int, stride: int = 1) -> Value:
        w = self.weights(size, size, x.wide.shape[3], channels)
        return self.op("Conv2D", x, w, strides=(1, stride, stride, 1), padding="SAME")

    def batch_norm(self, x: Value) -> Value:
        """Batch normalisation by given statistics."""
        width = x.wide.shape[3]
        scale, offset, mean = (self.twin.constant(self.rng.normal(1, 0.1, width), "float32") for _ in range(3))
        variance = self.twin.constant(self.rng.uniform(0.5, 2, width), "float32")
        return self.op("FusedBatchNormV3", x, scale, offset, mean, variance, is_training=False, epsilon=1e-3)

    def norm(self, x: Value) -> Value:
        """Layer normalisation over the last axis, from elementary ops."""
        last = self.twin.constant([-1])
        centred = self.op("Sub", x, self.op("Mean", x, last, keep_dims=True))
        variance = self.op("Mean", self.op("Square", centred), last, keep_dims=True)
        epsilon = self.twin.constant(1e-3, self.dtype)
        return self.op("Mul", centred, self.op("Rsqrt", self.op("AddV2", variance, epsilon)))


def _mlp(net: Net, batch: int) -> Value:
    x = net.twin.feed(net.rng.normal(size=(batch, 20)).astype(net.dtype))
    hidden = net.dense(net.dense(x, 33, "Relu"), 17, "Tanh")
    return net.op("Softmax", net.dense(hidden, 10))


def _lenet(net: Net, batch: int) -> Value:
    x = net.twin.feed(net.rng.normal(size=(batch, 12, 12, 1)).astype(net.dtype))
    window = {"ksize": (1, 2, 2, 1), "strides": (1, 2, 2, 1), "padding": "VALID"}
    x = net.op("MaxPool", net.op("Relu", net.op("BiasAdd", net.conv(x, 6, 5), net.weights(6))), **window)
    x = net.op("AvgPool", net.op("Relu", net.conv(x, 11, 3)), **window)
    x = net.op("Reshape", x, net.shape(batch, -1))
    return net.op("LogSoftmax", net.dense(net.dense(x, 24, "Sigmoid"), 10))


def _mobile(net: Net, batch: int) -> Value:
    x = net.twin.feed(net.rng.normal(size=(batch, 9, 9, 3)).astype(net.dtype))
    x = net.conv(x, 8, 3, 2)
    for channels in (8, 12):
        w = net.weights(3, 3, x.wide.shape[3], 1)
        x = net.op("DepthwiseConv2dNative", x, w, strides=(1, 1, 1, 1), padding="SAME")
        x = net.op("Relu6", net.batch_norm(net.conv(x, channels, 1)))
    pooled = net.op("Mean", x, net.twin.constant([1, 2]))
    return net.op("Softmax", net.dense(pooled, 10))


def _attention(net: Net, batch: int) -> Value:
    length, heads, width = 7, 2, 16
    x = net.twin.feed(net.rng.normal(size=(batch, length, width)).astype(net.dtype))
    flat = net.op("Reshape", net.norm(x), net.shape(batch * length, width))

    def head(y: Value) -> Value:
        split = net.op("Reshape", y, net.shape(batch, length, heads, width // heads))
        return net.op("Transpose", split, net.shape(0, 2, 1, 3))

    q, k, v = (head(net.dense(flat, width)) for _ in range(3))
    scores = net.op(
        "Mul", net.op("BatchMatMulV2", q, k, adj_y=True), net.twin.constant(1 / np.sqrt(width // heads), net.dtype)
    )
    mixed = net.op("BatchMatMulV2", net.op("Softmax", scores), v)
    joined = net.op("Reshape", net.op("Transpose", mixed, net.shape(0, 2, 1, 3)), net.shape(batch * length, width))
    x = net.op("AddV2", x, net.op("Reshape", net.dense(joined, width), net.shape(batch, length, width)))
    flat = net.op("Reshape", net.norm(x), net.shape(batch * length, width))
    fed = net.dense(_gelu(net, net.dense(flat, 4 * width)), width)
    return net.op("AddV2", x, net.op("Reshape", fed, net.shape(batch, length, width)))


def _gelu(net: Net, x: Value) -> Value:
    half, one, root = (net.twin.constant(c, net.dtype) for c in (0.5, 1.0, np.sqrt(0.5)))
    return net.op("Mul", net.op("Mul", x, half), net.op("AddV2", net.op("Erf", net.op("Mul", x, root)), one))


def _recurrent(net: Net, batch: int) -> Value:
    """Returns a gated recurrent unit, unrolled over several steps."""
    steps, width = 4, 9
    x = net.twin.feed(net.rng.normal(size=(batch, steps, 5)).astype(net.dtype))
    state = net.twin.constant(np.zeros((batch, width)), net.dtype)
    gates_w, candidate_w = net.weights(5 + width, 2 * width), net.weights(5 + width, width)
    one = net.twin.constant(1, net.dtype)
    for now in net.twin.outputs("Unpack", [x], {"num": steps, "axis": 1}):
        joined = net.op("ConcatV2", [now, state], net.twin.constant(1))
        gates = net.op("Sigmoid", net.op("MatMul", joined, gates_w))
        update, reset = net.twin.outputs("Split", [net.twin.constant(1), gates], {"num_split": 2})
        again = net.op("ConcatV2", [now, net.op("Mul", reset, state)], net.twin.constant(1))
        candidate = net.op("Tanh", net.op("MatMul", again, candidate_w))
        kept = net.op("Mul", update, state)
        state = net.op("AddV2", kept, net.op("Mul", net.op("Sub", one, update), candidate))
    return state


def _embedding(net: Net, batch: int) -> Value:
    """Word vectors gathered, averaged and classified."""
    tokens = net.twin.feed(net.rng.integers(0, 50, (batch, 6)).astype(np.int32))
    vectors = net.op("GatherV2", net.weights(50, 12), tokens, net.twin.constant(0))
    return net.op("LogSoftmax", net.dense(net.op("Mean", vectors, net.twin.constant(1)), 4))


MODELS: dict[str, Callable[[Net, int], Value]] = {
    "mlp": _mlp, "lenet": _lenet, "mobile": _mobile, "attention": _attention,
    "recurrent": _recurrent, "embedding": _embedding,
}  # fmt: skip


def _run(build: Callable[[Net, int], Value], name: str, dtype: str, batch: int, target: Target) -> Measured | None:
    twin = Twin(target)
    net = Net(twin, generator(f"{SUITE}/{name}/{dtype}/{batch}"), dtype)
    return twin.check([build(net, batch)], runs=2)
