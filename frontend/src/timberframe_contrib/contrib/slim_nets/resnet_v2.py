"""Residual networks, version 2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from timberframe.api.unary import relu
from timberframe.api.variable_scope import variable_scope
from timberframe_contrib.contrib import layers
from timberframe_contrib.contrib.framework import add_arg_scope
from timberframe_contrib.contrib.layers import utils
from timberframe_contrib.contrib.slim_nets import residual
from timberframe_contrib.contrib.slim_nets.resnet_utils import Block, conv2d_same, subsample
from timberframe_contrib.contrib.slim_nets.resnet_utils import resnet_arg_scope as resnet_arg_scope


@add_arg_scope
def bottleneck(
    inputs: Any,
    depth: int,
    depth_bottleneck: int,
    stride: int,
    rate: int = 1,
    outputs_collections: Any = None,
    scope: Any = None,
) -> Any:
    """Returns a unit of batch norm and three convolutions, 1x1, 3x3 and 1x1, whose result is added to its inputs.

    depth: channels of the result; depth_bottleneck: of the two before it. rate: distance of the pixels that
    neighbouring weights of the 3x3 convolution take.
    """
    with variable_scope(scope, "bottleneck_v2", [inputs]) as opened:
        ready = layers.batch_norm(inputs, activation_fn=relu, scope="preact")
        plain: dict[str, Any] = {"normalizer_fn": None, "activation_fn": None}
        if depth == utils.last_dimension(inputs.shape, min_rank=4):
            shortcut = subsample(inputs, stride, "shortcut")
        else:
            shortcut = layers.conv2d(ready, depth, [1, 1], stride=stride, scope="shortcut", **plain)
        net = layers.conv2d(ready, depth_bottleneck, [1, 1], stride=1, scope="conv1")
        net = conv2d_same(net, depth_bottleneck, 3, stride, rate=rate, scope="conv2")
        net = layers.conv2d(net, depth, [1, 1], stride=1, scope="conv3", **plain)
        return utils.collect_named_outputs(outputs_collections, opened.name, shortcut + net)


def resnet_v2(
    inputs: Any,
    blocks: Sequence[Block],
    num_classes: int | None = None,
    is_training: bool = True,
    global_pool: bool = True,
    output_stride: int | None = None,
    include_root_block: bool = True,
    reuse: Any = None,
    scope: Any = None,
) -> tuple[Any, dict[str, Any]]:
    """Returns a network of these blocks, and its end points by name.

    inputs: images [batch, height, width, channels]. num_classes: of the logits, None for the features alone.
    global_pool: whether the mean over the image is taken. output_stride: how many times smaller the image is at most.
    include_root_block: whether the first convolution and pooling are there.
    """
    return residual.network(
        inputs, blocks, num_classes, is_training, global_pool, output_stride, include_root_block, reuse, scope,
        "resnet_v2", bottleneck,
    )  # fmt: skip


def resnet_v2_block(scope: str, base_depth: int, num_units: int, stride: int) -> Block:
    """Returns a block of units of 4 * base_depth channels, the last of which has the stride."""
    return residual.block(bottleneck, scope, base_depth, num_units, stride)


resnet_v2_50 = residual.of_layers(50, resnet_v2, bottleneck)
resnet_v2_101 = residual.of_layers(101, resnet_v2, bottleneck)
resnet_v2_152 = residual.of_layers(152, resnet_v2, bottleneck)
resnet_v2_200 = residual.of_layers(200, resnet_v2, bottleneck)
