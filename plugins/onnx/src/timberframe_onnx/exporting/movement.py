"""Exporters of ops that move elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from timberframe_core.graph.operation import Operation
from timberframe_onnx.elements import element_of
from timberframe_onnx.exporting.writer import NotExportedError, Writer, exports, rank_of

FAR = np.iinfo(np.int64).max


@exports("Reshape")
def _reshape(w: Writer, op: Operation) -> None:
    """A known shape without -1 is written: beside a size of 0 ONNX has none; and the given one may be a scalar."""
    result = op.outputs[0].shape
    sizes = None if result.ndims is None else result.as_list()
    known = w.known(op.inputs[1])
    if sizes is not None and None not in sizes:
        known, shape = np.array(sizes, np.int64), w.constant(sizes)
    else:
        shape = w.as_int64(op.inputs[1])
        shape = w.add("Reshape", [shape, w.constant([1])]) if op.inputs[1].shape.ndims == 0 else shape
    zero = known is None or bool(np.any(known == 0))
    w.give(op, w.add("Reshape", [w.value(op.inputs[0]), shape], **({"allowzero": 1} if zero else {})))


@exports("Transpose")
def _transpose(w: Writer, op: Operation) -> None:
    order = w.known_list(op.inputs[1], op, "order of axes")
    if not order:
        w.give(op, w.add("Identity", [w.value(op.inputs[0])]))
    else:
        w.give(op, w.add("Transpose", [w.value(op.inputs[0])], perm=[axis % len(order) for axis in order]))


@exports("ExpandDims")
def _expand_dims(w: Writer, op: Operation) -> None:
    axes = w.constant([w.known_list(op.inputs[1], op, "axis")[0]])
    w.give(op, w.add("Unsqueeze", [w.value(op.inputs[0]), axes]))


@exports("Squeeze")
def _squeeze(w: Writer, op: Operation) -> None:
    axes = list(op.attrs["squeeze_dims"])
    w.give(op, w.add("Squeeze", [*w.inputs(op), *([w.constant(axes)] if axes else [])]))


@exports("ConcatV2")
def _concat(w: Writer, op: Operation) -> None:
    axis = w.known_list(op.inputs[-1], op, "axis")[0]
    w.give(op, w.add("Concat", [w.value(t) for t in op.inputs[:-1]], axis=axis))


@exports("Pack")
def _pack(w: Writer, op: Operation) -> None:
    axis = int(op.attrs["axis"])
    axis = axis + rank_of(op.outputs[0], op) if axis < 0 else axis
    rows = [w.add("Unsqueeze", [name, w.constant([axis])]) for name in w.inputs(op)]
    w.give(op, w.add("Concat", rows, axis=axis))


@exports("Unpack")
def _unpack(w: Writer, op: Operation) -> None:
    axis, count = int(op.attrs["axis"]), int(op.attrs["num"])
    parts = w.add("Split", w.inputs(op), max(count, 1), axis=axis, num_outputs=count)
    parts = [parts] if isinstance(parts, str) else parts
    w.give(op, *(w.add("Squeeze", [p, w.constant([axis])]) for p in parts))


@exports("Split", "SplitV")
def _split(w: Writer, op: Operation) -> None:
    count = len(op.outputs)
    at = 0 if op.type == "Split" else 2
    axis = w.known_list(op.inputs[at], op, "axis")[0]
    data = w.value(op.inputs[1 if op.type == "Split" else 0])
    if op.type == "Split":
        made = w.add("Split", [data], count, axis=axis, num_outputs=count)
    else:
        made = w.add("Split", [data, w.as_int64(op.inputs[1])], count, axis=axis)
    w.give(op, *([made] if isinstance(made, str) else made))


@exports("Slice")
def _slice(w: Writer, op: Operation) -> None:
    data, begin, size = op.inputs
    if data.shape.ndims == 0:
        w.give(op, w.add("Identity", [w.value(data)]))
        return
    starts = w.as_int64(begin)
    known = w.known(size)
    first = w.known(begin)
    if known is not None and first is not None:
        ends = w.constant([FAR if s < 0 else b + s for b, s in zip(first.tolist(), known.tolist(), strict=True)])
    elif known is not None and np.all(known >= 0):
        ends = w.add("Add", [starts, w.constant(known)])
    else:
        raise NotExportedError("its size is not known before it runs")
    w.give(op, w.add("Slice", [w.value(data), starts, ends, w.constant(np.arange(rank_of(data, op)))]))


@exports("StridedSlice")
def _strided_slice(w: Writer, op: Operation) -> None:
    """Each entry of the index is a range, a number (its axis goes), a new axis, or the axes that are left."""
    data = op.inputs[0]
    begin, end, stride = [w.known(t) for t in op.inputs[1:4]]
    if begin is None or end is None or stride is None:
        raise NotExportedError("its index is not known before it runs")
    masks = {name: int(op.attrs[f"{name}_mask"]) for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    used = sum(not (masks["new_axis"] >> i & 1 or masks["ellipsis"] >> i & 1) for i in range(len(begin)))
    axis, dropped, added, place = 0, [], [], 0
    rows: list[tuple[int, int, int, int]] = []
    for i in range(len(begin)):
        if masks["ellipsis"] >> i & 1:
            left = rank_of(data, op) - used
            axis, place = axis + left, place + left
            continue
        if masks["new_axis"] >> i & 1:
            added.append(place)
            place += 1
            continue
        first, last, step = int(begin[i]), int(end[i]), int(stride[i])
        if masks["shrink_axis"] >> i & 1:
            rows.append((first, FAR if first == -1 else first + 1, 1, axis))
            dropped.append(axis)
        else:
            first = (0 if step > 0 else FAR) if masks["begin"] >> i & 1 else first
            last = (FAR if step > 0 else -FAR) if masks["end"] >> i & 1 else last
            rows.append((first, last, step, axis))
            place += 1
        axis += 1
    name = w.value(data)
    if rows:
        starts, ends, steps, axes = (w.constant(list(part)) for part in zip(*rows, strict=True))
        name = w.add("Slice", [name, starts, ends, axes, steps])
    name = w.add("Squeeze", [name, w.constant(dropped)]) if dropped else name
    w.give(op, w.add("Unsqueeze", [name, w.constant(added)]) if added else w.add("Identity", [name]))


@exports("GatherV2", "Gather")
def _gather(w: Writer, op: Operation) -> None:
    axis = w.known_list(op.inputs[2], op, "axis")[0] if op.type == "GatherV2" else 0
    if op.type == "GatherV2" and op.attrs.get("batch_dims", 0):
        raise NotExportedError("it has batch_dims")
    w.give(op, w.add("Gather", [w.value(t) for t in op.inputs[:2]], axis=axis))


@exports("GatherNd")
def _gather_nd(w: Writer, op: Operation) -> None:
    w.give(op, w.add("GatherND", [w.value(op.inputs[0]), w.as_int64(op.inputs[1])]))


SCATTERS = {
    "TensorScatterUpdate": "none",
    "TensorScatterAdd": "add",
    "TensorScatterMax": "max",
    "TensorScatterMin": "min",
}


@exports(*SCATTERS)
def _scatter_nd(w: Writer, op: Operation) -> None:
    data, indices, updates = op.inputs
    names = [w.value(data), w.as_int64(indices), w.value(updates)]
    w.give(op, w.add("ScatterND", names, reduction=SCATTERS[op.type]))


@exports("Pad", "PadV2")
def _pad(w: Writer, op: Operation) -> None:
    if op.inputs[0].shape.ndims == 0:
        w.give(op, w.add("Identity", [w.value(op.inputs[0])]))
        return
    pads = w.known(op.inputs[1])
    if pads is not None:
        flat = w.constant(pads.T.ravel())
    else:
        turned = w.add("Transpose", [w.as_int64(op.inputs[1])], perm=[1, 0])
        flat = w.add("Reshape", [turned, w.constant([-1])])
    w.give(op, w.add("Pad", [w.value(op.inputs[0]), flat, *(w.value(t) for t in op.inputs[2:])], mode="constant"))


@exports("MirrorPad")
def _mirror_pad(w: Writer, op: Operation) -> None:
    if op.attrs["mode"] != "REFLECT":
        raise NotExportedError(f"its mode is {op.attrs['mode']}; ONNX has REFLECT")
    pads = np.array(w.known_list(op.inputs[1], op, "padding")).reshape(-1, 2)
    w.give(op, w.add("Pad", [w.value(op.inputs[0]), w.constant(pads.T.ravel())], mode="reflect"))


@exports("Tile")
def _tile(w: Writer, op: Operation) -> None:
    w.give(op, w.add("Tile", [w.value(op.inputs[0]), w.as_int64(op.inputs[1])]))


@exports("BroadcastTo")
def _broadcast_to(w: Writer, op: Operation) -> None:
    w.give(op, w.add("Expand", [w.value(op.inputs[0]), w.as_int64(op.inputs[1])]))


@exports("Fill")
def _fill(w: Writer, op: Operation) -> None:
    w.give(op, w.add("Expand", [w.value(op.inputs[1]), w.as_int64(op.inputs[0])]))


@exports("OnesLike")
def _ones_like(w: Writer, op: Operation) -> None:
    one = onnx.numpy_helper.from_array(np.ones(1, op.inputs[0].dtype.numpy))
    w.give(op, w.add("ConstantOfShape", [w.add("Shape", w.inputs(op))], value=one))


@exports("Shape", "Size", "Rank")
def _shape(w: Writer, op: Operation) -> None:
    kind = "Size" if op.type == "Size" else "Shape"
    name = w.add(kind, w.inputs(op))
    name = w.add("Size", [name]) if op.type == "Rank" else name
    w.give(op, name if op.outputs[0].dtype.name == "int64" else w.cast(name, op.outputs[0].dtype))


@exports("Range")
def _range(w: Writer, op: Operation) -> None:
    w.give(op, w.add("Range", w.inputs(op)))


@exports("ReverseV2")
def _reverse(w: Writer, op: Operation) -> None:
    axes = w.known_list(op.inputs[1], op, "axes")
    far = [-FAR] * len(axes)
    names = [w.value(op.inputs[0]), w.constant([-1] * len(axes)), w.constant(far), w.constant(axes)]
    w.give(op, w.add("Slice", [*names, w.constant([-1] * len(axes))]))


@exports("ReverseSequence")
def _reverse_sequence(w: Writer, op: Operation) -> None:
    axes = {"time_axis": int(op.attrs["seq_dim"]), "batch_axis": int(op.attrs["batch_dim"])}
    w.give(op, w.add("ReverseSequence", [w.value(op.inputs[0]), w.as_int64(op.inputs[1])], **axes))


@exports("OneHot")
def _one_hot(w: Writer, op: Operation) -> None:
    """ONNX has no scalar of indices, and counts negative ones from the end: they become the depth, which has no row.

    The depth comes in the dtype of the indices, for which runtimes have kernels.
    """
    indices, depth, on, off = op.inputs
    values = w.add("Concat", [w.add("Reshape", [w.value(t), w.constant([1])]) for t in (off, on)], axis=0)
    known, dtype = w.known(depth), indices.dtype
    size = w.cast(w.value(depth), dtype) if known is None else w.constant(known, dtype.numpy)
    rows, given = w.value(indices), w.known(indices)
    if given is None or bool(np.any(given < 0)):
        negative = w.add("Less", [rows, w.constant(0, dtype.numpy)])
        rows = w.add("Where", [negative, size, rows])
    if indices.shape.ndims == 0:
        row = w.add("OneHot", [w.add("Reshape", [rows, w.constant([1])]), size, values], axis=-1)
        w.give(op, w.add("Squeeze", [row, w.constant([0])]))
    else:
        w.give(op, w.add("OneHot", [rows, size, values], axis=int(op.attrs["axis"])))


@exports("TopKV2", "TopK")
def _top_k(w: Writer, op: Operation) -> None:
    count = w.add("Reshape", [w.as_int64(op.inputs[1]), w.constant([1])])
    values, found = w.add("TopK", [w.value(op.inputs[0]), count], 2, sorted=int(op.attrs["sorted"]))
    w.give(op, values, w.add("Cast", [found], to=element_of(op.outputs[1].dtype)))


@exports("DepthToSpace", "SpaceToDepth")
def _blocks(w: Writer, op: Operation) -> None:
    if op.attrs["data_format"] != "NHWC":
        raise NotExportedError(f"its data_format is {op.attrs['data_format']}")
    front = w.add("Transpose", w.inputs(op), perm=[0, 3, 1, 2])
    made: Any = w.add(op.type, [front], blocksize=int(op.attrs["block_size"]))
    w.give(op, w.add("Transpose", [made], perm=[0, 2, 3, 1]))
