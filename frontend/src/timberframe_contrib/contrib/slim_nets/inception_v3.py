"""Inception, version 3, of "Rethinking the Inception Architecture for Computer Vision" (arXiv 1512.00567)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from timberframe.api.arrays import concat, squeeze
from timberframe.api.random_initializers import truncated_normal_initializer
from timberframe.api.unary import relu
from timberframe.api.variable_scope import variable_scope
from timberframe_contrib.contrib import layers
from timberframe_contrib.contrib.framework import arg_scope
from timberframe_core.errors import InvalidArgumentError

_Step = tuple[str, int, Any]  # the scope, the number of channels (0 for a pooling), the kernel
_Part = _Step | list[_Step]  # a list is of convolutions side by side, whose results are joined
_Branches = Sequence[Sequence[_Part]]

_STEM = (
    ("Conv2d_1a_3x3", 32, 3, 2, "VALID"), ("Conv2d_2a_3x3", 32, 3, 1, "VALID"), ("Conv2d_2b_3x3", 64, 3, 1, "SAME"),
    ("MaxPool_3a_3x3", 0, 3, 2, "VALID"), ("Conv2d_3b_1x1", 80, 1, 1, "VALID"), ("Conv2d_4a_3x3", 192, 3, 1, "VALID"),
    ("MaxPool_5a_3x3", 0, 3, 2, "VALID"),
)  # fmt: skip
"""Scope, channels (0 for a pooling), kernel, stride and padding of what comes before the mixed blocks."""


def _of_35(first: str, second: str, pooled: int) -> _Branches:
    """Returns a block at 35x35 pixels. first, second: scopes in its second branch, which differ between blocks."""
    return (
        [("Conv2d_0a_1x1", 64, 1)],
        [(first, 48, 1), (second, 64, 5)],
        [("Conv2d_0a_1x1", 64, 1), ("Conv2d_0b_3x3", 96, 3), ("Conv2d_0c_3x3", 96, 3)],
        [("AvgPool_0a_3x3", 0, 3), ("Conv2d_0b_1x1", pooled, 1)],
    )


def _of_17(depth: int) -> _Branches:
    """Returns a block at 17x17 pixels, with convolutions along rows and columns in turn."""
    row, column = [1, 7], [7, 1]
    return (
        [("Conv2d_0a_1x1", 192, 1)],
        [("Conv2d_0a_1x1", depth, 1), ("Conv2d_0b_1x7", depth, row), ("Conv2d_0c_7x1", 192, column)],
        [
            ("Conv2d_0a_1x1", depth, 1), ("Conv2d_0b_7x1", depth, column), ("Conv2d_0c_1x7", depth, row),
            ("Conv2d_0d_7x1", depth, column), ("Conv2d_0e_1x7", 192, row),
        ],
        [("AvgPool_0a_3x3", 0, 3), ("Conv2d_0b_1x1", 192, 1)],
    )  # fmt: skip


def _of_8(column: str) -> _Branches:
    """Returns a block at 8x8 pixels. column: the scope of one convolution, which two blocks name differently."""
    return (
        [("Conv2d_0a_1x1", 320, 1)],
        [("Conv2d_0a_1x1", 384, 1), [("Conv2d_0b_1x3", 384, [1, 3]), (column, 384, [3, 1])]],
        [
            ("Conv2d_0a_1x1", 448, 1), ("Conv2d_0b_3x3", 384, 3),
            [("Conv2d_0c_1x3", 384, [1, 3]), ("Conv2d_0d_3x1", 384, [3, 1])],
        ],
        [("AvgPool_0a_3x3", 0, 3), ("Conv2d_0b_1x1", 192, 1)],
    )  # fmt: skip


_TO_17: _Branches = (
    [("Conv2d_1a_1x1", 384, 3)],
    [("Conv2d_0a_1x1", 64, 1), ("Conv2d_0b_3x3", 96, 3), ("Conv2d_1a_1x1", 96, 3)],
    [("MaxPool_1a_3x3", 0, 3)],
)
_TO_8: _Branches = (
    [("Conv2d_0a_1x1", 192, 1), ("Conv2d_1a_3x3", 320, 3)],
    [
        ("Conv2d_0a_1x1", 192, 1), ("Conv2d_0b_1x7", 192, [1, 7]), ("Conv2d_0c_7x1", 192, [7, 1]),
        ("Conv2d_1a_3x3", 192, 3),
    ],
    [("MaxPool_1a_3x3", 0, 3)],
)  # fmt: skip
_MIXED: Sequence[tuple[str, _Branches]] = (
    ("Mixed_5b", _of_35("Conv2d_0a_1x1", "Conv2d_0b_5x5", 32)),
    ("Mixed_5c", _of_35("Conv2d_0b_1x1", "Conv_1_0c_5x5", 64)),
    ("Mixed_5d", _of_35("Conv2d_0a_1x1", "Conv2d_0b_5x5", 64)),
    ("Mixed_6a", _TO_17),
    ("Mixed_6b", _of_17(128)),
    ("Mixed_6c", _of_17(160)),
    ("Mixed_6d", _of_17(160)),
    ("Mixed_6e", _of_17(192)),
    ("Mixed_7a", _TO_8),
    ("Mixed_7b", _of_8("Conv2d_0b_3x1")),
    ("Mixed_7c", _of_8("Conv2d_0c_3x1")),
)
_HALVES = ("Conv2d_1a", "MaxPool_1a")  # scopes of what halves the resolution


def inception_v3_base(
    inputs: Any, final_endpoint: str = "Mixed_7c", min_depth: int = 16, depth_multiplier: float = 1.0, scope: Any = None
) -> tuple[Any, dict[str, Any]]:
    """Returns the network up to an end point, and all end points until there by name.

    inputs: images [batch, height, width, 3], 299x299 in the paper. depth_multiplier: of the channels of convolutions,
    which are at least min_depth.
    """
    names = [name for name, *_ in (*_STEM, *_MIXED)]
    if depth_multiplier <= 0:
        raise InvalidArgumentError(f"inception_v3: depth_multiplier is {depth_multiplier}; it must be above 0")
    if final_endpoint not in names:
        raise InvalidArgumentError(f"inception_v3: Unknown final endpoint {final_endpoint}; one of {names} is required")
    end_points: dict[str, Any] = {}

    def depth(channels: int) -> int:
        return max(int(channels * depth_multiplier), min_depth)

    with variable_scope(scope, "InceptionV3", [inputs]):
        net = inputs
        for name, channels, kernel, stride, padding in _STEM:
            given: dict[str, Any] = {"stride": stride, "padding": padding, "scope": name}
            if channels:
                net = layers.conv2d(net, depth(channels), [kernel, kernel], **given)
            else:
                net = layers.max_pool2d(net, [kernel, kernel], **given)
            end_points[name] = net
            if name == final_endpoint:
                return net, end_points
        for name, branches in _MIXED:
            net = end_points[name] = _mixed(net, name, branches, depth)
            if name == final_endpoint:
                break
    return net, end_points


def _mixed(net: Any, name: str, branches: _Branches, depth: Callable[[int], int]) -> Any:
    """Returns a block: the results of its branches, joined along the channels."""
    with variable_scope(name):
        made = []
        for i, branch in enumerate(branches):
            with variable_scope(f"Branch_{i}"):
                value = net
                for part in branch:
                    if isinstance(part, list):
                        value = concat([_step(value, step, depth) for step in part], 3)
                    else:
                        value = _step(value, part, depth)
                made.append(value)
        return concat(made, 3)


def _step(value: Any, step: _Step, depth: Callable[[int], int]) -> Any:
    name, channels, kernel = step
    size = [kernel, kernel] if isinstance(kernel, int) else kernel
    halves = name.startswith(_HALVES)
    given: dict[str, Any] = {"stride": 2 if halves else 1, "padding": "VALID" if halves else "SAME", "scope": name}
    if channels:
        return layers.conv2d(value, depth(channels), size, **given)
    return (layers.max_pool2d if name.startswith("Max") else layers.avg_pool2d)(value, size, **given)


def inception_v3(
    inputs: Any,
    num_classes: int = 1000,
    is_training: bool = True,
    dropout_keep_prob: float = 0.8,
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    prediction_fn: Callable[..., Any] = layers.softmax,
    spatial_squeeze: bool = True,
    reuse: Any = None,
    scope: Any = "InceptionV3",
) -> tuple[Any, dict[str, Any]]:
    """Returns logits [batch, num_classes] and the end points by name, `AuxLogits` and `Predictions` among them."""
    with (
        variable_scope(scope, "InceptionV3", [inputs, num_classes], reuse=reuse) as opened,
        arg_scope([layers.batch_norm, layers.dropout], is_training=is_training),
    ):
        net, end_points = inception_v3_base(
            inputs, min_depth=min_depth, depth_multiplier=depth_multiplier, scope=opened
        )
        with (
            arg_scope([layers.conv2d, layers.max_pool2d, layers.avg_pool2d], stride=1, padding="SAME"),
            variable_scope("AuxLogits"),
        ):
            deep = max(int(128 * depth_multiplier), min_depth), max(int(768 * depth_multiplier), min_depth)
            aux = _auxiliary_logits(end_points["Mixed_6e"], num_classes, deep)
            end_points["AuxLogits"] = squeeze(aux, [1, 2], name="SpatialSqueeze") if spatial_squeeze else aux
        with variable_scope("Logits"):
            size = _at_most(net, 8)
            net = layers.avg_pool2d(net, size, padding="VALID", scope=f"AvgPool_1a_{size[0]}x{size[1]}")
            net = layers.dropout(net, keep_prob=dropout_keep_prob, scope="Dropout_1b")
            end_points["PreLogits"] = net
            logits = layers.conv2d(
                net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="Conv2d_1c_1x1"
            )
            if spatial_squeeze:
                logits = squeeze(logits, [1, 2], name="SpatialSqueeze")
        end_points["Logits"] = logits
        end_points["Predictions"] = prediction_fn(logits, scope="Predictions")
        return logits, end_points


def _auxiliary_logits(net: Any, num_classes: int, deep: tuple[int, int]) -> Any:
    """Returns the logits of the side branch after Mixed_6e. deep: the channels of its two convolutions."""
    net = layers.avg_pool2d(net, [5, 5], stride=3, padding="VALID", scope="AvgPool_1a_5x5")
    net = layers.conv2d(net, deep[0], [1, 1], scope="Conv2d_1b_1x1")
    size = _at_most(net, 5)
    net = layers.conv2d(
        net, deep[1], size, padding="VALID", weights_initializer=truncated_normal_initializer(0.0, 0.01),
        scope=f"Conv2d_2a_{size[0]}x{size[1]}",
    )  # fmt: skip
    return layers.conv2d(
        net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None,
        weights_initializer=truncated_normal_initializer(0.0, 0.001), scope="Conv2d_2b_1x1",
    )  # fmt: skip


def _at_most(net: Any, size: int) -> list[int]:
    """Returns a window that is no larger than images of a known size."""
    height, width = net.shape[1:3]
    return [size if known is None else min(size, int(known)) for known in (height.value, width.value)]


def inception_v3_arg_scope(
    weight_decay: float = 0.00004,
    batch_norm_var_collection: str = "moving_vars",
    batch_norm_decay: float = 0.9997,
    batch_norm_epsilon: float = 0.001,
    updates_collections: Any = "update_ops",
    use_fused_batchnorm: bool = True,
) -> Any:
    """Returns the argument scope in which the network is built: batch norm after convolutions, L2 loss of weights."""
    moving = [batch_norm_var_collection]
    normal = {
        "decay": batch_norm_decay, "epsilon": batch_norm_epsilon, "updates_collections": updates_collections,
        "fused": use_fused_batchnorm,
        "variables_collections": {"beta": None, "gamma": None, "moving_mean": moving, "moving_variance": moving},
    }  # fmt: skip
    with (
        arg_scope(
            [layers.conv2d, layers.fully_connected], weights_regularizer=layers.l2_regularizer(weight_decay)
        ),
        arg_scope(
            [layers.conv2d], weights_initializer=layers.variance_scaling_initializer(), activation_fn=relu,
            normalizer_fn=layers.batch_norm, normalizer_params=normal,
        ) as opened,
    ):  # fmt: skip
        return opened


inception_v3.default_image_size = 299  # type: ignore[attr-defined]  # where programs look for it
