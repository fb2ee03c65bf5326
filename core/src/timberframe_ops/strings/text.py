"""Ops on strings, which the executor carries out on the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from timberframe_core.errors import InvalidArgumentError, OpError, OutOfRangeError
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.shapes import Shape, compatible, format_shape

_STRINGS = NotDifferentiable("strings have no derivative")


def _joined_shape(c: InferenceContext) -> Sequence[Shape]:
    """Returns one shape for all that are no scalars."""
    result: Shape = ()
    for shape in c.shapes:
        if shape is None:
            return [None]
        if shape:
            if result and not compatible(result, shape):
                raise c.error(
                    f"inputs have shapes {format_shape(result)} and {format_shape(shape)}; "
                    "all that are no scalars must have the same"
                )
            result = shape
    return [result]


def _join(attrs: Attrs, *inputs: np.ndarray) -> np.ndarray:
    separator = attrs["separator"].encode()
    arrays = np.broadcast_arrays(*inputs) if inputs else [np.array(b"", object)]
    result = np.empty(arrays[0].shape, object)
    for at in np.ndindex(result.shape):
        result[at] = separator.join(x[at] for x in arrays)
    return result


define_op(
    "StringJoin",
    inputs=("inputs: N * string",),
    outputs=("output: string",),
    attrs=("N: int >= 0", "separator: string = ''"),
    doc="The strings one after the other, element by element, with a separator between them. Scalars are repeated.",
    shape=_joined_shape,
    reference=_join,
    gradient=_STRINGS,
    on_host=True,
)


def _reduced_axes(rank: int, indices: np.ndarray, name: str = "") -> list[int]:
    """Returns the dimensions to join along, counted from the front."""
    where = f"ReduceJoin '{name}': " if name else ""
    axes: list[int] = []
    for i in indices.reshape(-1).tolist():
        if not -rank <= i < rank:
            raise OutOfRangeError(f"{where}reduction_indices has {i} for rank {rank}; it must lie in [{-rank}, {rank})")
        if i % rank in axes:
            raise InvalidArgumentError(
                f"{where}reduction_indices {indices.reshape(-1).tolist()} names dimension {i % rank} twice; "
                "each may occur once"
            )
        axes.append(i % rank)
    return axes


def _reduce_join_shape(c: InferenceContext) -> Sequence[Shape]:
    shape, indices = c.shapes[0], c.value(1)
    if shape is None or indices is None:
        return [None]
    try:
        axes = _reduced_axes(len(shape), indices, c.name)
    except OpError as error:
        raise type(error)(str(error), c.name) from None
    if c.attrs["keep_dims"]:
        return [tuple(1 if i in axes else d for i, d in enumerate(shape))]
    return [tuple(d for i, d in enumerate(shape) if i not in axes)]


def _reduce_join(attrs: Attrs, inputs: np.ndarray, reduction_indices: np.ndarray) -> np.ndarray:
    """Returns the first of the dimensions varies fastest."""
    axes = _reduced_axes(inputs.ndim, reduction_indices)
    kept = [i for i in range(inputs.ndim) if i not in axes]
    moved = inputs.transpose([*kept, *reversed(axes)])
    separator = attrs["separator"].encode()
    shape = moved.shape[: len(kept)]
    result = np.empty(shape, object)
    for at in np.ndindex(shape):
        result[at] = separator.join(np.asarray(moved[at]).reshape(-1).tolist())
    if attrs["keep_dims"]:
        return result.reshape([1 if i in axes else d for i, d in enumerate(inputs.shape)])
    return result


def _strings(shape: tuple[int, ...]) -> Arg:
    letters = [bytes([97 + i % 26]) * (1 + i % 3) for i in range(int(np.prod(shape, dtype=int)))]
    values = np.empty(len(letters), object)
    values[:] = letters
    return Arg(values=values.reshape(shape))


def _reduce_join_samples() -> Iterator[Sample]:
    for shape, axes in (
        ((4,), [0]), ((2, 3), [0]), ((2, 3), [1]), ((2, 3), [0, 1]), ((2, 3), [1, 0]), ((2, 3, 2), [-1, 0]),
        ((2, 3), []), ((2, 0), [1]), ((), []),
    ):  # fmt: skip
        for keep in (False, True):
            attrs = {"keep_dims": keep, "separator": "-" if keep else ""}
            yield Sample([_strings(shape), Arg(values=np.array(axes, np.int32))], attrs)


def _reduce_join_errors() -> Iterator[ErrorSample]:
    for axes, match, error in (
        ([2], r"reduction_indices has 2 for rank 2; it must lie in \[-2, 2\)", "OutOfRangeError"),
        ([-3], r"reduction_indices has -3 for rank 2", "OutOfRangeError"),
        ([0, -2], r"reduction_indices \[0, -2\] names dimension 0 twice", "InvalidArgumentError"),
    ):
        yield ErrorSample([_strings((2, 3)), Arg(values=np.array(axes, np.int32))], match, error=error)


define_op(
    "ReduceJoin",
    inputs=("inputs: string", "reduction_indices: int32"),
    outputs=("output: string",),
    attrs=("keep_dims: bool = false", "separator: string = ''"),
    doc="The strings along the given dimensions, one after the other with a separator between them, the first of these "
    "dimensions varying fastest. keep_dims keeps them with size 1.",
    shape=_reduce_join_shape,
    reference=_reduce_join,
    gradient=_STRINGS,
    shape_inputs=("reduction_indices",),
    samples=_reduce_join_samples,
    errors=_reduce_join_errors,
    on_host=True,
)
