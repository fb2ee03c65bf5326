"""Elements taken between the places of an image: grids, deformed convolutions, regions."""

from __future__ import annotations

import itertools
from typing import Any

from timberframe_onnx.families.elementwise import scalar
from timberframe_onnx.families.resizing import cubic_weights
from timberframe_onnx.families.shapes import product, stacked
from timberframe_onnx.families.windows import Windows
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import Node, shape_parts
from timberframe_onnx.translation.registry import translates
from timberframe_onnx.translation.values import Tensor


def _reflected(x: Tensor, low: Any, high: Any) -> Tensor:
    """Places outside of an interval, reflected at its ends as often as it takes."""
    width = high - low
    away = tf.where_v2(x < low, low - x, tf.where_v2(x > high, x - high, tf.zeros_like(x)))
    times = tf.floor(away / width)
    rest = away - times * width
    even = tf.equal(tf.floormod(times, scalar(2, x)), scalar(0, x))
    from_low = tf.equal(even, x < low)
    return tf.where_v2(tf.equal(away, scalar(0, x)), x, tf.where_v2(from_low, low + rest, high - rest))


def sampled(x: Tensor, places: list[Tensor], mode: str, padding: str, align_corners: bool = False) -> Tensor:
    """Returns the elements of x [N, C, ...] at places [N, P], one tensor for each spatial axis: [N, C, P].

    mode: "nearest", "linear" or "cubic". padding: "zeros", "border" or "reflection" for places outside.
    """
    parts: list[Any] = shape_parts(x)
    spatial = len(parts) - 2
    rows = tf.reshape(tf.transpose(x, [0, *range(2, spatial + 2), 1]), stacked([-1, parts[1]], tf.int32))
    counts = [tf.cast(n, places[0].dtype) for n in parts[2:]]
    bounds = [(n * 0, n - 1) if align_corners else (n * 0 - 0.5, n - 0.5) for n in counts]
    if mode == "nearest":
        places = [tf.round(p) for p in places]
    placed = []
    for place, count, (low, high) in zip(places, counts, bounds, strict=True):
        outside = tf.logical_or(place < low, place > high)
        if padding == "border":
            place = tf.where_v2(outside, tf.minimum(tf.maximum(place, count * 0), count - 1), place)
        elif padding == "reflection":
            place = _reflected(place, low, high)
        placed.append(place)
    taps = [_taps(mode, p) for p in placed]
    images = tf.range(tf.shape(x)[0])[:, None]
    total: Any = None
    for chosen in itertools.product(*taps):
        index: Any = images
        weight: Any = None
        for (at, w), count, n, (low, high) in zip(chosen, counts, parts[2:], bounds, strict=True):
            inside = tf.logical_and(at >= 0, at <= count - 1)
            if padding == "zeros":
                w = tf.cast(inside, w.dtype) * w
            elif padding == "reflection":
                at = _reflected(at, low, high)
            at = tf.cast(tf.minimum(tf.maximum(at, count * 0), count - 1), tf.int32)
            index = index * n + at
            weight = w if weight is None else weight * w
        part = tf.gather(rows, index) * tf.cast(weight, x.dtype)[..., None]
        total = part if total is None else total + part
    return tf.transpose(total, [0, 2, 1])


