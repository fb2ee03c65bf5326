"""Conversions between dtypes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from timberframe_core.dtypes import BY_NAME, resource, string, variant
from timberframe_core.ops.base.math.binary import COMPLEX, FLOATS, INTEGERS, broadcast_errors, broadcast_samples
from timberframe_core.ops.definition.gradients import apply_op, broadcast_gradients, of_values
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, MissingGradient, define_op, is_known
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import UNARY_SHAPES, broadcast_all, unchanged
from timberframe_core.shapes import Shape, format_shape

_NUMBERS = tuple(
    name for name, t in BY_NAME.items() if name == t.name and not t.is_ref and t not in (string, resource, variant)
)
_KEPT_BITS = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}  # of the fraction


def _cast(attrs: Attrs, x: Any) -> Any:
    target = attrs["DstT"].numpy
    if x.dtype.kind == "c" and target.kind != "c":
        x = x.real
    source = attrs["SrcT"].name
    if attrs.get("Truncate") and source in ("float32", "float64") and target.name in FLOATS:
        x = x.astype(source)
        x = _truncate(x, _KEPT_BITS[source] - _KEPT_BITS[target.name])
    if target.name == "bfloat16" and x.dtype == np.float64:
        x = _round_to_odd(x)
    return x.astype(target)


def _truncate(x: Any, bits: int) -> Any:
    """x with the last bits of its fraction set to zero; NaN stays."""
    if bits <= 0:
        return x
    words = x.view(np.uint32 if x.dtype == np.float32 else np.uint64)
    return np.where(np.isnan(x), x, (words >> words.dtype.type(bits) << words.dtype.type(bits)).view(x.dtype))


def _round_to_odd(x: Any) -> Any:
    """float64 as float32 with the last bit set where inexact, so that rounding again gives what rounding once would.

    S. Boldo and G. Melquiond, Emulation of a FMA and correctly rounded sums (2008).
    """
    near = x.astype(np.float32)
    below = np.where(np.abs(near.astype(np.float64)) > np.abs(x), np.nextafter(near, np.float32(0)), near)
    odd = (below.view(np.uint32) | np.uint32(1)).view(np.float32)
    return np.where((near.astype(np.float64) == x) | ~np.isfinite(x), near, odd)


def _cast_value(c: InferenceContext) -> list[np.ndarray | None]:
    (x,) = c.values
    if x is None:
        return [None]
    if is_known(x):
        with np.errstate(all="ignore"):
            return [_cast(c.attrs, np.asarray(x, dtype=c.dtypes[0].numpy))]
    both_integer = c.dtypes[0].is_integer and c.attrs["DstT"].is_integer
    return [x if both_integer else None]


def _cast_samples() -> Iterator[Sample]:
    for shape in UNARY_SHAPES:
        yield Sample((Arg(shape=shape, low=0, high=100, special=False),))
    exact = (*FLOATS, *COMPLEX, "bool")
    yield Sample((Arg(shape=(131,)),), types={"DstT": exact})
    yield Sample((Arg(shape=(131,)),), types={"SrcT": ("bool", *INTEGERS)})
    large = (65_519, -65_520, 2_049, -100_003, 16_777_217, -33_554_433, 2**31 - 1, -(2**31))
    yield Sample((Arg(values=large),), types={"SrcT": ("int32", "int64"), "DstT": ("float32", "float64")})
    signed = ("int8", "int16", "int32", "int64")
    near_integers = (-2.5, -1.99, -1.0, -0.5, -0.0, 0.5, 0.99, 1.0, 1.5, 100.7, 127.0, -128.0)
    yield Sample((Arg(values=near_integers),), types={"SrcT": FLOATS, "DstT": (*signed, *FLOATS, "bool")})
    # Ties, carries into the exponent, subnormal results, overflow, and values that rounding twice gets wrong.
    ties = (
        1 + 2**-11,
        1 + 3 * 2**-11,
        1 + 2**-8,
        1 + 3 * 2**-8,
        65519.0,
        65520.0,
        2**-24,
        2**-25,
        3 * 2**-25,
        2**-14 - 2**-25,
    )
    yield Sample((Arg(values=ties),), types={"SrcT": ("float32", "float64"), "DstT": FLOATS})
    twice = (
        1 + 2**-11 + 2**-40,
        1 + 2**-8 + 2**-40,
        1 + 2**-11 - 2**-40,
        1e300,
        -1e-300,
        3.4028235677973366e38,
        np.nan,
    )
    yield Sample((Arg(values=twice),), types={"SrcT": ("float64",), "DstT": FLOATS})
    cut = (1.9999999, -1.9999999, 0.1, -1 / 3, np.nan, np.inf, -0.0, 1e-40, 65519.9, 1e-7)
    yield Sample((Arg(values=cut),), {"Truncate": True}, {"SrcT": ("float32", "float64"), "DstT": FLOATS})
    yield Sample((Arg(shape=(19,), low=0, high=9, special=False),), {"Truncate": True})
    yield Sample(
        (Arg(values=(np.nan, np.inf, -np.inf, 1e20, -1e20, -1.5, 300.7)),),
        types={"SrcT": FLOATS, "DstT": INTEGERS},
        implementation_defined="what a number outside the range of the integer dtype becomes is left to the device",
    )


def _cast_gradient(op: Any, grad: Any) -> list[Any]:
    """Back in the input's dtype; nothing flows through integers. Of complex numbers cast to real, the real part."""
    source, target = op.inputs[0].dtype.base_dtype, op.outputs[0].dtype.base_dtype
    smooth = all(t.is_floating or t.is_complex for t in (source, target))
    return [of_values(lambda g: apply_op("Cast", [g], {"DstT": source}), grad) if smooth else None]


