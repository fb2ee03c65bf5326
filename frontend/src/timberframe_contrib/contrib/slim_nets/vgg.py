"""Networks of the Visual Geometry Group, of "Very Deep Convolutional Networks" (arXiv 1409.1556)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timberframe.api.arrays import squeeze
from timberframe.api.initializers import zeros_initializer
from timberframe.api.unary import relu
from timberframe.api.variable_scope import variable_scope
from timberframe_contrib.contrib import layers
from timberframe_contrib.contrib.framework import arg_scope
from timberframe_contrib.contrib.layers import utils

_CHANNELS = (64, 128, 256, 512, 512)


def vgg_arg_scope(weight_decay: float = 0.0005) -> Any:
    """Returns the argument scope in which the networks are built: relu, and the L2 loss of weights."""
    with (
        arg_scope(
            [layers.conv2d, layers.fully_connected], activation_fn=relu, biases_initializer=zeros_initializer(),
            weights_regularizer=layers.l2_regularizer(weight_decay),
        ),
        arg_scope([layers.conv2d], padding="SAME") as opened,
    ):  # fmt: skip
        return opened


def _network(name: str, repetitions: tuple[int, ...]) -> Callable[..., tuple[Any, dict[str, Any]]]:
    """Returns the network whose five groups have so many convolutions."""

    def network(
        inputs: Any,
        num_classes: int = 1000,
        is_training: bool = True,
        dropout_keep_prob: float = 0.5,
        spatial_squeeze: bool = True,
        scope: Any = name,
    ) -> tuple[Any, dict[str, Any]]:
        with variable_scope(scope, name, [inputs]) as opened:
            collection = f"{opened.original_name_scope}_end_points"
            with arg_scope([layers.conv2d, layers.fully_connected, layers.max_pool2d], outputs_collections=collection):
                net = inputs
                for i, (count, channels) in enumerate(zip(repetitions, _CHANNELS, strict=True), 1):
                    net = layers.repeat(net, count, layers.conv2d, channels, [3, 3], scope=f"conv{i}")
                    net = layers.max_pool2d(net, [2, 2], scope=f"pool{i}")
                net = layers.conv2d(net, 4096, [7, 7], padding="VALID", scope="fc6")
                net = layers.dropout(net, dropout_keep_prob, is_training=is_training, scope="dropout6")
                net = layers.conv2d(net, 4096, [1, 1], scope="fc7")
                net = layers.dropout(net, dropout_keep_prob, is_training=is_training, scope="dropout7")
                net = layers.conv2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="fc8")
                end_points = dict(utils.convert_collection_to_dict(collection))
                if spatial_squeeze:
                    net = end_points[f"{opened.name}/fc8"] = squeeze(net, [1, 2], name="fc8/squeezed")
                return net, end_points

    network.__name__ = network.__qualname__ = name
    network.__doc__ = f"The network {name} with its logits [batch, num_classes], and its end points by name."
    network.default_image_size = 224  # type: ignore[attr-defined]  # where programs look for it
    return network


vgg_a = _network("vgg_a", (1, 1, 2, 2, 2))
vgg_16 = _network("vgg_16", (2, 2, 3, 3, 3))
vgg_19 = _network("vgg_19", (2, 2, 4, 4, 4))
