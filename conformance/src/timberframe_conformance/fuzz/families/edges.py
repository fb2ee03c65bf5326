"""Edges of numbers: each op, and gradients of functions, at NaN, infinities, -0, subnormal numbers and limits."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import timberframe
from timberframe_conformance.case import Types
from timberframe_conformance.cases.shapes import elementwise_shapes
from timberframe_conformance.cases.trials import fits, input_dtype, samples_of
from timberframe_conformance.cases.types import combinations
from timberframe_conformance.cases.values import make_array, special_values
from timberframe_conformance.fuzz.families.family import Drawer, Family
from timberframe_conformance.fuzz.pool import is_small, takes_part
from timberframe_conformance.repro import value_source
from timberframe_core.dtypes import BY_NAME
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.accuracy import Bound, Residual
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.ops.definition.samples import Arg, Sample

DTYPES = frozenset({
    "float16", "float32", "float64", "complex64", "complex128", "int8", "int16", "int32", "int64", "uint8", "uint16",
    "uint32", "uint64", "bool", "string",
})  # fmt: skip
"""Dtypes that NumPy has, so that a program's text needs no other package."""

FUNCTIONS = (
    ("tf.pow({0}, {1})", 2), ("tf.nn.softplus({0})", 1), ("tf.math.xlogy({0}, {1})", 2), ("tf.math.xdivy({0}, {1})", 2),
    ("tf.math.divide_no_nan({0}, {1})", 2), ("tf.atan2({0}, {1})", 2), ("tf.sqrt({0})", 1), ("tf.math.rsqrt({0})", 1),
    ("tf.reduce_prod({0})", 1), ("tf.math.cumprod({0})", 1), ("tf.reduce_logsumexp({0})", 1), ("tf.sigmoid({0})", 1),
    ("tf.math.log_sigmoid({0})", 1), ("tf.tanh({0})", 1), ("tf.math.log1p({0})", 1), ("tf.expm1({0})", 1),
    ("tf.maximum({0}, {1})", 2), ("tf.minimum({0}, {1})", 2), ("tf.reduce_max({0})", 1), ("tf.reduce_min({0})", 1),
    ("tf.nn.relu({0})", 1), ("tf.nn.relu6({0})", 1), ("tf.nn.elu({0})", 1), ("tf.nn.selu({0})", 1), ("tf.abs({0})", 1),
    ("tf.clip_by_value({0}, -1.0, 1.0)", 1), ("tf.floormod({0}, {1})", 2), ("tf.truncatemod({0}, {1})", 2),
    ("tf.math.lgamma({0})", 1), ("tf.math.digamma({0})", 1), ("tf.math.erf({0})", 1), ("tf.math.erfc({0})", 1),
    ("tf.asin({0})", 1), ("tf.acos({0})", 1), ("tf.acosh({0})", 1), ("tf.atanh({0})", 1), ("tf.asinh({0})", 1),
    ("tf.math.squared_difference({0}, {1})", 2), ("tf.nn.softsign({0})", 1), ("tf.nn.softmax({0})", 1), ("tf.tan({0})", 1),
    ("tf.nn.log_softmax({0})", 1), ("tf.math.reciprocal({0})", 1), ("tf.log({0})", 1), ("tf.exp({0})", 1), ("tf.cosh({0})", 1),
    ("tf.math.segment_mean({0}, [0, 0, 2, 2])", 1), ("tf.math.segment_max({0}, [0, 0, 2, 2])", 1), ("tf.sinh({0})", 1),
    ("tf.math.unsorted_segment_mean({0}, [0, 3, 0, 3], 4)", 1), ("tf.math.unsorted_segment_prod({0}, [0, 3, 0, 3], 4)", 1),
    ("tf.math.unsorted_segment_sqrt_n({0}, [0, 3, 0, 3], 4)", 1), ("tf.math.segment_prod({0}, [0, 0, 2, 2])", 1),
    ("tf.nn.sigmoid_cross_entropy_with_logits(labels={0}, logits={1})", 2), ("tf.norm({0})", 1), ("tf.reduce_mean({0})", 1),
    ("tf.linalg.l2_normalize({0})", 1), ("tf.reduce_mean({0}[:0])", 1), ("tf.where({0} > 0.0, {1}, tf.zeros_like({0}))", 2),
    ("tf.pad({0}, [[1, 1]], 'REFLECT')", 1), ("tf.linspace({0}[0], {1}[0], 5)", 2), ("tf.cumsum({0})", 1), ("{0} / {1}", 2),
    ("tf.math.cumulative_logsumexp({0})", 1), ("tf.math.bessel_i0e({0})", 1), ("tf.math.bessel_i1e({0})", 1), ("{0} // {1}", 2),
    ("tf.math.igamma({0}, {1})", 2), ("tf.math.zeta({0}, {1})", 2), ("tf.math.ndtri({0})", 1), ("tf.round({0})", 1),
    ("tf.image.resize_bilinear(tf.reshape({0}, [1, 2, 2, 1]), [3, 3])", 1), ("tf.sign({0})", 1), ("tf.square({0})", 1),
    ("tf.image.resize_nearest_neighbor(tf.reshape({0}, [1, 2, 2, 1]), [3, 3])", 1), ("tf.math.top_k({0}, 2)[0]", 1),
    ("tf.image.resize_bicubic(tf.reshape({0}, [1, 2, 2, 1]), [3, 3])", 1), ("tf.nn.l2_loss({0})", 1), ("tf.sort({0})", 1),
    ("tf.image.resize_area(tf.reshape({0}, [1, 2, 2, 1]), [3, 3])", 1), ("tf.clip_by_norm({0}, 1.0)", 1), ("tf.sin({0})", 1),
    ("tf.nn.leaky_relu({0})", 1), ("tf.math.reduce_std({0})", 1), ("tf.math.reduce_euclidean_norm({0})", 1),
)  # fmt: skip
"""Functions of one or two vectors of four numbers, with their number of arguments; gradients of them are judged."""

