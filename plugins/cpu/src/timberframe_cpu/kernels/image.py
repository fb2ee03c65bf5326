"""Kernels of csrc/image."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from timberframe_cpu.native import native
from timberframe_sdk import KernelDef, KernelNode
from timberframe_sdk.native import Native
from timberframe_sdk.plans.convolution import dilation_windows


def _resize(kernel: str, node: KernelNode, image: Sequence[int], resized: Sequence[int], *more: int) -> Native:
    """Parameters: struct resize_shape of csrc/image/resize.c."""
    flags = node.attrs["align_corners"], node.attrs["half_pixel_centers"]
    return native(kernel, *image, *resized[1:3], *flags, *more)


def _bilinear(node: KernelNode) -> Native:
    return _resize(f"resize_bilinear_{node.attrs['T'].name}", node, node.inputs[0].shape, node.outputs[0].shape)


def _nearest(node: KernelNode) -> Native:
    return _resize("resize_nearest", node, node.inputs[0].shape, node.outputs[0].shape, node.inputs[0].dtype.itemsize)


def _gradient(kernel: str, node: KernelNode, dtype: str) -> Native:
    image = node.outputs[0]
    if dtype in ("float16", "bfloat16"):
        node.workspace(image.size * 4)
    return _resize(f"{kernel}_{dtype}", node, image.shape, node.inputs[0].shape)


def _bilinear_grad(node: KernelNode) -> Native:
    return _gradient("resize_bilinear_grad", node, node.attrs["T"].name)


def _nearest_grad(node: KernelNode) -> Native:
    dtype = node.attrs["T"].name
    return _gradient("resize_nearest_grad", node, "uint8" if dtype == "int8" else dtype)


def _crop(kernel: str, node: KernelNode, image: Sequence[int], crops: Sequence[int], which: int) -> Native:
    """Parameters: struct crop_shape of csrc/image/crop.c."""
    from timberframe_ops.image.crop_and_resize import NOT_FINITE, OUTSIDE

    boxes = node.inputs[which].shape[0]
    nearest, outside = node.attrs["method"] == "nearest", float(node.attrs.get("extrapolation_value", 0.0))
    name = f"{kernel}_{node.attrs['T'].name}"
    return native(name, *image, boxes, *crops[1:3], nearest, outside, reasons=(NOT_FINITE, OUTSIDE))


def _crop_forward(node: KernelNode) -> Native:
    return _crop("crop", node, node.inputs[0].shape, node.outputs[0].shape, 2)


def _crop_grad_image(node: KernelNode) -> Native:
    image = node.outputs[0]
    if node.attrs["T"].name == "float16":
        node.workspace(image.size * 4)
    return _crop("crop_grad_image", node, image.shape, node.inputs[0].shape, 2)


def _crop_grad_boxes(node: KernelNode) -> Native:
    return _crop("crop_grad_boxes", node, node.inputs[1].shape, node.inputs[0].shape, 3)


def _dilation(kernel: str, node: KernelNode, y: tuple[int, ...]) -> Native:
    """Parameters: struct dilation_shape of csrc/image/dilation.c."""
    x, filter, windows = node.inputs[0].shape, node.inputs[1].shape, dilation_windows(node, y)
    moves = [[w.stride for w in windows], [w.dilation for w in windows], [w.before for w in windows]]
    return native(f"{kernel}_{node.attrs['T'].name}", *x, *y[1:3], *filter[:2], *itertools.chain(*moves))


def _dilation_forward(node: KernelNode) -> Native:
    return _dilation("dilation", node, node.outputs[0].shape)


def _dilation_gradient(kernel: str) -> Callable[[KernelNode], Native]:
    def build(node: KernelNode) -> Native:
        if node.attrs["T"].name in ("float16", "bfloat16"):
            node.workspace(node.outputs[0].size * 4)
        return _dilation(kernel, node, node.inputs[2].shape)

    return build


_FLOATS = ("float16", "bfloat16", "float32", "float64")
_NUMBERS = (*_FLOATS, "int8", "int16", "int32", "int64", "uint8", "uint16")
_CROPPED = tuple(t for t in _NUMBERS if t != "bfloat16")

KERNELS = [
    KernelDef("ResizeBilinear", "CPU", _bilinear, {"T": _NUMBERS}),
    KernelDef("ResizeBilinearGrad", "CPU", _bilinear_grad, {"T": _FLOATS}),
    KernelDef("ResizeNearestNeighbor", "CPU", _nearest, {"T": _NUMBERS}),
    KernelDef("ResizeNearestNeighborGrad", "CPU", _nearest_grad, {"T": (*_FLOATS, "int8", "uint8", "int32")}),
    KernelDef("CropAndResize", "CPU", _crop_forward, {"T": _CROPPED}),
    KernelDef("CropAndResizeGradImage", "CPU", _crop_grad_image, {"T": ("float16", "float32", "float64")}),
    KernelDef("CropAndResizeGradBoxes", "CPU", _crop_grad_boxes, {"T": _CROPPED}),
    KernelDef("Dilation2D", "CPU", _dilation_forward, {"T": (*_NUMBERS, "uint32", "uint64")}),
    *(
        KernelDef(f"Dilation2DBackprop{of.title()}", "CPU", _dilation_gradient(f"dilation_{of}"),
                  {"T": (*_NUMBERS, "uint32", "uint64")})
        for of in ("input", "filter")
    ),
]  # fmt: skip
