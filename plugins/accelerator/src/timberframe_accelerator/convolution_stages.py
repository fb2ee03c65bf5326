"""The geometry of convolutions for the kernels that gather pixels, and what their stages share."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe_accelerator.moving import quotient_words
from timberframe_accelerator.product import part_type, written_type
from timberframe_accelerator.stages import BufferView, Stages
from timberframe_sdk import Value
from timberframe_sdk.plans.convolution import Convolution, Window

_ONE = Window(1, 1, 1, 1, 1, 0)  # a dimension that a convolution of fewer dimensions lacks

Taps = Sequence[tuple[int, int]]  # of the taps of a dimension that meet something: number, and distance


def windows_of(conv: Convolution) -> list[Window]:
    """Returns the windows of depth, height and width."""
    return [*[_ONE] * (3 - len(conv.windows)), *conv.windows]


def terms_of(
    dims: Sequence[Taps], sizes: Sequence[int], kernel: Sequence[int], channels: int, pitch: int, lines: int
) -> np.ndarray[Any, Any]:
    """Returns the terms of convolution.h for the taps of each dimension of an image of these sizes, times `channels`.

    pitch: channels of the image's pixels. lines: lines of the filter for each tap.
    """
    taps = np.array(list(itertools.product(*dims)), np.int64).reshape(-1, 3, 2)
    number, far = taps[..., 0], taps[..., 1]
    offset = ((far[:, 0] * sizes[1] + far[:, 1]) * sizes[2] + far[:, 2]) * pitch
    line = ((number[:, 0] * kernel[1] + number[:, 1]) * kernel[2] + number[:, 2]) * lines
    inner = np.arange(channels)
    rows = [*np.repeat(far, channels, axis=0).T, (offset[:, None] + inner).ravel(), (line[:, None] + inner).ravel()]
    return np.array(rows, np.int32).reshape(5, -1)


def forward_taps(w: Window) -> Taps:
    return [(k, k * w.dilation - w.before) for k in range(w.kernel)]


def phases_of(w: Window) -> list[tuple[int, int, Taps]]:
    """Returns the pixels of an input that lie a stride apart: the first, their number, and the taps that they meet."""
    found: list[tuple[int, int, Taps]] = []
    for first in range(min(w.stride, w.size)):
        steps = [(k, first + w.before - k * w.dilation) for k in range(w.kernel)]
        taps = [(k, step // w.stride) for k, step in steps if step % w.stride == 0]
        found.append((first, -(-(w.size - first) // w.stride), taps))
    return found


def phase_words(phase: Sequence[int], first_term: int, terms: int) -> list[int]:
    """Returns the words of a phase, given the first six of them."""
    return [*phase, first_term, terms, *(word for n in phase[3:] for word in quotient_words(max(n, 1)))]


class ConvolutionStages:
    """The stages of a convolution or of a gradient of one, with channels last, and its geometry as pixels.h has it."""

    def __init__(self, conv: Convolution) -> None:
        self.conv = conv
        self.stages = Stages(conv.node)
        self.windows = windows_of(conv)
        self.groups, self.depth, self.outside = conv.groups
        self.dtype = conv.x.dtype
        self.part = part_type(self.dtype)
        self.written = written_type(self.dtype)

    def channels_last(self, view: BufferView, value: Value) -> BufferView:
        """Returns a tensor in this layout, transposed where it is not."""
        if not self.conv.channels_first:
            return view
        shape = value.shape
        return self.stages.swap(view, None, value.dtype, shape[0], shape[1], math.prod(shape[2:]))

    def result(self, value: Value) -> BufferView:
        """Returns where kernels write a result: the workspace if it is transposed afterwards."""
        return (
            self.stages.room(value.size, value.dtype.itemsize)
            if self.conv.channels_first
            else BufferView(self.stages.result)
        )

    def back(self, view: BufferView, value: Value) -> None:
        """Brings a result into the node's layout."""
        if self.conv.channels_first:
            shape = value.shape
            self.stages.swap(
                view, BufferView(self.stages.result), value.dtype, shape[0], math.prod(shape[2:]), shape[1]
            )

    def sizes(
        self, source: tuple[list[int], int, list[int]], target: tuple[list[int], int, list[int]], rest: Sequence[int]
    ) -> list[int]:
        """Returns the words of convolution.h before the phases: sizes, channels and steps of both
        sides, and from GROUPS on.
        """
        sides = [n for sizes, channels, steps in (source, target) for n in (*sizes, channels, *steps)]
        return [*sides, self.conv.x.shape[0], self.groups, *rest]