UNDEFINED = frozenset({"Cast", "Bitcast"})
"""Ops without a result at limits, as numbers out of range have no integer; `tf.saturate_cast` has one."""

AROUND = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.0,
    -2.0,
    3.0,
    -3.0,
    10.0,
    -10.0,
    30.0,
    -30.0,
    80.0,
    -80.0,
    100.0,
    -100.0,
    1e4,
    -1e4,
    1e-8,
)
"""Numbers at which functions change what they do."""

LIMITS = (2.0**7, 2.0**8, 2.0**15, 2.0**16, 2.0**31, 2.0**32, 2.0**53, 2.0**63, 2.0**64)


def draw(d: Drawer) -> str:
    """Returns a program of one op at edges, or of the gradients of a function, or of a cast."""
    kind = d.whole(0, 9)
    if kind < 6:
        return _op(d)
    return _gradients(d) if kind < 9 else _cast(d)


def _op(d: Drawer) -> str:
    op, types = d.choose(_candidates())
    sample = d.choose(_samples(op, types))
    defaults = {n: a.default for n, a in op.attrs.items() if not a.required}
    elementwise = bool(elementwise_shapes(op, defaults))
    inputs = []
    for arg_def, arg in zip(op.inputs, sample.inputs, strict=True):
        made = [
            _array(d, input_dtype(arg_def, a, types), a, elementwise)
            for a in (arg if isinstance(arg, Sequence) else [arg])
        ]
        made = [f"tf.constant({x})" for x in made]
        inputs.append(f"[{', '.join(made)}]" if isinstance(arg, Sequence) else made[0])
    names = inspect.signature(getattr(timberframe.raw_ops, op.name)).parameters
    given = [f"{n}={x}" for n, x in zip(names, inputs, strict=False)]
    implied = {x for a in op.inputs for x in (a.type_attr, a.number_attr, a.type_list_attr)}
    attrs = {n: BY_NAME[t] for n, t in types if n not in implied} | {
        k: v for k, v in sample.attrs.items() if k not in implied
    }
    given += [f"{k}={value_source(v)}" for k, v in attrs.items()]
    return f"show('y', tf.raw_ops.{op.name}({', '.join(given)}))\n"


@functools.cache
def _candidates() -> list[tuple[OpDef, Types]]:
    found = []
    for op in registry.all_ops():
        if (
            not takes_part(op)
            or op.name in UNDEFINED
            or ">" in op.name
            or isinstance(op.accuracy, Residual | Bound)
            or op.function_attrs
            or any(a.kind == "tensor" for a in op.attrs.values())  # TensorFlow's raw ops want a TensorProto there
        ):
            continue
        for group in combinations(op).values():
            types = [t for t in group if all(v in DTYPES for _, v in t) and _samples(op, t)]
            found += [(op, t) for t in types]
    counts: dict[str, int] = {}
    for op, _ in found:
        counts[op.name] = counts.get(op.name, 0) + 1
    return [(op, t) for i, (op, t) in enumerate(found) if counts[op.name] <= 12 or i % 4 == 0]


def _samples(op: OpDef, types: Types) -> list[Sample]:
    return [s for s in samples_of(op) if is_small(s) and not s.implementation_defined and fits(op, s, types)]


def _array(d: Drawer, dtype: str, arg: Arg, elementwise: bool) -> str:
    plain = arg.values is not None or dtype in ("bool", "string")
    if not plain and elementwise and np.prod(arg.shape):
        return _source(_mostly_normal(d, _edges(d, dtype, arg.shape)))
    free = not plain and arg.low is None and np.dtype(BY_NAME[dtype].numpy).kind in "fc"
    spec = replace(arg, special=True) if free else arg
    made = make_array(spec, dtype, d.rng, special=not plain and d.chance(0.8), largest=elementwise)
    return _source(made if plain else _mostly_normal(d, made))


