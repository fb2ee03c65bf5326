"""Whole networks by name, as graphs of our own that need no other system.

`build("ResNet-50", batch=8)` gives the graph with feeds and fetches; `build_training` a graph with a training step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import timberframe as tf
from timberframe_conformance.bench.models import training
from timberframe_conformance.bench.models.dense import densenet121
from timberframe_conformance.bench.models.efficient import efficientnet_b0
from timberframe_conformance.bench.models.inception import inception_v3, xception
from timberframe_conformance.bench.models.layers import Layers
from timberframe_conformance.bench.models.mobile import mobilenet_v1, mobilenet_v2, mobilenet_v3_small
from timberframe_conformance.bench.models.nasnet import nasnet_mobile
from timberframe_conformance.bench.models.recurrent import gru, lstm
from timberframe_conformance.bench.models.residual import resnet50
from timberframe_conformance.bench.models.small import lenet, mlp
from timberframe_conformance.bench.models.transformer import Sizes, bert
from timberframe_conformance.bench.models.unet import unet

SEED = 7
SMALL_WIDTH = 1 / 8
"""Fraction of the channels that small versions have."""

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Model:
    """A graph and what a run of it needs.

    feeds: a value for each placeholder. fetches: what is computed; of a training graph its loss and the lengths of all
    gradients. initialize: gives the variables their first values; None where there are none. step: a training step;
    None where nothing is trained.
    """

    name: str
    batch: int
    graph: tf.Graph
    feeds: Mapping[Any, np.ndarray]
    fetches: list[Any]
    initialize: Any = None
    step: Any = None


@dataclass(frozen=True)
class Network:
    """How an inference network is built. shape, small: of one input, published and in small versions."""

    build: Callable[..., Any]
    shape: Shape
    small: Shape
    feeds: Callable[[np.random.Generator, Shape], list[np.ndarray]] = field(default=lambda rng, s: [_normal(rng, s)])


def _normal(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    return rng.standard_normal(shape, np.float32)


def _texts(rng: np.random.Generator, shape: Shape) -> list[np.ndarray]:
    """Token ids, a mask that gives texts different lengths, and segments."""
    batch, length = shape
    tokens = rng.integers(0, SMALL_BERT.vocabulary, shape)
    ends = rng.integers(length // 2, length + 1, (batch, 1))
    mask, segments = np.arange(length) < ends, np.arange(length) >= ends // 2
    return [np.asarray(v, np.int32) for v in (tokens, mask, segments)]


SMALL_BERT = Sizes(layers=2, vocabulary=100, positions=32)


def _bert(layers: Layers, tokens: Any, mask: Any, segments: Any) -> Any:
    small = layers.channels(Sizes.width) < Sizes.width
    return bert(layers, tokens, mask, segments, SMALL_BERT if small else Sizes())


IMAGE, SMALL_IMAGE = (96, 96, 3), (32, 32, 3)

NETWORKS: dict[str, Network] = {
    "ResNet-50": Network(resnet50, IMAGE, SMALL_IMAGE),
    "InceptionV3": Network(inception_v3, IMAGE, (75, 75, 3)),
    "Xception": Network(xception, IMAGE, SMALL_IMAGE),
    "MobileNetV1 0.25": Network(mobilenet_v1, IMAGE, SMALL_IMAGE),
    "MobileNetV2": Network(mobilenet_v2, IMAGE, SMALL_IMAGE),
    "MobileNetV3 small": Network(mobilenet_v3_small, IMAGE, SMALL_IMAGE),
    "DenseNet-121": Network(densenet121, IMAGE, SMALL_IMAGE),
    "EfficientNet-B0": Network(efficientnet_b0, IMAGE, SMALL_IMAGE),
    "NASNet mobile": Network(nasnet_mobile, IMAGE, SMALL_IMAGE),
    "U-Net": Network(unet, (64, 64, 3), (16, 16, 3)),
    "LeNet": Network(lenet, (28, 28, 1), (12, 12, 1)),
    "MLP": Network(mlp, (784,), (20,)),
    "BERT small": Network(_bert, (32,), (8,), _texts),
    "LSTM": Network(lstm, (16, 32), (5, 6)),
    "GRU": Network(gru, (16, 32), (5, 6)),
}


def names() -> list[str]:
    """Returns the names that `build` takes."""
    return list(NETWORKS)


def build(
    name: str, batch: int = 1, *, variables: bool = False, small: bool = False, device: str | None = None
) -> Model:
    """Returns a network for inference, with the same weights and feeds at every call.

    variables: weights are resource variables instead of constants. small: the same structure with small inputs and few
    channels, for tests. device: where its nodes go; None leaves that to the session. Raises KeyError for another name.
    """
    network = NETWORKS[name]
    layers = Layers(SEED, variables, SMALL_WIDTH if small else 1.0)
    values = network.feeds(np.random.default_rng(SEED + 1), (batch, *(network.small if small else network.shape)))
    with tf.Graph().as_default() as graph, tf.device(device):
        inputs = [tf.placeholder(v.dtype, v.shape, name=f"input{i}") for i, v in enumerate(values)]
        output = tf.identity(network.build(layers, *inputs), name="output")
        initialize = tf.global_variables_initializer() if variables else None
    return Model(name, batch, graph, dict(zip(inputs, values, strict=True)), [output], initialize)


def training_names() -> list[str]:
    """Returns the names that `build_training` takes."""
    return list(training.STEPS)


def build_training(name: str, *, small: bool = False, device: str | None = None) -> Model:
    """Returns a network with its loss and a training step, with the same start and feeds at
    every call; else as `build`.
    """
    made = training.STEPS[name]
    layers = Layers(SEED, variables=True, width=SMALL_WIDTH if small else 1.0)
    shape = made.small if small else made.shape
    with tf.Graph().as_default() as graph, tf.device(device):
        feeds, fetches, step = made.build(layers, np.random.default_rng(SEED + 1), shape)
        initialize = tf.global_variables_initializer()
    return Model(name, shape[0], graph, feeds, fetches, initialize, step)


def training_batch(name: str) -> int:
    """Returns how many inputs a training step takes."""
    return training.STEPS[name].shape[0]
