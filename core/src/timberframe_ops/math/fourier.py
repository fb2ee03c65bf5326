"""Discrete Fourier transforms of the last one, two or three dimensions, on the host by NumPy's pocketfft."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from timberframe_core.dtypes import int32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.gradients import apply_op, constant, shape_of
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.shapes import Shape, format_shape

_COMPLEX = "Tcomplex: {complex64, complex128} = complex64"
_REAL = "Treal: {float32, float64} = float32"
_NAMES = {1: "", 2: "2D", 3: "3D"}


def _transformed(c: InferenceContext, rank: int) -> Shape:
    """Returns the input's shape, which must have the dimensions that are transformed."""
    shape = c.shapes[0]
    if shape is not None and len(shape) < rank:
        raise c.error(f"input has shape {format_shape(shape)}; it must have rank {rank} or more")
    return shape


def _lengths(c: InferenceContext, rank: int) -> tuple[int | None, ...]:
    """Returns what fft_length says, which must be as many sizes as dimensions are transformed."""
    given = c.require_rank(1, 1)
    if given[0] not in (None, rank):
        raise c.error(f"fft_length has {given[0]} elements; it must have {rank}")
    value = c.value(1)
    if value is None:
        return (None,) * rank
    lengths = tuple(int(n) for n in value)
    if any(n < 0 for n in lengths):
        raise c.error(f"fft_length is {list(lengths)}; lengths must be zero or more")
    return lengths


def _check_fits(available: Any, needed: Any) -> None:
    """Checks that what is transformed is not padded but where it is empty."""
    if any(a < n for a, n in zip(available, needed, strict=True)) and 0 not in available:
        raise InvalidArgumentError(
            f"the last dimensions of the input are {format_shape(tuple(available))}; they must be at least "
            f"{format_shape(tuple(needed))}, as fft_length says"
        )


def _kind(x: np.ndarray) -> Any:
    """Returns the complex dtype of the precision of an array."""
    return np.complex64 if x.dtype in (np.float32, np.complex64) else np.complex128


def _complex(rank: int, inverse: bool) -> None:
    """Defines the transform of complex numbers."""
    transform: Callable[..., Any] = np.fft.ifftn if inverse else np.fft.fftn
    axes = tuple(range(-rank, 0))
    name = f"{'I' if inverse else ''}FFT{_NAMES[rank]}"

    def reference(attrs: Attrs, input: Any) -> Any:
        return transform(input, axes=axes).astype(input.dtype) if input.size else input

    def gradient(op: Any, grad: Any) -> list[Any]:
        """Returns the adjoint: the other transform, with the other's factor."""
        count = _count(op.inputs[0], rank, grad.dtype.real_dtype)
        other = apply_op(f"{'' if inverse else 'I'}FFT{_NAMES[rank]}", [grad])
        factor = apply_op("Cast", [count], {"DstT": grad.dtype})
        return [other / factor if inverse else other * factor]

    define_op(
        name,
        inputs=["input: Tcomplex"],
        outputs=["output: Tcomplex"],
        attrs=[_COMPLEX],
        doc=f"The {'inverse ' if inverse else ''}discrete Fourier transform of the last dimensions.",
        shape=lambda c: [_transformed(c, rank)],
        reference=reference,
        gradient=gradient,
        on_host=True,
    )


def _outer(x: Any, rank: int) -> Any:
    """Returns how many dimensions are not transformed, as a vector."""
    return apply_op("Sub", [apply_op("Rank", [x]), constant(rank, int32)])[None]


def _count(x: Any, rank: int, dtype: Any) -> Any:
    """Returns how many elements each transform has."""
    sizes = apply_op("Slice", [shape_of(x), _outer(x, rank), [rank]])
    return apply_op("Cast", [apply_op("Prod", [sizes, 0])], {"DstT": dtype})


def _fitted(x: Any, like: Any) -> Any:
    """x cut, and filled with zeros at its ends, to the shape of another tensor."""
    if x.static_shape == like.static_shape and None not in (x.static_shape or (None,)):
        return x
    now, wanted = shape_of(x), shape_of(like)
    kept = apply_op("Minimum", [now, wanted])
    part = apply_op("Slice", [x, apply_op("ZerosLike", [now]), kept])
    missing = apply_op("Sub", [wanted, kept])
    return apply_op("Pad", [part, apply_op("Pack", [[apply_op("ZerosLike", [missing]), missing]], {"axis": 1})])