define_op(
    "Cast",
    inputs=("x: SrcT",),
    outputs=("y: DstT",),
    attrs=("SrcT: type", "DstT: type", "Truncate: bool = false"),
    doc="x in another dtype: floats to integers towards zero, to narrower floats to nearest (ties to even) or, where "
    "Truncate is set, towards zero; integers modulo their size; complex ones lose the imaginary part; bool is x != 0.",
    shape=unchanged,
    reference=_cast,
    value=_cast_value,
    total_value=True,
    elementwise=True,
    defined_for=({"SrcT": _NUMBERS, "DstT": _NUMBERS}, {"SrcT": ("string",), "DstT": ("string",)}),
    samples=_cast_samples,
    gradient=_cast_gradient,
    gradient_takes_slices=True,
)


def _complex_reference(attrs: Attrs, real: Any, imag: Any) -> Any:
    real, imag = np.broadcast_arrays(real, imag)
    result = np.empty(real.shape, np.complex64 if real.dtype == np.float32 else np.complex128)
    result.real, result.imag = real, imag
    return result


def _complex_gradient(op: Any, grad: Any) -> list[Any]:
    parts = [apply_op(part, [grad], {"Tout": op.inputs[0].dtype}) for part in ("Real", "Imag")]
    return broadcast_gradients(op, *parts)


define_op(
    "Complex",
    inputs=("real: T", "imag: T"),
    outputs=("out: Tout",),
    attrs=("T: {float, double} = DT_FLOAT", "Tout: {complex64, complex128} = DT_COMPLEX64"),
    doc="The complex numbers with these real and imaginary parts, which broadcast.",
    shape=broadcast_all,
    reference=_complex_reference,
    elementwise=True,
    samples=lambda: (
        *_with_types(broadcast_samples(), "float32", "complex64"),
        *_with_types(broadcast_samples(), "float64", "complex128"),
    ),
    errors=broadcast_errors,
    gradient=_complex_gradient,
)


def _with_types(samples: Iterator[Sample], real: str, result: str) -> Iterator[Sample]:
    for sample in samples:
        yield Sample(sample.inputs, types={"T": (real,), "Tout": (result,)})


_BIT_TYPES = (
    "{bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, int8, int16, complex64, complex128, "
    "qint8, quint8, qint16, quint16, qint32}"
)


def _bitcast_shape(c: InferenceContext) -> list[Shape]:
    shape, source, target = c.shapes[0], c.dtypes[0].size, c.attrs["type"].size
    if shape is None or source == target:
        return [shape]
    if source > target:
        return [(*shape, source // target)]
    if not shape or shape[-1] not in (None, target // source):
        raise c.error(
            f"input of {c.dtypes[0].name} has shape {format_shape(shape)}; for {c.attrs['type'].name} "
            f"its last dimension must be {target // source}"
        )
    return [shape[:-1]]


def _bitcast(attrs: Attrs, x: Any) -> Any:
    source, target = np.dtype(attrs["T"].numpy), np.dtype(attrs["type"].numpy)
    x = np.ascontiguousarray(x.astype(source)).reshape(x.shape)
    if source.itemsize > target.itemsize:
        shape = (*x.shape, source.itemsize // target.itemsize)
    else:
        shape = x.shape if source.itemsize == target.itemsize else x.shape[:-1]
    return np.frombuffer(x.tobytes(), dtype=target).reshape(shape)


def _bitcast_samples() -> Iterator[Sample]:
    sizes = {1: ("uint8", "int8"), 2: ("float16", "bfloat16", "int16", "uint16"), 4: ("float32", "int32", "uint32"),
             8: ("float64", "int64", "uint64", "complex64"), 16: ("complex128",)}  # fmt: skip
    for source, names in sizes.items():
        for target, others in sizes.items():
            tail = (target // source,) if target > source else ()
            for lead in ((), (7,), (0,), (2, 3)):
                yield Sample((Arg(shape=lead + tail),), types={"T": names, "type": others})


define_op(
    "Bitcast",
    inputs=("input: T",),
    outputs=("output: type",),
    attrs=(f"T: {_BIT_TYPES}", f"type: {_BIT_TYPES}"),
    doc="The same bytes as another dtype. A narrower one adds a last dimension, a wider one takes it away.",
    shape=_bitcast_shape,
    reference=_bitcast,
    alias=((0, 0),),
    samples=_bitcast_samples,
    errors=lambda: (
        ErrorSample((Arg(shape=(2, 3)),), match="last dimension", types={"T": ("uint8",), "type": ("float32",)}),
        ErrorSample((Arg(shape=()),), match="last dimension", types={"T": ("uint8",), "type": ("float32",)}),
    ),
    gradient=MissingGradient("the bits of a number do not vary smoothly with it"),
)
