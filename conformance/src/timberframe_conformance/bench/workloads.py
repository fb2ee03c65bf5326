"""What is measured: kernels with the work they do, for the device and for each peer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from timberframe_conformance.bench.chains import chains
from timberframe_conformance.bench.workload import Workload
from timberframe_core.dtypes import as_dtype


def _rng() -> np.random.Generator:
    return np.random.default_rng(7)


MILLION = 1 << 20


def _unary(name: str, graph: Callable[..., Any], numpy: Callable[..., Any], other: str) -> Workload:
    x = _rng().uniform(-3, 3, MILLION).astype(np.float32)
    peers = {"numpy": numpy, "torch": lambda x: _torch(other)(x), "tensorflow": lambda x: _tensorflow(other)(x)}
    return Workload(name, [x], graph, MILLION, 8.0 * MILLION, peers, [("numpy", 1.0)])


def _torch(path: str) -> Callable[..., Any]:
    import torch  # a peer that need not be there

    found: Any = torch
    for part in path.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]  # a function of torch


def _tensorflow(path: str) -> Any:
    import tensorflow  # type: ignore[import-untyped]  # a peer that need not be there

    found: Any = tensorflow.math if hasattr(tensorflow.math, path) else tensorflow
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _later(path: str) -> Callable[..., Any]:
    """Returns a function of tensorflow, which is imported when it is first called."""
    return lambda *arguments: _tensorflow(path)(*arguments)


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def workloads(op: Callable[..., Any]) -> list[Workload]:
    """Returns all kernel workloads; `op(name, inputs, attrs)` adds a node to the current graph."""
    rng = _rng()
    x, y = (rng.uniform(-3, 3, MILLION).astype(np.float32) for _ in range(2))
    square = x.reshape(1024, 1024)
    axis, swap = np.array([0], np.int32), np.array([1, 0], np.int32)
    return [
        matmul(op, 1024, ("numpy", 0.95)), matmul(op, 256), matmul(op, 64),
        Workload("add 1M", [x, y], lambda a, b: op("AddV2", [a, b]), MILLION, 12.0 * MILLION,
                 {"numpy": np.add, "torch": lambda a, b: a + b, "tensorflow": lambda a, b: a + b}, [("numpy", 1.0)]),
        Workload("mul 1M", [x, y], lambda a, b: op("Mul", [a, b]), MILLION, 12.0 * MILLION,
                 {"numpy": np.multiply, "torch": lambda a, b: a * b, "tensorflow": lambda a, b: a * b},
                 [("numpy", 1.0)]),
        _unary("exp 1M", lambda a: op("Exp", [a]), np.exp, "exp"),
        _unary("tanh 1M", lambda a: op("Tanh", [a]), np.tanh, "tanh"),
        Workload("sum 1M", [x], lambda a: op("Sum", [a, axis]), MILLION, 4.0 * MILLION,
                 {"numpy": np.sum, "torch": lambda a: a.sum(), "tensorflow": _later("reduce_sum")}, [("numpy", 1.0)]),
        Workload("max 1M", [x], lambda a: op("Max", [a, axis]), MILLION, 4.0 * MILLION,
                 {"numpy": np.max, "torch": lambda a: a.max(), "tensorflow": _later("reduce_max")}, [("numpy", 1.0)]),
        Workload("softmax 1024x1024", [square], lambda a: op("Softmax", [a]), 5.0 * MILLION, 8.0 * MILLION,
                 {"numpy": _softmax, "torch": lambda a: a.softmax(-1), "tensorflow": _later("softmax")},
                 [("numpy", 1.0)]),
        Workload("transpose 1024x1024", [square], lambda a: op("Transpose", [a, swap]), 0, 8.0 * MILLION,
                 {"numpy": lambda a: np.ascontiguousarray(a.T), "torch": lambda a: a.t().contiguous(),
                  "tensorflow": _later("transpose")}, [("numpy", 1.0)]),
        Workload("concat 2x1M", [x, y], lambda a, b: op("ConcatV2", [[a, b], np.int32(0)]), 0, 16.0 * MILLION,
                 {"numpy": lambda a, b: np.concatenate([a, b]), "torch": lambda a, b: _torch("cat")([a, b]),
                  "tensorflow": lambda a, b: _tensorflow("concat")([a, b], 0)}, [("numpy", 1.0)]),
        convolution(op), *convolution_gradients(op), *random_numbers(op), *chains(op),
    ]  # fmt: skip


def random_numbers(op: Callable[..., Any]) -> list[Workload]:
    """Returns a million float32, uniform and normal; NumPy draws them from its Philox, of 64 bits, by the ziggurat."""
    generator = np.random.Generator(np.random.Philox(7))
    attrs = {"seed": 7, "seed2": 11, "dtype": as_dtype("float32")}

    def workload(name: str, kind: str, numpy: Callable[..., Any], torch: str, tensorflow: str) -> Workload:
        peers: dict[str, Callable[..., Any]] = {
            "numpy": lambda: numpy(MILLION, dtype=np.float32),
            "torch": lambda: _torch(torch)(MILLION),
            "tensorflow": lambda: _tensorflow(f"random.{tensorflow}")([MILLION]),
        }
        return Workload(name, [], lambda: op(kind, [[MILLION]], attrs), 0, 4.0 * MILLION, peers, [("numpy", 1.0)])

    return [
        workload("uniform 1M", "RandomUniform", generator.random, "rand", "uniform"),
        workload("normal 1M", "RandomStandardNormal", generator.standard_normal, "randn", "normal"),
    ]


def matmul(op: Callable[..., Any], n: int, *targets: tuple[str, float]) -> Workload:
    """Returns the product of two n x n matrices."""
    a, b = (_rng().normal(size=(n, n)).astype(np.float32) for _ in range(2))
    peers: dict[str, Callable[..., Any]] = {
        "numpy": np.matmul,
        "torch": lambda a, b: a @ b,
        "tensorflow": lambda a, b: a @ b,
    }
    return Workload(f"matmul {n}", [a, b], lambda a, b: op("MatMul", [a, b]), 2.0 * n**3, 12.0 * n * n, peers, targets)


def convolution(op: Callable[..., Any]) -> Workload:
    """3x3, 64 channels to 64, 56x56: the middle of an image network."""
    x = _rng().normal(size=(1, 56, 56, 64)).astype(np.float32)
    w = _rng().normal(size=(3, 3, 64, 64)).astype(np.float32)

    def torch_call(x: Any, w: Any) -> Any:
        return _torch("nn.functional.conv2d")(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), padding=1)

    def tensorflow_call(x: Any, w: Any) -> Any:
        import tensorflow

        return tensorflow.nn.conv2d(x, w, 1, "SAME")

    flops = 2.0 * 56 * 56 * 64 * 64 * 9
    attrs = {"strides": (1, 1, 1, 1), "padding": "SAME"}
    peers: dict[str, Callable[..., Any]] = {"torch": torch_call, "tensorflow": tensorflow_call}
    return Workload(
        "conv 3x3 64 56x56", [x, w], lambda x, w: op("Conv2D", [x, w], attrs), flops, 4.0 * (2 * x.size + w.size),
        peers, [("matmul", 0.6)],
    )  # fmt: skip


def convolution_gradients(op: Callable[..., Any]) -> list[Workload]:
    """Returns the gradients of that convolution by its input and by its filter."""
    x, dy = (_rng().normal(size=(1, 56, 56, 64)).astype(np.float32) for _ in range(2))
    w = _rng().normal(size=(3, 3, 64, 64)).astype(np.float32)
    sizes, taps = np.array(x.shape, np.int32), np.array(w.shape, np.int32)
    attrs: dict[str, Any] = {"strides": (1, 1, 1, 1), "padding": "SAME"}

    def torch_input(w: Any, dy: Any) -> Any:
        made = _torch("nn.functional.conv_transpose2d")(dy.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), padding=1)
        return made.permute(0, 2, 3, 1)

    def tensorflow_input(w: Any, dy: Any) -> Any:
        return _tensorflow("raw_ops").Conv2DBackpropInput(input_sizes=sizes, filter=w, out_backprop=dy, **attrs)

    def tensorflow_filter(x: Any, dy: Any) -> Any:
        return _tensorflow("raw_ops").Conv2DBackpropFilter(input=x, filter_sizes=taps, out_backprop=dy, **attrs)

    flops, moved, targets = 2.0 * 56 * 56 * 64 * 64 * 9, 4.0 * (2 * x.size + w.size), [("matmul", 0.6)]
    by_input: dict[str, Callable[..., Any]] = {"torch": torch_input, "tensorflow": tensorflow_input}
    return [
        Workload("conv by input", [w, dy], lambda w, dy: op("Conv2DBackpropInput", [sizes, w, dy], attrs), flops, moved,
                 by_input, targets),
        Workload("conv by filter", [x, dy], lambda x, dy: op("Conv2DBackpropFilter", [x, taps, dy], attrs), flops,
                 moved, {"tensorflow": tensorflow_filter}, targets),
    ]  # fmt: skip
