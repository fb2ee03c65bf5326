"""Exporters of products, convolutions, pools and normalization. ONNX has channels first: axes are moved around each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe_core.graph.operation import Operation, Tensor
from timberframe_onnx.exporting.writer import NotExportedError, Writer, exports, rank_of


@exports("MatMul")
def _matmul(w: Writer, op: Operation) -> None:
    flags = {"transA": int(op.attrs["transpose_a"]), "transB": int(op.attrs["transpose_b"])}
    if any(flags.values()) and op.inputs[0].dtype.is_floating:
        w.give(op, w.add("Gemm", w.inputs(op), **flags))
    else:
        a, b = (
            w.add("Transpose", [n], perm=[1, 0]) if f else n for n, f in zip(w.inputs(op), flags.values(), strict=True)
        )
        w.give(op, w.add("MatMul", [a, b]))


@exports("BatchMatMulV2", "BatchMatMulV3")
def _batch_matmul(w: Writer, op: Operation) -> None:
    names = []
    for tensor, flag in zip(op.inputs, ("adj_x", "adj_y"), strict=True):
        name = w.value(tensor)
        if op.attrs[flag]:
            order = list(range(rank_of(tensor, op)))
            order[-2:] = order[-1], order[-2]
            name = w.add("Transpose", [name], perm=order)
        names.append(name)
    w.give(op, w.add("MatMul", names))


@exports("Einsum")
def _einsum(w: Writer, op: Operation) -> None:
    equation = op.attrs["equation"]
    w.give(op, w.add("Einsum", w.inputs(op), equation=equation if isinstance(equation, str) else equation.decode()))


@exports("BiasAdd", "BiasAddV1")
def _bias_add(w: Writer, op: Operation) -> None:
    bias = w.value(op.inputs[1])
    if op.attrs.get("data_format", "NHWC") == "NCHW":
        bias = w.add("Reshape", [bias, w.constant([-1] + [1] * (rank_of(op.inputs[0], op) - 2))])
    w.give(op, w.add("Add", [w.value(op.inputs[0]), bias]))


def _known_shape(filters: Tensor) -> list[int]:
    """Returns the shape of filters, which must be known."""
    sizes = filters.shape.as_list()
    if any(d is None for d in sizes):
        raise NotExportedError("the shape of its filters is not known")
    return [int(d) for d in sizes if d is not None]


def _channels_first(w: Writer, op: Operation, tensor: Tensor) -> str:
    """Returns the data with channels after the batch."""
    if op.attrs["data_format"].startswith("NC"):
        return w.value(tensor)
    rank = rank_of(tensor, op)
    return str(w.add("Transpose", [w.value(tensor)], perm=[0, rank - 1, *range(1, rank - 1)]))


def _as_given(w: Writer, op: Operation, name: str) -> str:
    """Returns the result in the operation's own order of axes."""
    if op.attrs["data_format"].startswith("NC"):
        return name
    rank = rank_of(op.outputs[0], op)
    return str(w.add("Transpose", [name], perm=[0, *range(2, rank), 1]))


def _spatial(op: Operation, values: Any) -> list[int]:
    """Returns the entries of an attribute for spatial axes."""
    flat = [int(v) for v in values]
    return flat[2:] if op.attrs["data_format"].startswith("NC") else flat[1:-1]


