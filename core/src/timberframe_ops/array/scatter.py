"""Writing slices into a tensor at positions that another tensor gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import NUMERIC
from timberframe_core.ops.base.array.gather import check_policy, index_depth
from timberframe_core.ops.definition.accuracy import EXACT, Accumulation
from timberframe_core.ops.definition.gradients import apply_op, indicator, shape_of, zeros_like
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.value_checks import check_tuples
from timberframe_core.shapes import Shape, StaticShape, compatible, format_shape, num_elements, row_major_strides
from timberframe_ops.nn.windows import widen


def _check_updates(c: InferenceContext, indices: Shape, updates: Shape, output: Shape) -> None:
    """updates must hold one slice of the output for each index tuple."""
    depth = index_depth(c, indices)
    if updates is not None and not updates and indices is not None and len(indices) == 1:
        raise c.error("updates has rank 0; it must have rank 1 or more")
    if indices is None or output is None or depth is None:
        return
    if depth > len(output):
        raise c.late_error(
            f"indices has tuples of {depth} for an output of rank {len(output)}; they must not be longer than the rank"
        )
    wanted = indices[:-1] + output[depth:]
    if not compatible(updates, wanted):
        raise c.late_error(
            f"updates has shape {format_shape(updates)}; "
            f"with indices {format_shape(indices)} it must be {format_shape(wanted)}"
        )
    if not output or 0 in output[:depth]:  # of slices that are empty nothing is written, wherever they are
        given = any(s is not None and None not in s and 0 not in s for s in (indices, updates))
        if given or (not output and not depth):
            raise c.error(
                f"indices and updates are given for an output of shape {format_shape(output)}; "
                "there is nowhere to write"
            )


def _scatter_nd_shape(c: InferenceContext) -> Sequence[Shape]:
    check_policy(c)
    (rank,) = c.require_rank(2, 1)
    value = c.value(2)
    if value is not None and any(int(d) < 0 for d in value):
        raise c.error(f"shape is {value.tolist()}; sizes must not be negative")
    output = c.shape_value(2) if rank is not None else None
    _check_updates(c, c.shapes[0], c.shapes[1], output)
    return [output]


def _tensor_scatter_shape(c: InferenceContext) -> Sequence[Shape]:
    check_policy(c)
    _check_updates(c, c.shapes[1], c.shapes[2], c.shapes[0])
    return [c.shapes[0]]


def _scattered(attrs: Attrs, target: np.ndarray, indices: np.ndarray, updates: np.ndarray, combine: Any) -> np.ndarray:
    """`target` after `combine.at` with the updates; None in place of it stores them, the last one winning."""
    depth, shape = indices.shape[-1], target.shape
    at = indices.astype(np.int64).reshape(num_elements(indices.shape[:-1]), depth)
    values = updates.reshape(len(at), *shape[depth:])
    if attrs.get("bad_indices_policy") == "IGNORE":
        good = ((at >= 0) & (at < np.array(shape[:depth], np.int64))).all(axis=1)
        at, values = at[good], values[good]
    else:
        check_tuples(at, shape)
    rows = at @ np.array(row_major_strides(shape[:depth]), np.int64)
    slices = target.reshape(num_elements(shape[:depth]), *shape[depth:])
    if combine is not None:
        combine.at(slices, rows, values)
    else:
        written, last = np.unique(rows[::-1], return_index=True)
        slices[written] = values[len(rows) - 1 - last]
    return slices.reshape(shape)


def _scatter_nd_reference(attrs: Attrs, indices: np.ndarray, updates: np.ndarray, shape: np.ndarray) -> np.ndarray:
    sizes = tuple(int(d) for d in shape)
    if updates.dtype == object:
        return _scattered(attrs, np.full(sizes, b"", object), indices, updates, np.add)
    wide = widen(updates)
    combine = np.logical_or if wide.dtype == bool else np.add
    return _scattered(attrs, np.zeros(sizes, wide.dtype), indices, wide, combine).astype(updates.dtype)


def _tensor_scatter(combine: Any) -> Callable[..., np.ndarray]:
    def reference(attrs: Attrs, tensor: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
        if combine is None:
            return _scattered(attrs, tensor.copy(), indices, updates, None)
        target = widen(tensor).copy() if tensor.dtype != object else tensor.copy()
        return _scattered(attrs, target, indices, widen(updates), combine).astype(tensor.dtype)

    return reference


# (output shape, indices): tuples of each length, duplicates, ends, nothing to write, empty slices; a dimension above
# 65,535
_CASES: tuple[tuple[StaticShape, Any], ...] = (
    ((4,), [[1], [3], [0]]),
    ((4,), [[1], [1], [3]]),
    ((3, 5), [[2], [0]]),
    ((3, 5), [[2, 4], [0, 0], [2, 4]]),
    ((2, 3, 4), [[[1, 2], [0, 0]], [[0, 1], [1, 1]]]),
    ((2, 3, 7), [[[1], [0]], [[1], [1]]]),
    ((3,), np.zeros((0, 1), np.int32)),
    ((0,), np.zeros((0, 1), np.int32)),
    ((3, 2), np.zeros((2, 0), np.int32)),
    ((2, 0), [[1], [0], [1]]),
)
_LARGE: tuple[StaticShape, Any] = ((70001, 2), [[70000], [0], [65536], [70000]])


def _scatter_cases(zero_depth: bool = True) -> Iterator[tuple[StaticShape, Arg, Arg]]:
    for shape, indices in (*_CASES, _LARGE):
        given = np.shape(indices)
        if given[-1] or zero_depth:
            dtype = "int32" if max(shape) > 32767 else None
            yield shape, Arg(values=indices, dtype=dtype), Arg((*given[:-1], *shape[given[-1] :]), special=False)


def _scatter_nd_samples() -> Iterator[Sample]:
    for shape, indices, updates in _scatter_cases():
        yield Sample((indices, updates, Arg(values=list(shape), dtype=indices.dtype)))
    bad = Arg(values=[[1], [7], [-1]], dtype="int32")
    yield Sample((bad, Arg((3,), special=False), Arg(values=[4], dtype="int32")), {"bad_indices_policy": "IGNORE"})


def _scatter_nd_errors() -> Iterator[ErrorSample]:
    one, four = Arg(values=[[1]]), Arg(values=[4])
    outside = r"index tuple {} has {} in dimension 0; it must lie in \[0, 4\)"
    yield ErrorSample((Arg(values=[[1], [4]]), Arg((2,)), four), outside.format(1, 4))
    yield ErrorSample((Arg(values=[[-1], [1]]), Arg((2,)), four), outside.format(0, -1))
    yield ErrorSample((Arg(values=[[1], [4]]), Arg((2, 0)), Arg(values=[4, 0])), outside.format(1, 4))
    yield ErrorSample((one, Arg((3,)), four), r"updates has shape \(3,\)")
    yield ErrorSample((one, Arg((1, 3)), Arg(values=[4, 2])), r"it must be \(1, 2\)")
    yield ErrorSample((Arg(values=[[1, 1]]), Arg((1,)), four), "not be longer than the rank")
    yield ErrorSample((one, Arg((1,)), Arg(values=[-4])), "must not be negative")
    yield ErrorSample((one, Arg((1,)), Arg(values=4)), "must have rank 1")
    yield ErrorSample((Arg(values=[[0]]), Arg((1,)), Arg(values=[0])), "nowhere to write")
    yield ErrorSample((Arg(values=1), Arg(()), four), "indices has rank 0")
    yield ErrorSample((one, Arg((1,)), four), "bad_indices_policy is 'X'", {"bad_indices_policy": "X"})


def _tensor_scatter_samples() -> Iterator[Sample]:
    for shape, indices, updates in _scatter_cases():
        yield Sample((Arg(shape, special=False), indices, updates))
    bad = Arg(values=[[1], [7], [-1]], dtype="int32")
    yield Sample((Arg((4,), special=False), bad, Arg((3,), special=False)), {"bad_indices_policy": "IGNORE"})


def _tensor_scatter_errors() -> Iterator[ErrorSample]:
    x = Arg((4,))
    outside = r"index tuple {} has {} in dimension 0; it must lie in \[0, 4\)"
    yield ErrorSample((x, Arg(values=[[1], [4]]), Arg((2,))), outside.format(1, 4))
    yield ErrorSample((Arg((4, 0)), Arg(values=[[1], [4]]), Arg((2, 0))), outside.format(1, 4))
    yield ErrorSample((x, Arg(values=[[1]]), Arg((3,))), r"it must be \(1,\)")
    yield ErrorSample((x, Arg(values=[[1, 1]]), Arg((1,))), "not be longer than the rank")
    yield ErrorSample((Arg((0,)), Arg(values=[[0]]), Arg((1,))), "nowhere to write")


def _duplicates(indices: np.ndarray) -> int:
    rows = indices.reshape(num_elements(indices.shape[:-1]), indices.shape[-1])
    if not rows.size:
        return max(len(rows), 1)
    return int(np.unique(rows, axis=0, return_counts=True)[1].max())


def _at_indices(op: Any, grad: Any, indices: Any) -> Any:
    return apply_op("GatherNd", [grad, indices], {"bad_indices_policy": op.attrs["bad_indices_policy"]})


def _update_gradient(op: Any, grad: Any) -> list[Any]:
    _, indices, updates = op.inputs
    policy = {"bad_indices_policy": op.attrs["bad_indices_policy"]}
    kept = apply_op("TensorScatterUpdate", [grad, indices, zeros_like(updates)], policy)
    return [kept, None, _at_indices(op, grad, indices)]


def _extreme_gradient(op: Any, grad: Any) -> list[Any]:
    """Returns where several elements are the extreme one they share the gradient."""
    x, indices, updates = op.inputs
    policy, dtype = {"bad_indices_policy": op.attrs["bad_indices_policy"]}, x.dtype
    own = indicator(apply_op("Equal", [x, op.outputs[0]]), dtype)
    theirs = indicator(apply_op("Equal", [updates, _at_indices(op, op.outputs[0], indices)]), dtype)
    scattered = apply_op("ScatterNd", [indices, theirs, shape_of(x, indices.dtype)], policy)
    share = apply_op("RealDiv", [grad, apply_op("AddV2", [own, scattered])])
    return [own * share, None, _at_indices(op, share, indices) * theirs]


_GRADIENTS: dict[str, Callable[..., list[Any]]] = {
    "Update": _update_gradient,
    "Add": lambda op, grad: [grad, None, _at_indices(op, grad, op.inputs[1])],
    "Sub": lambda op, grad: [grad, None, apply_op("Neg", [_at_indices(op, grad, op.inputs[1])])],
    "Min": _extreme_gradient,
    "Max": _extreme_gradient,
}


define_op(
    "ScatterNd",
    inputs=("indices: Tindices", "updates: T", "shape: Tindices"),
    outputs=("output: T",),
    attrs=("T: type", "Tindices: {int16, int32, int64}", "bad_indices_policy: string = ''"),
    doc="Zeros of the given shape with each update added at its index tuple. Strings are joined, bools or-ed.",
    shape=_scatter_nd_shape,
    reference=_scatter_nd_reference,
    gradient=lambda op, grad: [None, _at_indices(op, grad, op.inputs[0]), None],
    shape_inputs=("shape",),
    accuracy=Accumulation(lambda attrs, indices, updates, shape: _duplicates(indices) + 1),
    samples=_scatter_nd_samples,
    errors=_scatter_nd_errors,
)


def _define_tensor_scatter(name: str, combine: Any, indices: str, doc: str, **rest: Any) -> None:
    adds = combine in (np.add, np.subtract)
    accuracy = Accumulation(
        lambda attrs, tensor, indices, updates: _duplicates(indices) + 1,
        lambda attrs, tensor, indices, updates: _tensor_scatter(np.add)(attrs, abs(tensor), indices, abs(updates)),
    )
    define_op(
        f"TensorScatter{name}",
        inputs=("tensor: T", "indices: Tindices", "updates: T"),
        outputs=("output: T",),
        attrs=("T: type", f"Tindices: {indices}", "bad_indices_policy: string = ''"),
        doc=doc,
        shape=_tensor_scatter_shape,
        reference=_tensor_scatter(combine),
        gradient=_GRADIENTS[name],
        accuracy=accuracy if adds else EXACT,
        samples=_tensor_scatter_samples,
        errors=_tensor_scatter_errors,
        **rest,
    )


_define_tensor_scatter(
    "Update",
    None,
    "{int16, int32, int64, uint16}",
    "A copy of tensor with each update stored at its index tuple, the last one winning.",
    gradient_notes=("overwritten_values",),
)
_define_tensor_scatter("Add", np.add, "{int32, int64}", "A copy of tensor with each update added at its index tuple.")
_define_tensor_scatter(
    "Sub",
    np.subtract,
    "{int32, int64}",
    "A copy of tensor with each update subtracted at its index tuple.",
    defined_for=({"T": tuple(t.name for t in NUMERIC)},),
)
_define_tensor_scatter("Min", np.minimum, "{int32, int64}", "A copy of tensor with the minimum of it and the updates.")
_define_tensor_scatter("Max", np.maximum, "{int32, int64}", "A copy of tensor with the maximum of it and the updates.")

define_op(
    "ScatterNdNonAliasingAdd",
    inputs=("input: T", "indices: Tindices", "updates: T"),
    outputs=("output: T",),
    attrs=("T: {numbertype, bool}", "Tindices: {int32, int64}", "bad_indices_policy: string = ''"),
    doc="A copy of input with each update added at its index tuple; bools are or-ed.",
    shape=_tensor_scatter_shape,
    reference=_tensor_scatter(np.add),
    gradient=_GRADIENTS["Add"],
    accuracy=Accumulation(
        lambda attrs, tensor, indices, updates: _duplicates(indices) + 1,
        lambda attrs, tensor, indices, updates: _tensor_scatter(np.add)(attrs, abs(tensor), indices, abs(updates)),
    ),
    samples=_tensor_scatter_samples,
    errors=_tensor_scatter_errors,
)