def _taps(mode: str, place: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Returns the places of elements around each place along one axis, with their weights."""
    if mode == "nearest":
        return [(place, tf.ones_like(place))]
    whole = tf.floor(place)
    ratio = place - whole
    if mode == "linear":
        return [(whole, 1 - ratio), (whole + 1, ratio)]
    return [(whole + o, w) for o, w in zip((-1, 0, 1, 2), cubic_weights(ratio, -0.75), strict=True)]


@translates("GridSample")
def _grid_sample(node: Node, x: Tensor, grid: Tensor) -> Tensor:
    spatial = node.rank(x) - 2
    corners = bool(node.get("align_corners", 0))
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(node.get("mode", "linear"), node.get("mode", "linear"))
    parts: list[Any] = shape_parts(grid)
    flat = tf.cast(tf.reshape(grid, stacked([parts[0], product(parts[1:-1]), spatial], tf.int32)), tf.float32)
    places = []
    for i, size in enumerate(shape_parts(x)[2:]):
        n, count = flat[..., spatial - 1 - i], tf.cast(size, tf.float32)
        places.append((n + 1) / 2 * (count - 1) if corners else ((n + 1) * count - 1) / 2)
    wide = tf.cast(x, tf.float32) if x.dtype != tf.float64 else x
    made = sampled(wide, places, mode, node.get("padding_mode", "zeros"), corners)
    shape = [parts[0], shape_parts(x)[1], *parts[1:-1]]
    return tf.cast(tf.reshape(made, stacked(shape, tf.int32)), x.dtype)


@translates("DeformConv")
def _deform_conv(node: Node, x: Tensor, w: Tensor, offset: Tensor, bias: Tensor = None, mask: Tensor = None) -> Tensor:
    """The elements under each filter are taken at shifted places; then it is a product of matrices."""
    node.require(node.rank(x) == 4, "it has other than 2 spatial axes")
    kernel = [int(k) for k in node.get("kernel_shape", shape_parts(w)[2:])]
    windows = Windows.of(node, 2, list(kernel))
    groups, offset_groups = node.get("group", 1), node.get("offset_group", 1)
    before, _ = windows.padding(x)
    n, channels, _, _ = shape_parts(x)
    _, _, rows, columns = shape_parts(offset)
    taps = kernel[0] * kernel[1]
    shifts = tf.reshape(offset, stacked([n * offset_groups, taps, 2, rows, columns], tf.int32))
    places = []
    for i, count in enumerate((rows, columns)):
        start = tf.cast(tf.range(tf.cast(count, tf.int32)) * windows.strides[i] - before[i], x.dtype)
        inner = [(t // kernel[1] if i == 0 else t % kernel[1]) * windows.dilations[i] for t in range(taps)]
        base = tf.reshape(tf.constant(inner, x.dtype), [-1, 1, 1]) + (start[:, None] if i == 0 else start)
        places.append(tf.reshape(shifts[:, :, i] + base, stacked([n * offset_groups, -1], tf.int32)))
    grouped = tf.reshape(x, stacked([n * offset_groups, channels // offset_groups, *shape_parts(x)[2:]], tf.int32))
    taken = sampled(grouped, places, "linear", "zeros")
    if mask is not None:
        taken = taken * tf.reshape(mask, stacked([n * offset_groups, 1, -1], tf.int32))
    # [batch, group, channels of a group and taps, places] times [group, outputs of a group, the same]
    outputs = shape_parts(w)[0]
    inside = channels // groups * taps
    columns_of = tf.reshape(taken, stacked([n, channels, taps, rows * columns], tf.int32))
    data = tf.reshape(columns_of, stacked([n, groups, inside, rows * columns], tf.int32))
    filters = tf.reshape(w, stacked([groups, outputs // groups, inside], tf.int32))
    made = tf.reshape(tf.matmul(filters, data), stacked([n, outputs, rows, columns], tf.int32))
    return made if bias is None else made + tf.reshape(bias, [-1, 1, 1])


@translates("RoiAlign")
def _roi_align(node: Node, x: Tensor, rois: Tensor, images: Tensor) -> Tensor:
    half = node.opset >= 16 and node.get("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    shape = node.get("output_height", 1), node.get("output_width", 1)
    ratio = node.get("sampling_ratio", 0)
    scaled = tf.cast(rois, tf.float32) * node.get("spatial_scale", 1.0) - (0.5 if half else 0.0)
    corners = (scaled[:, 1], scaled[:, 0]), (scaled[:, 3], scaled[:, 2])
    taps, alive, samples = [], [], []
    for i in range(2):
        start, length = corners[0][i], corners[1][i] - corners[0][i]
        length = length if half else tf.maximum(length, 1.0)
        bins = length / shape[i]
        count = tf.fill(tf.shape(bins), float(ratio)) if ratio > 0 else tf.ceil(bins)
        most = tf.constant(ratio) if ratio > 0 else tf.cast(tf.reduce_max(count), tf.int32)
        inner = tf.cast(tf.range(most), tf.float32)
        outer = tf.cast(tf.range(shape[i]), tf.float32)
        at = start[:, None, None] + outer[:, None] * bins[:, None, None]
        at = at + (inner + 0.5) * (bins / tf.maximum(count, 1.0))[:, None, None]
        size = tf.cast(shape_parts(x)[i + 2], tf.float32)
        used = tf.logical_and(tf.logical_and(at >= -1, at <= size), inner < count[:, None, None])
        at = tf.maximum(at, 0.0)
        low = tf.minimum(tf.floor(at), size - 1)
        high = tf.minimum(low + 1, size - 1)
        part = tf.where_v2(low >= size - 1, tf.zeros_like(at), at - low)
        taps.append([(low, 1 - part), (high, part)])
        alive.append(tf.cast(used, tf.float32))
        samples.append(count)
    return _pooled_regions(node, x, tf.cast(images, tf.int32), taps, alive, samples)


def _pooled_regions(
    node: Node, x: Tensor, images: Tensor, taps: list[Any], alive: list[Tensor], samples: list[Tensor]
) -> Tensor:
    """Pools what is sampled in each bin: [regions, channels, bins down, bins across]."""
    _, _, height, width = shape_parts(x)
    rows = tf.reshape(tf.transpose(x, [0, 2, 3, 1]), stacked([-1, shape_parts(x)[1]], tf.int32))
    used = alive[0][:, :, :, None, None] * alive[1][:, None, None]
    values: list[Tensor] = []
    for (y, wy), (z, wz) in itertools.product(*taps):
        index = (images[:, None, None, None, None] * height + tf.cast(y, tf.int32)[:, :, :, None, None]) * width
        index = index + tf.cast(z, tf.int32)[:, None, None]
        weight = wy[:, :, :, None, None] * wz[:, None, None] * used
        values.append(tf.gather(rows, index) * tf.cast(weight, x.dtype)[..., None])
    if node.get("mode", "avg") == "avg":
        total = tf.reduce_sum(tf.add_n(values), [2, 4])
        count = tf.maximum(samples[0] * samples[1], 1.0)
        made = total / tf.cast(count, x.dtype)[:, None, None, None]
    else:
        largest = tf.maximum(tf.maximum(values[0], values[1]), tf.maximum(values[2], values[3]))
        made = tf.reduce_max(largest, [2, 4])
    return tf.transpose(made, [0, 3, 1, 2])


@translates("Col2Im")
def _col2im(node: Node, x: Tensor, image: Tensor, block: Tensor) -> Tensor:
    """Adds up the columns of blocks at their places in the image."""
    spatial = shape_parts(image)[0]
    node.require_known(isinstance(spatial, int), "the number of its spatial axes")
    strides, dilations = node.get("strides", [1] * spatial), node.get("dilations", [1] * spatial)
    pads = node.get("pads", [0] * (2 * spatial))
    size, kernel = tf.cast(image, tf.int32), tf.cast(block, tf.int32)
    taps = tf.reduce_prod(kernel)
    n, columns, blocks = shape_parts(x)
    index: Any = 0
    inside: Any = True
    tap, place = tf.range(taps), tf.range(tf.cast(blocks, tf.int32))
    after_tap: Any = taps
    counts = [
        (size[i] + pads[i] + pads[i + spatial] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1
        for i in range(spatial)
    ]
    after_place: Any = product(counts)
    for i in range(spatial):
        after_tap, after_place = after_tap // kernel[i], after_place // counts[i]
        k, b = tap // after_tap % kernel[i], place // after_place % counts[i]
        at = (k * dilations[i])[:, None] + b * strides[i] - pads[i]
        index = index * size[i] + at
        inside = tf.logical_and(inside, tf.logical_and(at >= 0, at < size[i]))
    flat = tf.reduce_prod(size)
    where = tf.reshape(tf.where_v2(inside, index, flat), [-1])
    rows = tf.reshape(x, tf.stack([n * (columns // taps), -1]))
    summed = tf.unsorted_segment_sum(tf.transpose(rows), where, flat + 1)[:-1]
    return tf.reshape(tf.transpose(summed), tf.concat([tf.stack([n, columns // taps]), size], 0))


@translates("AffineGrid")
def _affine_grid(node: Node, theta: Tensor, size: Tensor) -> Tensor:
    """Returns the places in an image, from -1 to 1, that an affine map takes each place of the result from."""
    spatial = shape_parts(theta)[-1]
    node.require_known(isinstance(spatial, int), "the number of its spatial axes")
    spatial = spatial - 1
    counts = tf.cast(size, tf.int32)[2:]
    wide = theta.dtype
    places = []
    for i in range(spatial):
        count = tf.cast(counts[i], wide)
        at = tf.cast(tf.range(counts[i]), wide)
        if node.get("align_corners", 0):
            line = 2 * at / tf.maximum(count - 1, scalar(1, theta)) - 1
        else:
            line = (2 * at + 1) / count - 1
        shaped = tf.reshape(line, [-1 if j == i else 1 for j in range(spatial)])
        places.append(tf.broadcast_to(shaped, counts))
    ones = tf.ones_like(places[0])
    points = tf.reshape(tf.stack([*reversed(places), ones], -1), [-1, spatial + 1])
    made = tf.matmul(points, theta, transpose_b=True)
    return tf.reshape(made, tf.concat([tf.shape(theta)[:1], counts, [spatial]], 0))
