"""The frame that both versions of residual networks share: root, blocks, global mean, logits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from timberframe.api.reduction import reduce_mean
from timberframe.api.softmax import softmax
from timberframe.api.unary import relu
from timberframe.api.variable_scope import variable_scope
from timberframe_contrib.contrib import layers
from timberframe_contrib.contrib.framework import arg_scope
from timberframe_contrib.contrib.layers import utils
from timberframe_contrib.contrib.slim_nets.resnet_utils import Block, conv2d_same, root_stride, stack_blocks_dense

Unit = Callable[..., Any]
DEPTHS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3), 200: (3, 24, 36, 3)}
"""By the number of layers, how many units the four blocks have."""


def block(unit: Unit, scope: str, base_depth: int, num_units: int, stride: int) -> Block:
    """Returns a block of equal units, the last of which has the stride."""
    of_each = {"depth": base_depth * 4, "depth_bottleneck": base_depth}
    return Block(scope, unit, [{**of_each, "stride": s} for s in (1,) * (num_units - 1) + (stride,)])


def blocks_of(unit: Unit, count: int) -> list[Block]:
    """Returns the four blocks of a network of `count` layers."""
    counts = DEPTHS[count]
    return [block(unit, f"block{i + 1}", 64 << i, n, 1 if i == 3 else 2) for i, n in enumerate(counts)]


def of_layers(count: int, build: Callable[..., tuple[Any, dict[str, Any]]], unit: Unit) -> Callable[..., Any]:
    """Returns the function that builds the network of `count` layers, one of DEPTHS.

    build: the function that builds a network of any blocks, `resnet_v1` or `resnet_v2`.
    """
    name = f"{build.__name__}_{count}"

    def network(
        inputs: Any,
        num_classes: int | None = None,
        is_training: bool = True,
        global_pool: bool = True,
        output_stride: int | None = None,
        reuse: Any = None,
        scope: Any = name,
    ) -> tuple[Any, dict[str, Any]]:
        blocks = blocks_of(unit, count)
        return build(inputs, blocks, num_classes, is_training, global_pool, output_stride, True, reuse, scope)

    network.__name__ = network.__qualname__ = name
    network.__module__ = build.__module__
    network.__doc__ = f"`{build.__name__}` of {count} layers."
    return network


def network(
    inputs: Any,
    blocks: Sequence[Block],
    num_classes: int | None,
    is_training: bool,
    global_pool: bool,
    output_stride: int | None,
    include_root_block: bool,
    reuse: Any,
    scope: Any,
    version: str,
    unit: Unit,
) -> tuple[Any, dict[str, Any]]:
    """Returns a residual network and its end points by name.

    version: `resnet_v1`, or `resnet_v2`, which has batch norm at the end. unit: what makes a unit of it.
    """
    pre_activated = version == "resnet_v2"
    with variable_scope(scope, version, [inputs], reuse=reuse) as opened:
        collection = f"{opened.original_name_scope}_end_points"
        with (
            arg_scope([layers.conv2d, unit, stack_blocks_dense], outputs_collections=collection),
            arg_scope([layers.batch_norm], is_training=is_training),
        ):
            net = inputs
            if include_root_block:
                output_stride = root_stride(output_stride)
                plain = {"activation_fn": None, "normalizer_fn": None} if pre_activated else {}
                with arg_scope([layers.conv2d], **plain):
                    net = conv2d_same(net, 64, 7, stride=2, scope="conv1")
                net = layers.max_pool2d(net, [3, 3], stride=2, scope="pool1")
            net = stack_blocks_dense(net, blocks, output_stride)
            if pre_activated:
                net = layers.batch_norm(net, activation_fn=relu, scope="postnorm")
            if global_pool:
                net = reduce_mean(net, [1, 2], name="pool5", keepdims=True)
            if num_classes is not None:
                net = layers.conv2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="logits")
            end_points = dict(utils.convert_collection_to_dict(collection))
            if num_classes is not None:
                end_points["predictions"] = softmax(net, name="predictions")
            return net, end_points
