"""Damaged models: ``python plugins/onnx/tests/damage.py --count 1000`` changes, leaves out and doubles bytes.

Each is loaded and run; the only errors allowed are those of Timberframe, and each must end within seconds. A damaged
number of iterations makes a valid model that would run for years: its session has a time limit.
"""

from __future__ import annotations

import argparse
import collections
import random
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

import timberframe as tf
import timberframe_onnx
from timberframe_core.errors import OpError

MOST_SECONDS = 20
"""Of one file, on a machine that does other things, too."""


def port(name: str, shape: list[int | str], element: int = onnx.TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element, shape)


def _network() -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    weights = {"w": (4, 2, 3, 3), "b": (4,), "m": (36, 3)}
    initializers = [numpy_helper.from_array(rng.random(s).astype(np.float32), n) for n, s in weights.items()]
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 0, 0], strides=[2, 2]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Flatten", ["r"], ["f"]),
        helper.make_node("MatMul", ["f", "m"], ["p"]),
        helper.make_node("Softmax", ["p"], ["y"], axis=-1),
    ]
    graph = helper.make_graph(nodes, "network", [port("x", ["n", 2, 6, 6])], [port("y", ["n", 3])], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def _loop() -> onnx.ModelProto:
    body = helper.make_graph(
        [helper.make_node("Add", ["v", "x"], ["u"]), helper.make_node("Identity", ["going"], ["again"])],
        "body",
        [port("i", [], onnx.TensorProto.INT64), port("going", [], onnx.TensorProto.BOOL), port("v", [2])],
        [port("again", [], onnx.TensorProto.BOOL), port("u", [2])],
    )
    count = numpy_helper.from_array(np.array(3), "count")
    nodes = [helper.make_node("Loop", ["count", "", "x"], ["y"], body=body)]
    graph = helper.make_graph(nodes, "loop", [port("x", [2])], [port("y", [2])], [count])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def _shapes() -> onnx.ModelProto:
    constants = {"s": [2, -1], "starts": [0, 1], "ends": [2, 3], "r": [1, 2], "k": [2]}
    initializers = [numpy_helper.from_array(np.array(v, np.int64), n) for n, v in constants.items()]
    nodes = [
        helper.make_node("Reshape", ["x", "s"], ["a"]),
        helper.make_node("Slice", ["a", "starts", "ends"], ["b"]),
        helper.make_node("Tile", ["b", "r"], ["c"]),
        helper.make_node("TopK", ["c", "k"], ["d", "places"], axis=1),
        helper.make_node("GatherElements", ["d", "places"], ["e"], axis=1),
        helper.make_node("ReduceSum", ["e"], ["y"], keepdims=0),
    ]
    graph = helper.make_graph(nodes, "shapes", [port("x", [3, 4])], [port("y", [])], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def good() -> list[bytes]:
    """Returns the models that are damaged."""
    return [make().SerializeToString() for make in (_network, _loop, _shapes)]


def damaged(seed: int) -> Iterator[bytes]:
    """Yields an endless sequence of damaged models."""
    rng = random.Random(seed)
    models = good()
    while True:
        data = bytearray(rng.choice(models))
        for _ in range(rng.choice((1, 1, 2, 5))):
            at, kind = rng.randrange(len(data)), rng.random()
            if kind < 0.7:
                data[at] = rng.choice((rng.randrange(256), data[at] ^ 1 << rng.randrange(8), 0, 255))
            elif kind < 0.85:
                del data[at : at + rng.randrange(1, 16)]
            else:
                data[at:at] = data[at : at + rng.randrange(1, 16)]
        yield bytes(data)


def attempt(data: bytes) -> str:
    """Returns what comes of a damaged model: "runs", or the class of Timberframe's error; other errors are raised."""
    begin = time.monotonic()
    try:
        model = timberframe_onnx.load(data, config=tf.SessionConfig(operation_timeout_in_ms=1000 * MOST_SECONDS // 4))
        feeds: dict[str, Any] = {}
        for p in model.inputs:
            if not p.is_list and p.numpy.kind != "O":
                feeds[p.name] = np.zeros([min(d, 8) if isinstance(d, int) else 2 for d in p.shape or ()], p.numpy)
        model.run(feeds)
        found = "runs"
    except OpError as e:
        found = type(e).__name__ if str(e).strip() else "an error without a message"
    assert time.monotonic() - begin < MOST_SECONDS
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    found: collections.Counter[str] = collections.Counter()
    failures = 0
    for i, data in zip(range(options.count), damaged(options.seed), strict=False):
        try:
            found[attempt(data)] += 1
        except Exception as e:
            failures += 1
            print(f"file {i}: {type(e).__name__}: {str(e)[:300]}")
        if i % 100 == 99:
            print(f"{i + 1} of {options.count}", file=sys.stderr)
    print(", ".join(f"{name} {count}" for name, count in found.most_common()))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
