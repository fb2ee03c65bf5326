"""Accelerator kernels that cut windows out of images and draw boxes into them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from timberframe_accelerator.launches import Source, failing, index_name, index_type, spread_rows
from timberframe_sdk import KernelDef, KernelNode, Launcher, UnimplementedError
from timberframe_sdk.declare import kernel

KERNELS: list[KernelDef] = []


@kernel(KERNELS, ("ExtractGlimpse", "ExtractGlimpseV2"), "", status=True)
def extract_glimpse(node: KernelNode) -> Launcher:
    """A window of each image; where it leaves the image, zeros, which is the only noise that is offered."""
    device: Any = node.device
    x, out, attrs = node.inputs[0], node.outputs[0], node.attrs
    source = Source.file("boxes.h", T="float32", INDEX=index_name(x.size, out.size))
    function, index = device.function(source, "tf_extract_glimpse"), index_type(x.size, out.size)
    (items, group), rows = spread_rows(math.prod(out.shape[2:]), math.prod(out.shape[:2])), math.prod(out.shape[:2])
    sizes = [index(n) for n in (rows, *x.shape[1:], *out.shape[1:3])]
    flags = [np.int32(f) for f in (attrs["normalized"], attrs["centered"], attrs["noise"] != "zero")]
    rest = node.number, *sizes, *flags
    fact = f"a window leaves its image, and noise is '{attrs['noise']}'; outside of images only 'zero' is offered"
    return failing(lambda *arrays: function(items, group, *arrays, *rest), (UnimplementedError, fact))


@kernel(KERNELS, ("DrawBoundingBoxes", "DrawBoundingBoxesV2"), "", types={"T": ("float16", "float32")})
def draw_boxes(node: KernelNode) -> Launcher:
    """Images with the outlines of boxes."""
    from timberframe_ops.image.boxes import PALETTE

    device: Any = node.device
    out, boxes = node.outputs[0], node.inputs[1]
    source = Source.file("boxes.h", T=out.dtype.name, INDEX=index_name(out.size, boxes.size))
    function, index = device.function(source, "tf_draw_boxes"), index_type(out.size, boxes.size)
    given = len(node.inputs) > 2 and node.inputs[2].size > 0
    palette, (colors, parts) = device.table(PALETTE), node.inputs[2].shape if given else PALETTE.shape
    (items, group), rows = spread_rows(math.prod(out.shape[2:]), math.prod(out.shape[:2])), math.prod(out.shape[:2])
    sizes = index(rows), *(index(n) for n in out.shape[1:3]), np.int32(out.shape[3])
    sizes += index(boxes.shape[1]), index(colors), index(parts)

    def launch(x: Any, found: Any, *rest: Any) -> None:
        if out.size:
            function(items, group, x, found, rest[0] if given else palette, rest[-1], *sizes)

    return launch