def _padding(op: Operation, windows: Sequence[int]) -> dict[str, Any]:
    """Returns the attributes that say how the spatial axes are padded. windows: the reach of the window on each axis.

    Of SAME the numbers are written wherever they are known: ONNX Runtime takes the word for no dilated windows, nor for
    strides that are longer than the window.
    """
    kind = op.attrs["padding"]
    if kind == "EXPLICIT":
        pairs = np.array(op.attrs["explicit_paddings"]).reshape(-1, 2)
        inner = pairs[2:] if op.attrs["data_format"].startswith("NC") else pairs[1:-1]
        return {"pads": [int(p) for p in inner.T.ravel()]}
    if kind != "SAME":
        return {"auto_pad": "VALID"}
    sizes = op.inputs[0].shape.as_list()
    lengths = sizes[2:] if op.attrs["data_format"].startswith("NC") else sizes[1:-1]
    strides = _spatial(op, op.attrs["strides"])
    if any(n is None and s > 1 for n, s in zip(lengths, strides, strict=True)):
        return {"auto_pad": "SAME_UPPER"}
    totals = [
        reach - 1 if n is None else max((-(-n // s) - 1) * s + reach - n, 0)
        for n, s, reach in zip(lengths, strides, windows, strict=True)
    ]
    return {"pads": [t // 2 for t in totals] + [t - t // 2 for t in totals]}


def _reach(op: Operation, sizes: Sequence[int | None]) -> list[int]:
    """Returns how many elements of each spatial axis a filter of these sizes spans."""
    if any(size is None for size in sizes):
        raise NotExportedError("the size of its filters is not known")
    dilations = _spatial(op, op.attrs["dilations"])
    return [(int(size or 0) - 1) * d + 1 for size, d in zip(sizes, dilations, strict=True)]


@exports("Conv2D", "Conv3D")
def _conv(w: Writer, op: Operation) -> None:
    spatial = rank_of(op.inputs[0], op) - 2
    data = _channels_first(w, op, op.inputs[0])
    filters = w.add("Transpose", [w.value(op.inputs[1])], perm=[spatial + 1, spatial, *range(spatial)])
    channels = op.inputs[0].shape.as_list()[1 if op.attrs["data_format"].startswith("NC") else -1]
    inside = op.inputs[1].shape.as_list()[spatial]
    if channels is None or inside is None:
        raise NotExportedError("its number of channels is not known")
    attributes = {
        "strides": _spatial(op, op.attrs["strides"]),
        "dilations": _spatial(op, op.attrs["dilations"]),
        "group": channels // inside,
        **_padding(op, _reach(op, op.inputs[1].shape.as_list()[:spatial])),
    }
    w.give(op, _as_given(w, op, w.add("Conv", [data, filters], **attributes)))


@exports("DepthwiseConv2dNative")
def _depthwise(w: Writer, op: Operation) -> None:
    """The filters [h, w, channels, multiplier] are [channels * multiplier, 1, h, w] of as many groups as channels."""
    shape = _known_shape(op.inputs[1])
    turned = w.add("Transpose", [w.value(op.inputs[1])], perm=[2, 3, 0, 1])
    filters = w.add("Reshape", [turned, w.constant([shape[2] * shape[3], 1, *shape[:2]])])
    attributes = {
        "strides": _spatial(op, op.attrs["strides"]),
        "dilations": _spatial(op, op.attrs["dilations"]),
        "group": shape[2],
        **_padding(op, _reach(op, shape[:2])),
    }
    made = w.add("Conv", [_channels_first(w, op, op.inputs[0]), filters], **attributes)
    w.give(op, _as_given(w, op, made))


@exports("Conv2DBackpropInput")
def _conv_transpose(w: Writer, op: Operation) -> None:
    size, filters, data = op.inputs
    wanted = w.known_list(size, op, "size of the result")
    strides = _spatial(op, op.attrs["strides"])
    spatial = wanted if len(wanted) == 2 else _spatial(op, wanted)
    sizes = _known_shape(filters)
    reaches, dilations = _reach(op, sizes[:2]), _spatial(op, op.attrs["dilations"])
    given = _spatial(op, [d if d is not None else -1 for d in data.shape.as_list()])
    if -1 in given:
        raise NotExportedError("the size of its input is not known")
    pads: list[list[int]] = [[], []]
    extra = []
    for n, s, k, g in zip(spatial, strides, reaches, given, strict=True):
        whole = (g - 1) * s + k
        total = max(whole - n, 0) if op.attrs["padding"] == "SAME" else 0
        pads[0].append(total // 2)
        pads[1].append(total - total // 2)
        extra.append(n - (whole - total))
    if op.attrs["padding"] == "EXPLICIT" or any(e < 0 for e in extra):
        raise NotExportedError(f"its padding is {op.attrs['padding']} for a result of {spatial}")
    if any(e >= max(s, d) for e, s, d in zip(extra, strides, dilations, strict=True)):
        raise NotExportedError(f"its result of {spatial} is further than a stride from what its input gives")
    channels = op.outputs[0].shape.as_list()[1 if op.attrs["data_format"].startswith("NC") else -1]
    turned = w.add("Transpose", [w.value(filters)], perm=[3, 2, 0, 1])
    attributes: dict[str, Any] = {"strides": strides, "pads": pads[0] + pads[1], "output_padding": extra}
    attributes |= {"dilations": dilations, "group": max(1, (channels or sizes[2]) // max(1, sizes[2]))}
    made = w.add("ConvTranspose", [_channels_first(w, op, data), turned], **attributes)
    w.give(op, _as_given(w, op, made))


@exports("MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D")
def _pool(w: Writer, op: Operation) -> None:
    kind = "MaxPool" if op.type.startswith("Max") else "AveragePool"
    windows, strides = (_spatial(op, op.attrs[name]) for name in ("ksize", "strides"))
    for name, inner in (("ksize", windows), ("strides", strides)):
        if math.prod(op.attrs[name]) != math.prod(inner):
            raise NotExportedError(f"its {name} is {tuple(op.attrs[name])}; ONNX has windows on spatial axes alone")
    attributes: dict[str, Any] = {"kernel_shape": windows, "strides": strides, **_padding(op, windows)}
    made = w.add(kind, [_channels_first(w, op, op.inputs[0])], **attributes)
    w.give(op, _as_given(w, op, made))


@exports("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def _batch_norm(w: Writer, op: Operation) -> None:
    if op.attrs["is_training"]:
        raise NotExportedError("it is for training")
    if op.inputs[0].shape.ndims is not None and 0 in op.inputs[0].shape.as_list():
        raise NotExportedError("it has no images, of which its moments are NaN")
    names = [_channels_first(w, op, op.inputs[0]), *(w.value(t) for t in op.inputs[1:])]
    made = w.add("BatchNormalization", names, epsilon=float(op.attrs["epsilon"]))
    moments = [w.value(t) for t in op.inputs[3:]]
    nothing = w.constant(np.zeros(0), op.outputs[-1].dtype.numpy)  # what only training on other devices fills
    w.give(op, *[_as_given(w, op, made), *moments, *moments, nothing][: len(op.outputs)])


@exports("LRN")
def _lrn(w: Writer, op: Operation) -> None:
    size = 2 * int(op.attrs["depth_radius"]) + 1
    front = w.add("Transpose", w.inputs(op), perm=[0, 3, 1, 2])
    attributes: dict[str, Any] = {"alpha": float(op.attrs["alpha"]) * size, "beta": float(op.attrs["beta"])}
    made = w.add("LRN", [front], size=size, bias=float(op.attrs["bias"]), **attributes)
    w.give(op, w.add("Transpose", [made], perm=[0, 2, 3, 1]))


@exports("ResizeNearestNeighbor", "ResizeBilinear")
def _resize(w: Writer, op: Operation) -> None:
    front = w.add("Transpose", [w.value(op.inputs[0])], perm=[0, 3, 1, 2])
    outer = w.add("Slice", [w.add("Shape", [front]), w.constant([0]), w.constant([2])])
    wanted = w.add("Concat", [outer, w.as_int64(op.inputs[1])], axis=0)
    half = bool(op.attrs["half_pixel_centers"])
    place = "align_corners" if op.attrs["align_corners"] else "half_pixel" if half else "asymmetric"
    mode = "nearest" if op.type == "ResizeNearestNeighbor" else "linear"
    attributes: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": place}
    if mode == "nearest":
        attributes["nearest_mode"] = "round_prefer_ceil" if op.attrs["align_corners"] or half else "floor"
    made = w.add("Resize", [front, "", "", wanted], **attributes)
    w.give(op, w.add("Transpose", [made], perm=[0, 2, 3, 1]))
