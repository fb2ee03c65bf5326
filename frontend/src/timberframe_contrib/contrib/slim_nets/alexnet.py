"""AlexNet, version 2, of "One weird trick for parallelizing convolutional neural networks" (arXiv 1404.5997)."""

from __future__ import annotations

from typing import Any

from timberframe.api.arrays import squeeze
from timberframe.api.initializers import constant_initializer, zeros_initializer
from timberframe.api.random_initializers import truncated_normal_initializer
from timberframe.api.unary import relu
from timberframe.api.variable_scope import variable_scope
from timberframe_contrib.contrib import layers
from timberframe_contrib.contrib.framework import arg_scope
from timberframe_contrib.contrib.layers import utils

_SMALL = 0.005  # the deviation of the first weights of fc6, fc7 and fc8


def alexnet_v2_arg_scope(weight_decay: float = 0.0005) -> Any:
    """Returns the argument scope in which the network is built: relu, biases of 0.1, and the L2 loss of weights."""
    with (
        arg_scope(
            [layers.conv2d, layers.fully_connected], activation_fn=relu, biases_initializer=constant_initializer(0.1),
            weights_regularizer=layers.l2_regularizer(weight_decay),
        ),
        arg_scope([layers.conv2d], padding="SAME"),
        arg_scope([layers.max_pool2d], padding="VALID") as opened,
    ):  # fmt: skip
        return opened


def alexnet_v2(
    inputs: Any,
    num_classes: int = 1000,
    is_training: bool = True,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    scope: Any = "alexnet_v2",
) -> tuple[Any, dict[str, Any]]:
    """Returns the network with its logits [batch, num_classes], and its end points by name.

    inputs: images of 224x224 pixels.
    """
    with variable_scope(scope, "alexnet_v2", [inputs]) as opened:
        collection = f"{opened.original_name_scope}_end_points"
        with arg_scope([layers.conv2d, layers.fully_connected, layers.max_pool2d], outputs_collections=collection):
            net = layers.conv2d(inputs, 64, [11, 11], 4, padding="VALID", scope="conv1")
            net = layers.max_pool2d(net, [3, 3], 2, scope="pool1")
            net = layers.conv2d(net, 192, [5, 5], scope="conv2")
            net = layers.max_pool2d(net, [3, 3], 2, scope="pool2")
            for i, channels in enumerate((384, 384, 256), 3):
                net = layers.conv2d(net, channels, [3, 3], scope=f"conv{i}")
            net = layers.max_pool2d(net, [3, 3], 2, scope="pool5")
            with arg_scope([layers.conv2d], weights_initializer=truncated_normal_initializer(0.0, _SMALL)):
                net = layers.conv2d(net, 4096, [5, 5], padding="VALID", scope="fc6")
                net = layers.dropout(net, dropout_keep_prob, is_training=is_training, scope="dropout6")
                net = layers.conv2d(net, 4096, [1, 1], scope="fc7")
                net = layers.dropout(net, dropout_keep_prob, is_training=is_training, scope="dropout7")
                net = layers.conv2d(
                    net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None,
                    biases_initializer=zeros_initializer(), scope="fc8",
                )  # fmt: skip
            end_points = dict(utils.convert_collection_to_dict(collection))
            if spatial_squeeze:
                net = end_points[f"{opened.name}/fc8"] = squeeze(net, [1, 2], name="fc8/squeezed")
            return net, end_points


alexnet_v2.default_image_size = 224  # type: ignore[attr-defined]  # where programs look for it