def _of_reals(rank: int) -> None:
    """Defines the transform of real numbers, of whose results the last dimension has the half that differs."""
    axes = tuple(range(-rank, 0))
    name = f"RFFT{_NAMES[rank]}"

    def shape(c: InferenceContext) -> list[Shape]:
        whole, lengths = _transformed(c, rank), _lengths(c, rank)
        if whole is None:
            return [None]
        last = lengths[-1]
        return [(*whole[:-rank], *lengths[:-1], None if last is None else last // 2 + 1 if last else 0)]

    def reference(attrs: Attrs, input: Any, fft_length: Any) -> Any:
        lengths = [int(n) for n in fft_length]
        _check_fits(input.shape[-rank:], lengths)
        made = (*input.shape[:-rank], *lengths[:-1], lengths[-1] // 2 + 1 if lengths[-1] else 0)
        if not input.size or 0 in made:
            return np.zeros(made, _kind(input))
        return np.fft.rfftn(input, lengths, axes).astype(_kind(input))

    def gradient(op: Any, grad: Any) -> list[Any]:
        """Returns the adjoint: what was left out counts as zero, and the real part of the inverse transform of all."""
        x, lengths = op.inputs
        whole = apply_op("ConcatV2", [[apply_op("Slice", [shape_of(x), [0], _outer(x, rank)]), lengths], 0])
        missing = apply_op("Sub", [whole, shape_of(grad)])
        pads = apply_op("Pack", [[apply_op("ZerosLike", [missing]), missing]], {"axis": 1})
        back = apply_op(f"IFFT{_NAMES[rank]}", [apply_op("Pad", [grad, pads])])
        factor = apply_op("Cast", [apply_op("Prod", [lengths, 0])], {"DstT": x.dtype})
        return [_fitted(apply_op("Real", [back], {"Tout": x.dtype}) * factor, x), None]

    define_op(
        name,
        inputs=["input: Treal", "fft_length: int32"],
        outputs=["output: Tcomplex"],
        attrs=[_REAL, _COMPLEX],
        doc="The discrete Fourier transform of real numbers: fft_length // 2 + 1 elements of the last dimension.",
        shape=shape,
        reference=reference,
        gradient=gradient,
        shape_inputs=("fft_length",),
        on_host=True,
    )


def _to_reals(rank: int) -> None:
    """Defines the inverse of the transform of real numbers."""
    axes = tuple(range(-rank, 0))
    name = f"IRFFT{_NAMES[rank]}"

    def shape(c: InferenceContext) -> list[Shape]:
        whole, lengths = _transformed(c, rank), _lengths(c, rank)
        return [None if whole is None else (*whole[:-rank], *lengths)]

    def reference(attrs: Attrs, input: Any, fft_length: Any) -> Any:
        lengths = [int(n) for n in fft_length]
        kind = np.float32 if input.dtype == np.complex64 else np.float64
        _check_fits(input.shape[-rank:], [*lengths[:-1], lengths[-1] // 2 + 1 if lengths[-1] else 0])
        if not input.size or 0 in lengths:
            return np.zeros((*input.shape[:-rank], *lengths), kind)
        return np.fft.irfftn(input, lengths, axes).astype(kind)

    def gradient(op: Any, grad: Any) -> list[Any]:
        """Returns the adjoint: elements whose mirror images were left out count twice."""
        y, lengths = op.inputs
        transformed = apply_op(f"RFFT{_NAMES[rank]}", [grad, lengths], {"Tcomplex": y.dtype})
        last = apply_op("Reshape", [apply_op("Slice", [lengths, [rank - 1], [1]]), constant([], int32)])
        places = apply_op("Range", [0, apply_op("FloorDiv", [last, 2]) + 1, 1])
        alone = apply_op("LogicalOr", [apply_op("Equal", [places, 0]), apply_op("Equal", [places * 2, last])])
        factors = apply_op("SelectV2", [alone, constant(1.0, grad.dtype), constant(2.0, grad.dtype)])
        count = apply_op("Cast", [apply_op("Prod", [lengths, 0])], {"DstT": grad.dtype})
        weights = apply_op("Cast", [factors / count], {"DstT": y.dtype})
        return [_fitted(transformed * weights, y), None]

    define_op(
        name,
        inputs=["input: Tcomplex", "fft_length: int32"],
        outputs=["output: Treal"],
        attrs=[_REAL, _COMPLEX],
        doc="The inverse of the transform of real numbers, from the elements that it gives.",
        shape=shape,
        reference=reference,
        gradient=gradient,
        shape_inputs=("fft_length",),
        on_host=True,
    )


for _rank in _NAMES:
    _complex(_rank, inverse=False)
    _complex(_rank, inverse=True)
    _of_reals(_rank)
    _to_reals(_rank)