def _mostly_normal(d: Drawer, x: np.ndarray) -> np.ndarray:
    """Returns an array, mostly with zeros for its subnormal float32 and float64 numbers, which TensorFlow takes for 0."""
    is_complex = x.dtype.kind == "c"
    if not is_complex and d.chance(0.1):
        return x
    made = np.array(x)
    for part in (made.real, made.imag) if is_complex else (made,):
        if part.dtype in (np.float32, np.float64):
            part[np.abs(part) < np.finfo(part.dtype).tiny] = 0
    return made


def _edges(d: Drawer, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    numpy = BY_NAME[dtype].numpy
    size = int(np.prod(shape))
    with np.errstate(all="ignore"):
        choices = [*_special(d, dtype), *(AROUND if numpy.kind in "fc" else (0, 1, 2, 3, 7, 31, 63))]
        made = np.array([d.choose(choices) for _ in range(size)]).astype(numpy)
        if numpy.kind == "f" and d.chance(0.3):
            made = np.asarray(made * d.rng.uniform(0.5, 2.0, size).astype(numpy), numpy)
    return made.reshape(shape)


def _special(d: Drawer, dtype: str) -> list[Any]:
    """Returns special values; mostly without subnormal numbers, which TensorFlow takes for 0."""
    values = special_values(dtype)
    if dtype in ("float32", "float64") and not d.chance(0.1):
        normal = float(np.finfo(dtype).tiny)
        values = [v for v in values if not 0 < abs(v) < normal]
    return values


def _source(x: np.ndarray) -> str:
    """Returns an array as text, floats with all their digits."""
    if x.dtype.kind == "f":
        text = f"np.array({[float(v) for v in x.ravel()]}, np.{x.dtype.name})"
    elif x.dtype.kind == "c":
        parts = x.ravel().view(x.real.dtype)
        text = f"np.array({[float(v) for v in parts]}, np.{parts.dtype.name}).view(np.{x.dtype.name})"
    elif x.dtype == object:
        text = f"np.array({x.ravel().tolist()}, object)"
    else:
        text = f"np.array({x.ravel().tolist()}, np.{'bool_' if x.dtype.kind == 'b' else x.dtype.name})"
    text = text.replace("-nan", "np.nan").replace("nan", "np.nan").replace("np.np.", "np.")
    text = text.replace("inf", "np.inf")
    return text if x.shape == (x.size,) else f"{text}.reshape({x.shape})"


def _gradients(d: Drawer) -> str:
    """Returns a program of first gradients, and sometimes those of their sum."""
    text, count = d.choose(FUNCTIONS)
    dtype = d.choose(["float32", "float64"])
    choices = [*AROUND, *(v for v in _special(d, dtype) if np.isfinite(v) or d.chance(0.2))]
    lines = [
        f"{n} = tf.constant({_source(np.array([d.choose(choices) for _ in range(4)], dtype))})" for n in "xy"[:count]
    ]
    names = ", ".join("xy"[:count])
    zero = "unconnected_gradients=tf.UnconnectedGradients.ZERO"
    inner = ["with tf.GradientTape() as tape:", f"    tape.watch([{names}])", f"    value = {text.format('x', 'y')}"]
    inner.append(f"gradients = tape.gradient(value, [{names}], {zero})")
    if not d.chance(0.35):
        return "\n".join([*lines, *inner, "show('value', value)", "show('gradients', gradients)"]) + "\n"
    outer = ["with tf.GradientTape() as outer:", f"    outer.watch([{names}])", *("    " + x for x in inner)]
    outer.append("    total = tf.add_n([tf.reduce_sum(g) for g in gradients])")
    outer.append(f"show('second', outer.gradient(total, [{names}], {zero}))")
    return "\n".join([*lines, *outer]) + "\n"


def _cast(d: Drawer) -> str:
    numbers = [t for t in DTYPES if t not in ("bool", "string", "complex64", "complex128")]
    source, target = d.choose(sorted(numbers)), d.choose(sorted(numbers))
    numpy = BY_NAME[source].numpy
    with np.errstate(all="ignore"):
        if numpy.kind == "f":
            near = [
                np.nextafter(numpy.type(s * x), numpy.type(e))
                for x in LIMITS
                for s in (1, -1)
                for e in (-np.inf, np.inf)
            ]
            choices = [*near, *(s * x for x in LIMITS for s in (1, -1)), *special_values(source), 0.5, -0.5]
        else:
            choices = special_values(source)
        x = np.array([d.choose(choices) for _ in range(6)]).astype(numpy)
    return f"show('y', tf.saturate_cast(tf.constant({_source(x)}), tf.{target}))\n"


FAMILY = Family(
    "edges",
    "edges of numbers: each op and dtype, and gradients, at NaN, infinities, -0, subnormal numbers, limits",
    draw,
    model="timberframe_conformance.fuzz.families.edges_model",
    elementwise=True,
    share={"float16": 2e-2, "float32": 1e-4, "float64": 1e-10, "complex64": 1e-4, "complex128": 1e-10},
)
