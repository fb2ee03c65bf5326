"""Windows over images as torch wants them: channels first, padding of its own where it is the same on both sides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from timberframe_sdk import KernelNode
from timberframe_sdk.plans.convolution import Window
from timberframe_sdk.plans.pooling import padding_before, window_values
from timberframe_torch import lazy as torch


@dataclass(frozen=True)
class Frame:
    """Padding by axis. size: of the image without it; before, after: of it."""

    size: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def is_even(self) -> bool:
        """Whether it is the same on both sides, so that torch has it as an argument."""
        return self.before == self.after

    @property
    def padded(self) -> tuple[int, ...]:
        """The sizes with padding."""
        return tuple(map(sum, zip(self.size, self.before, self.after, strict=True)))

    def pad(self, x: Any, value: float = 0.0) -> Any:
        """Returns images (channels first) with padding around them."""
        pairs = [p for pair in zip(reversed(self.before), reversed(self.after), strict=True) for p in pair]
        return torch.nn.functional.pad(x, pairs, value=value) if any(pairs) else x

    def cut(self, x: Any) -> Any:
        """Returns images without the padding that is around them, or with zeros where they are too small for that."""
        for axis, (begin, size) in enumerate(zip(self.before, self.size, strict=True), x.dim() - len(self.size)):
            x = x.narrow(axis, begin, min(size, x.shape[axis] - begin))
        lacking = [0] * 2 * len(self.size)
        for i, size in enumerate(reversed(self.size)):
            lacking[2 * i + 1] = size - x.shape[-1 - i]
        return torch.nn.functional.pad(x, lacking) if any(lacking) else x


def frame_of(windows: Sequence[Window]) -> Frame:
    """Returns the padding with which a convolution's windows take all that they need."""
    after = tuple(max(w.span - w.size - w.before, 0) for w in windows)
    return Frame(tuple(w.size for w in windows), tuple(w.before for w in windows), after)


@dataclass(frozen=True)
class Pool:
    """Windows of a pooling node over images."""

    window: tuple[int, ...]
    stride: tuple[int, ...]
    frame: Frame
    out: tuple[int, ...]
    first: bool

    @property
    def is_even(self) -> bool:
        """Whether torch takes the padding as an argument: the same on both sides, and at most half a window."""
        return self.frame.is_even and all(2 * p <= k for p, k in zip(self.frame.before, self.window, strict=True))

    def counts(self, x: Any) -> Any:
        """Returns how many elements of an image are in each window, as a tensor for (batch, channels, ...)."""
        found = np.ones(())
        for n, k, s, p, m in zip(self.frame.size, self.window, self.stride, self.frame.before, self.out, strict=True):
            begin = np.arange(m) * s - p
            found = np.multiply.outer(found, np.minimum(begin + k, n) - np.maximum(begin, 0))
        return torch.tensor(found, dtype=x.dtype, device=x.device)


def pool_of(node: KernelNode, x: Sequence[int], y: Sequence[int]) -> Pool:
    """Returns the windows with which a node pools a tensor of shape x to one of shape y."""
    first = node.attrs["data_format"].startswith("NC")
    axes = (2, 3) if first else (1, 2)
    ksize, strides = window_values(node)
    before = padding_before(node, x, y)
    window, stride, size, out = (tuple(int(v[a]) for a in axes) for v in (ksize, strides, x, y))
    after = tuple(
        max((m - 1) * s + k - n - p, 0) for m, s, k, n, p in zip(out, stride, window, size, before, strict=True)
    )
    return Pool(window, stride, Frame(size, before, after), out, first)


def over_channels(node: KernelNode) -> str | None:
    """Returns why a pooling node does not fit: torch has windows in space alone."""
    ksize = node.attrs.get("ksize")
    channel = 1 if node.attrs["data_format"].startswith("NC") else 3
    if ksize is None:
        return "ksize is an input; an attr is required"
    return None if ksize[0] == ksize[channel] == 1 else f"ksize is {tuple(ksize)}; windows in space alone are required"


def channels_first(x: Any, already: bool) -> Any:
    """Returns images with channels before space: a view."""
    return x if already else x.permute(0, x.dim() - 1, *range(1, x.dim() - 1))


def as_before(x: Any, already: bool) -> Any:
    """Returns images with channels first in the node's own order: a view."""
    return x if already else x.permute(0, *range(2, x.dim()), 1)


def trimmed(x: Any, sizes: Sequence[int]) -> Any:
    """Returns the first elements of each spatial axis, where there are more than were planned."""
    for axis, size in enumerate(sizes, x.dim() - len(sizes)):
        x = x if x.shape[axis] == size else x.narrow(axis, 0, size)
    return x


def is_empty(*shapes: Sequence[int]) -> bool:
    """Returns whether a tensor of any of these shapes has no elements."""
    return any(not math.prod(s) for s in shapes)
