"""Windows that slide over spatial axes: strides, dilations, padding, as convolutions and pools have them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from timberframe_onnx.families.elementwise import scalar
from timberframe_onnx.families.shapes import stacked
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import Node, shape_parts
from timberframe_onnx.translation.values import Tensor


@dataclass(frozen=True)
class Windows:
    """Windows of a node over its spatial axes, which follow batch and channels.

    auto_pad: ONNX's name of how padding follows from sizes, "NOTSET" where `pads` has it: all before, then all after.
    """

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    kernel: tuple[Any, ...]
    auto_pad: str
    pads: list[int]
    ceil: bool = False

    @classmethod
    def of(cls, node: Node, spatial: int, kernel: list[Any] | None = None) -> Windows:
        """Returns the windows that a node's attributes describe."""
        shape = node.get("kernel_shape", kernel)
        made = cls(
            tuple(node.get("strides", [1] * spatial)),
            tuple(node.get("dilations", [1] * spatial)),
            tuple(shape),
            node.get("auto_pad", "NOTSET"),
            list(node.get("pads", [0] * (2 * spatial))),
            bool(node.get("ceil_mode", 0)),
        )
        given = {len(made.strides), len(made.dilations), len(made.kernel), len(made.pads) / 2}
        node.require(
            given == {spatial}, f"its strides, dilations, kernel_shape and pads are not for {spatial} spatial axes"
        )
        return made

    def span(self, i: int) -> Any:
        """Returns how many elements a window spans along a spatial axis."""
        return (self.kernel[i] - 1) * self.dilations[i] + 1

    def padding(self, x: Tensor) -> tuple[list[Any], list[Any]]:
        """Returns how much is padded before and after along each spatial axis."""
        count = len(self.strides)
        if self.auto_pad in ("NOTSET", ""):
            return self.pads[:count], self.pads[count:]
        if self.auto_pad == "VALID":
            return [0] * count, [0] * count
        before, after = [], []
        for i, size in enumerate(shape_parts(x)[2:]):
            outputs = (size + self.strides[i] - 1) // self.strides[i]
            total = (outputs - 1) * self.strides[i] + self.span(i) - size
            total = max(total, 0) if isinstance(total, int) else tf.maximum(total, 0)
            less, more = total // 2, total - total // 2
            before.append(less if self.auto_pad == "SAME_UPPER" else more)
            after.append(more if self.auto_pad == "SAME_UPPER" else less)
        return before, after

    def rounded_up(self, x: Tensor, before: list[Any], after: list[Any]) -> list[Any]:
        """Returns the padding after, enough for the last windows where sizes are rounded up (ceil_mode).

        A window that would begin in that padding is none.
        """
        if not self.ceil:
            return after
        more = []
        for i, size in enumerate(shape_parts(x)[2:]):
            stride = self.strides[i]
            inside = size + before[i] + after[i] - self.span(i)
            if isinstance(inside, int):
                steps = -(-inside // stride)
                steps -= steps * stride >= size + before[i]
                more.append(max(after[i] + steps * stride - inside, after[i]))
            else:
                steps = (inside + stride - 1) // stride
                steps = tf.where_v2(steps * stride >= size + before[i], steps - 1, steps)
                more.append(tf.maximum(after[i] + steps * stride - inside, after[i]))
        return more

    def padded(self, x: Tensor, before: list[Any], after: list[Any], value: Any) -> Tensor:
        """Returns the data with padding of a value around its spatial axes; negative padding cuts off."""
        pairs: list[Any] = [(0, 0), (0, 0), *zip(before, after, strict=True)]
        numbers = [p for pair in pairs for p in pair if isinstance(p, int)]
        if any(p < 0 for p in numbers):
            x = x[tuple(slice(max(-b, 0), -max(-a, 0) or None) for b, a in pairs)]
            pairs = [(max(b, 0), max(a, 0)) for b, a in pairs]
        if all(isinstance(p, int) and p == 0 for pair in pairs for p in pair):
            return x
        flat = stacked([p for pair in pairs for p in pair], tf.int32)
        return tf.pad(x, tf.reshape(flat, [-1, 2]), constant_values=scalar(value, x))

    def outputs(self, x: Tensor) -> list[Any]:
        """Returns the number of windows along each spatial axis of padded data."""
        parts = shape_parts(x)[2:]
        return [(n - self.span(i)) // self.strides[i] + 1 for i, n in enumerate(parts)]

    def patches(self, x: Tensor) -> Tensor:
        """Returns [N, C, windows..., elements of a window] of padded data."""
        counts = self.outputs(x)
        taken = []
        for offsets in itertools.product(*(range(k) for k in self.kernel)):
            index: list[Any] = [slice(None), slice(None)]
            for i, offset in enumerate(offsets):
                start = offset * self.dilations[i]
                index.append(slice(start, start + (counts[i] - 1) * self.strides[i] + 1, self.strides[i]))
            taken.append(x[tuple(index)])
        return tf.stack(taken, -1)


def lowest(x: Tensor) -> Any:
    """Returns the least value of a tensor's dtype, which never is a maximum beside others."""
    kind = x.dtype.numpy
    return np.iinfo(kind).min if x.dtype.is_integer else -np.inf
