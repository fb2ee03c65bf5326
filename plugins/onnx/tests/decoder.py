"""A decoder of texts in ONNX, with caches of keys and values that `TensorScatter` writes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import helper, numpy_helper

F = onnx.TensorProto.FLOAT
I64 = onnx.TensorProto.INT64


def decoder(
    layers: int, heads: int, size: int, places: int, groups: int | None = None, seed: int = 0
) -> onnx.ModelProto:
    """Returns a model of `layers` layers; x [1, tokens, heads * size], starts [1] and lengths [1] to y of x's shape.

    Each layer's cache is "k0", "v0" [1, groups, places, size] and becomes "k0_next", "v0_next".
    """
    made = _Decoder(heads, size, groups or heads, places, np.random.default_rng(seed))
    for layer in range(layers):
        made.add_layer(layer)
    width = heads * size
    inputs = [
        helper.make_tensor_value_info("x", F, [1, "tokens", width]),
        helper.make_tensor_value_info("starts", I64, [1]),
        helper.make_tensor_value_info("lengths", I64, [1]),
    ]
    caches = [(f"{part}{layer}", [1, groups or heads, places, size]) for layer in range(layers) for part in "kv"]
    inputs += [helper.make_tensor_value_info(name, F, shape) for name, shape in caches]
    outputs = [helper.make_tensor_value_info("y", F, [1, "tokens", width])]
    outputs += [helper.make_tensor_value_info(f"{name}_next", F, shape) for name, shape in caches]
    made.nodes.append(helper.make_node("Identity", [made.x], ["y"]))
    graph = helper.make_graph(made.nodes, "decoder", inputs, outputs, made.weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10)


def states(layers: int) -> dict[str, str]:
    """Returns by the caches that a run reads those that it gives."""
    return {f"{part}{layer}": f"{part}{layer}_next" for layer in range(layers) for part in "kv"}


class _Decoder:
    def __init__(self, heads: int, size: int, groups: int, places: int, rng: np.random.Generator) -> None:
        self.heads, self.size, self.groups, self.places, self.rng = heads, size, groups, places, rng
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.x = "x"

    def weight(self, name: str, *shape: int) -> str:
        values = self.rng.standard_normal(shape, np.float32) / np.sqrt(shape[0])
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def shape(self, name: str, *sizes: int) -> str:
        self.weights.append(numpy_helper.from_array(np.array(sizes, np.int64), name))
        return name

    def node(self, op: str, inputs: list[str], output: str, **attributes: object) -> str:
        self.nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def _projected(self, x: str, layer: int) -> Iterator[str]:
        width = self.heads * self.size
        for part, count in (("q", self.heads), ("k", self.groups), ("v", self.groups)):
            at = f"{layer}{part}"
            flat = self.node("MatMul", [x, self.weight(f"w{at}", width, count * self.size)], f"flat{at}")
            split = self.node("Reshape", [flat, self.shape(f"s{at}", 1, -1, count, self.size)], f"split{at}")
            yield self.node("Transpose", [split], f"new{at}", perm=[0, 2, 1, 3])

    def add_layer(self, layer: int) -> None:
        width, at = self.heads * self.size, str(layer)
        scale = self.weight(f"n{at}", width)
        q, k, v = self._projected(self.node("RMSNormalization", [self.x, scale], f"normal{at}"), layer)
        whole = [
            self.node("TensorScatter", [f"{part}{at}", new, "starts"], f"{part}{at}_next", axis=2)
            for part, new in (("k", k), ("v", v))
        ]
        seen = self.node("Attention", [q, *whole, "", "", "", "lengths"], f"seen{at}", is_causal=1)
        joined = self.node("Transpose", [seen], f"joined{at}", perm=[0, 2, 1, 3])
        rows = self.node("Reshape", [joined, self.shape(f"r{at}", 1, -1, width)], f"rows{at}")
        mixed = self.node("MatMul", [rows, self.weight(f"o{at}", width, width)], f"mixed{at}")
        between = self.node("Add", [self.x, mixed], f"between{at}")
        wide = self.node("MatMul", [between, self.weight(f"u{at}", width, 4 * width)], f"wide{at}")
        bent = self.node("Gelu", [wide], f"bent{at}", approximate="tanh")
        narrow = self.node("MatMul", [bent, self.weight(f"d{at}", 4 * width, width)], f"narrow{at}")
        self.x = self.node("Add", [between, narrow], f"x{at}")
