"""The pass `norms`: constant filters do the normalization that follows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import timberframe as tf
import timberframe_sdk as sdk
from timberframe_sdk.numpy_device import NumpyAllocator, NumpyDevice
from timberframe_sdk.testing.loaded import loaded_plugin

RNG = np.random.default_rng(0)
IMAGE = RNG.standard_normal((2, 6, 5, 3), np.float32)
FILTERS = RNG.standard_normal((3, 2, 3, 4), np.float32)
OPS = ("Conv2D", "DepthwiseConv2dNative", "BiasAdd", "FusedBatchNormV3", "Relu", "AddV2", "Mul")


def statistics(channels: int) -> list[np.ndarray]:
    """Scale, offset, mean and variance."""
    return [RNG.uniform(0.5, 2, channels).astype(np.float32) for _ in range(4)]


class FusingDevice(NumpyDevice):
    type, priority = "FUSING", 0

    def __init__(self, index: int = 0) -> None:
        super().__init__(index)
        self.allocator = NumpyAllocator()


def layer(node: sdk.KernelNode) -> sdk.Launcher:
    conv, relu = node.inner[0].nodes[0], np.float32(0)

    def launch(x: np.ndarray, filters: np.ndarray, bias: np.ndarray, out: np.ndarray) -> None:
        out[...] = np.maximum(sdk.compute(conv, [x, filters])[0] + bias, relu)

    return launch


def layer_with_norm(node: sdk.KernelNode) -> sdk.Launcher:
    conv, norm = node.inner[0].nodes

    def launch(x: np.ndarray, filters: np.ndarray, *rest: np.ndarray) -> None:
        for out, value in zip(rest[4:], sdk.compute(norm, [*sdk.compute(conv, [x, filters]), *rest[:4]]), strict=False):
            out[...] = value

    return launch


def with_bias(op: str) -> sdk.KernelDef:
    parts = sdk.Part("y", op, ("x", "filters")), sdk.Part("s", "BiasAdd", ("y", "bias")), sdk.Part("o", "Relu", ("s",))
    return sdk.KernelDef(f"Fusing>{op}", "FUSING", layer, covers=parts)


def with_norm(op: str) -> sdk.KernelDef:
    norm = sdk.Part("n", "FusedBatchNormV3", ("y", "scale", "offset", "mean", "variance"))
    return sdk.KernelDef(
        f"Fusing>{op}Norm", "FUSING", layer_with_norm, covers=(sdk.Part("y", op, ("x", "filters")), norm)
    )


@pytest.fixture(params=["plain", "biases", "norms"])
def kernels(request: pytest.FixtureRequest) -> Iterator[str]:
    """A device with kernels for single nodes, with those for convolutions with a bias, or also with a normalization."""
    found = list(sdk.reference_kernels("FUSING", OPS))
    for op in ("Conv2D", "DepthwiseConv2dNative"):
        found += [with_bias(op)] * (request.param != "plain") + [with_norm(op)] * (request.param == "norms")
    plugin = SimpleNamespace(
        timberframe_devices=sdk.hookimpl(lambda config: [FusingDevice()]),
        timberframe_kernels=sdk.hookimpl(lambda: found),
    )
    with loaded_plugin("fusing", plugin):
        yield request.param


biases = pytest.mark.parametrize("kernels", ["biases"], indirect=True)


def convolution(x: Any) -> Any:
    return tf.nn.conv2d(x, FILTERS, [1, 2, 1, 1], "SAME")


def depthwise(x: Any) -> Any:
    return tf.nn.depthwise_conv2d(x, FILTERS, [1, 1, 1, 1], "VALID")


def normalized(y: Any, scale: Any = None, training: bool = False) -> list[Any]:
    own, *rest = statistics(int(y.shape[-1]))
    given = [own if scale is None else scale, *rest] if not training else [own, rest[0], [], []]
    return list(sdk.apply_op("FusedBatchNormV3", [y, *given], {"is_training": training, "epsilon": 1e-3}, name="norm"))


def rewritten(build: Callable[[Any], Any]) -> tuple[str, ...]:
    """Returns what the pass rewrote in a graph, and checks that results are those without it but for rounding."""
    with tf.Graph().as_default(), tf.device("/device:FUSING:0"):
        x = tf.placeholder(tf.float32, IMAGE.shape)
        y = build(x)
        with tf.Session() as session, tf.Session(config=tf.SessionConfig(optimizations={"norms": False})) as off:
            np.testing.assert_allclose(session.run(y, {x: IMAGE}), off.run(y, {x: IMAGE}), rtol=1e-5, atol=1e-5)
            explained = session.explain(y, {x: IMAGE})
            return explained.rewritten("norms")


@pytest.mark.parametrize("build", [convolution, depthwise])
def test_a_normalization_is_folded_where_a_kernel_adds_biases_alone(kernels: str, build: Callable[[Any], Any]) -> None:
    found = rewritten(lambda x: tf.nn.relu(normalized(build(x))[0]))
    assert ("norm" in found) == (kernels == "biases")


@biases
def test_the_kernel_with_a_bias_runs_the_layer(kernels: str) -> None:
    with tf.Graph().as_default(), tf.device("/device:FUSING:0"):
        x = tf.placeholder(tf.float32, IMAGE.shape)
        y = tf.nn.relu(normalized(convolution(x))[0])
        with tf.Session() as session:
            assert [k.op for k in session.explain(y, {x: IMAGE}).kernels] == ["Fusing>Conv2D"]


def read_twice(x: Any) -> Any:
    y = convolution(x)
    return normalized(y)[0] + y


def statistics_are_read(x: Any) -> Any:
    y, mean, *_ = normalized(convolution(x))
    return y + mean


def of_the_batch(x: Any) -> Any:
    return normalized(convolution(x), training=True)[0]


def without_variance(x: Any) -> Any:
    y = convolution(x)
    rest = [np.ones(4, np.float32), np.zeros(4, np.float32), np.zeros(4, np.float32), np.full(4, -1e-3, np.float32)]
    return sdk.apply_op("FusedBatchNormV3", [y, *rest], {"is_training": False, "epsilon": 1e-3}, name="norm")[0]


@biases
@pytest.mark.parametrize("build", [read_twice, statistics_are_read, of_the_batch, without_variance])
def test_other_normalizations_stay(kernels: str, build: Callable[[Any], Any]) -> None:
    assert "norm" not in rewritten(build)
