"""What both versions of residual networks are made of: blocks, strides that stop at a resolution, argument scopes."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

from timberframe.api.arrays import pad
from timberframe.api.unary import relu
from timberframe.api.variable_scope import variable_scope
from timberframe_contrib.contrib import layers
from timberframe_contrib.contrib.framework import add_arg_scope, arg_scope
from timberframe_contrib.contrib.layers import utils
from timberframe_core.errors import InvalidArgumentError

Block = namedtuple("Block", ["scope", "unit_fn", "args"])
"""A block: its name, the function that makes one of its units, and for each unit the arguments of that function."""


def subsample(inputs: Any, factor: int, scope: str | None = None) -> Any:
    """Returns every factor-th pixel of images."""
    return inputs if factor == 1 else layers.max_pool2d(inputs, [1, 1], stride=factor, scope=scope)


def conv2d_same(
    inputs: Any, num_outputs: int, kernel_size: int, stride: int, rate: int = 1, scope: str | None = None
) -> Any:
    """Returns a convolution with padding that does not depend on the image's size, also where it has a stride.

    "SAME" pads an image of even size at one end only, so that a stride would take other pixels of it.
    """
    if stride == 1:
        return layers.conv2d(inputs, num_outputs, kernel_size, stride=1, rate=rate, padding="SAME", scope=scope)
    reach = (kernel_size - 1) * rate
    around = [reach // 2, reach - reach // 2]
    padded = pad(inputs, [[0, 0], around, around, [0, 0]])
    return layers.conv2d(padded, num_outputs, kernel_size, stride=stride, rate=rate, padding="VALID", scope=scope)


@add_arg_scope
def stack_blocks_dense(
    net: Any, blocks: Sequence[Block], output_stride: int | None = None, outputs_collections: Any = None
) -> Any:
    """Stacks the blocks, one after the other.

    output_stride: the product of strides from which on units keep the resolution, and have a `rate` in place of a
    stride. Each block's result goes to outputs_collections.
    """
    reached, rate = 1, 1
    for block in blocks:
        with variable_scope(block.scope, "block", [net]) as opened:
            for i, unit in enumerate(block.args, 1):
                stride = unit.get("stride", 1)
                with variable_scope(f"unit_{i}", values=[net]):
                    if output_stride is not None and reached == output_stride:
                        net = block.unit_fn(net, **{**unit, "stride": 1, "rate": rate})
                        rate *= stride
                    else:
                        net = block.unit_fn(net, **unit, rate=1)
                        reached *= stride
                        check_reachable(output_stride, reached)
            net = utils.collect_named_outputs(outputs_collections, opened.name, net)
    if output_stride is not None and reached != output_stride:
        raise _unreachable(output_stride, reached)
    return net


def check_reachable(output_stride: int | None, reached: int) -> None:
    """Raises InvalidArgumentError, which is a ValueError, where strides have come to more than output_stride."""
    if output_stride is not None and reached > output_stride:
        raise _unreachable(output_stride, reached)


def _unreachable(output_stride: int, reached: int) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"stack_blocks_dense: output_stride is {output_stride}, the strides of the units come to {reached}; "
        "it must be a product of the first of them"
    )


def resnet_arg_scope(
    weight_decay: float = 0.0001,
    batch_norm_decay: float = 0.997,
    batch_norm_epsilon: float = 1e-5,
    batch_norm_scale: bool = True,
) -> Any:
    """Returns the argument scope of residual networks: batch norm after convolutions, L2 loss of weights."""
    normal = {
        "decay": batch_norm_decay, "epsilon": batch_norm_epsilon, "scale": batch_norm_scale,
        "updates_collections": "update_ops",
    }  # fmt: skip
    with (
        arg_scope(
            [layers.conv2d], weights_regularizer=layers.l2_regularizer(weight_decay),
            weights_initializer=layers.variance_scaling_initializer(), activation_fn=relu,
            normalizer_fn=layers.batch_norm, normalizer_params=normal,
        ),
        arg_scope([layers.batch_norm], **normal),
        arg_scope([layers.max_pool2d], padding="SAME") as opened,
    ):  # fmt: skip
        return opened


def root_stride(output_stride: int | None) -> int | None:
    """Returns the part of output_stride that the first convolution and pooling, of strides 4 together, leave."""
    if output_stride is None:
        return None
    if output_stride % 4:
        raise InvalidArgumentError(f"resnet: output_stride is {output_stride}; it must be a multiple of 4")
    return output_stride // 4
