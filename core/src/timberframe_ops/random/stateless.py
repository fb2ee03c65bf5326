"""Random ops whose numbers depend on their inputs alone: a pair of seeds, or the key and counter made of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from timberframe_core.ops.definition.accuracy import EXACT, Accuracy
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, MissingGradient
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import late_errors
from timberframe_core.shapes import Shape, StaticShape
from timberframe_ops.random import draws
from timberframe_ops.random.philox import Philox
from timberframe_ops.random.signatures import (
    NORMAL,
    REALS,
    SHAPES,
    matrix_shape,
    require_shape,
    shape_errors,
    shape_from_input,
    sizes_of,
)
from timberframe_ops.random.stateful import integers, multinomial_errors, multinomial_samples, shuffle_samples
from timberframe_ops.random.stateless_source import (
    OF_STATE,
    PHILOX,
    SEED_PAIRS,
    Source,
    define_stateless,
    of_seed,
    seed_args,
    state_args,
)


def _filled(name: str, source: Source, attrs: Sequence[str], fill: Callable[..., Any], doc: str, **rest: Any) -> None:
    """Defines an op that fills a shape: ``fill(philox, sizes, attrs)``."""
    shape_attr = next(a.split(":")[0] for a in attrs if a.startswith("T"))

    def shape(c: InferenceContext) -> list[Shape]:
        source.check(c)
        return [shape_from_input(c)]

    def samples() -> Iterable[Sample]:
        for k, sizes in enumerate(SHAPES):
            yield Sample([Arg(values=sizes, dtype=None if sizes else "int32"), *source.args(k)])

    def errors() -> Iterable[ErrorSample]:
        yield from shape_errors(*source.args())
        yield from source.errors(Arg(values=(2,)))

    define_stateless(
        name,
        inputs=[f"shape: {shape_attr}", *source.inputs],
        outputs=["output: dtype"],
        attrs=[*attrs, *source.attrs],
        doc=doc,
        shape=late_errors(shape),
        shape_inputs=("shape",),
        reference=lambda attrs, *inputs: fill(source.philox(inputs), sizes_of(inputs[0]), attrs["dtype"]),
        samples=samples,
        errors=errors,
        **rest,
    )


def _define_fills() -> None:
    reals, integers_ = f"dtype: {REALS} = DT_FLOAT", "dtype: {int32, int64, uint32, uint64} = DT_UINT64"
    fills: tuple[tuple[str, str, Callable[..., Any], Accuracy], ...] = (
        ("RandomUniform", "Uniform numbers in [0, 1)", draws.uniform, EXACT),
        ("RandomNormal", "Standard normal numbers", draws.normal, NORMAL),
        ("TruncatedNormal", "Standard normal numbers of magnitude below 2", draws.truncated_normal, NORMAL),
    )
    for source, suffix, shape_attr, by in (
        (of_seed(), "", "T: {int32, int64} = DT_INT32", "a pair of seeds"),
        (OF_STATE, "V2", "Tshape: {int32, int64} = DT_INT32", "a key and a counter"),
    ):
        for name, doc, fill, accuracy in fills:

            def of_dtype(philox: Philox, sizes: StaticShape, dtype: Any, fill: Callable[..., Any] = fill) -> Any:
                return fill(philox, sizes, dtype.name)

            _filled(
                f"Stateless{name}{suffix}", source, [reals, shape_attr], of_dtype, f"{doc}, by {by}.", accuracy=accuracy
            )
        full_source = of_seed("{int32, int64, uint32, uint64}") if not suffix else source
        _filled(
            f"StatelessRandomUniformFullInt{suffix}",
            full_source,
            [integers_, shape_attr],
            lambda philox, sizes, dtype: draws.full_range(philox, sizes, dtype.numpy),
            f"Integers with every bit random, by {by}.",
        )


_define_fills()


def _define_integers(name: str, source: Source, dtypes: str, shape_attr: str) -> None:
    first = 1 + len(source.inputs)

    def shape(c: InferenceContext) -> list[Shape]:
        source.check(c)
        require_shape(c, first, ())
        require_shape(c, first + 1, ())
        return [shape_from_input(c)]

    def samples() -> Iterable[Sample]:
        ranges = ((0, 10), (-7, 1_000_003), (5, 6), (0, 2**31 - 1), (-3, 0), (1, 100), (0, 3), (0, 7), (2, 4))
        for k, (sizes, (low, high)) in enumerate(zip(SHAPES, ranges, strict=True)):
            types = {"dtype": ("int32", "int64")} if low < 0 else {}
            yield Sample([Arg(values=sizes), *source.args(k), Arg(values=low), Arg(values=high)], types=types)
        yield Sample([Arg(values=(0,)), *source.args(), Arg(values=3), Arg(values=3)])

    def errors() -> Iterable[ErrorSample]:
        bounds, sizes, start = (Arg(values=0), Arg(values=3)), Arg(values=(2,)), source.args()
        yield from shape_errors(*start, *bounds)
        yield from source.errors(sizes, *bounds)
        yield ErrorSample([sizes, *start, Arg(values=(0,)), bounds[1]], r"minval has shape \(1,\); a scalar is")
        yield ErrorSample([sizes, *start, Arg(values=3), bounds[1]], r"minval 3 is not below maxval 3")

    define_stateless(
        name,
        inputs=[f"shape: {shape_attr.split(':')[0]}", *source.inputs, "minval: dtype", "maxval: dtype"],
        outputs=["output: dtype"],
        attrs=[f"dtype: {dtypes}", shape_attr, *source.attrs],
        doc="Uniform integers in [minval, maxval), by a remainder.",
        shape=late_errors(shape),
        shape_inputs=("shape",),
        reference=lambda attrs, *inputs: integers(source.philox(inputs), inputs[0], *source.rest(inputs)),
        samples=samples,
        errors=errors,
    )


_define_integers("StatelessRandomUniformInt", of_seed(), "{int32, int64}", "T: {int32, int64}")
_define_integers(
    "StatelessRandomUniformIntV2", OF_STATE, "{int32, int64, uint32, uint64}", "Tshape: {int32, int64} = DT_INT32"
)


@late_errors
def _multinomial_shape(c: InferenceContext) -> list[Shape]:
    require_shape(c, 2, (2,))
    return matrix_shape(c)


define_stateless(
    "StatelessMultinomial",
    inputs=["logits: T", "num_samples: int32", "seed: Tseed"],
    outputs=["output: output_dtype"],
    attrs=["T: realnumbertype", "Tseed: {int32, int64} = DT_INT64", "output_dtype: {int32, int64} = DT_INT64"],
    doc="Classes of each row of logits, with probabilities in proportion to exp(logits), by a pair of seeds.",
    shape=_multinomial_shape,
    shape_inputs=("num_samples",),
    reference=lambda attrs, logits, count, seed: draws.multinomial(Philox.stateless(seed), logits, int(count)).astype(
        attrs["output_dtype"].numpy
    ),
    samples=lambda: [Sample([*args, *seed_args(k)]) for k, args in enumerate(multinomial_samples())],
    errors=lambda: multinomial_errors(*seed_args()),
)


@late_errors
def _shuffle_shape(c: InferenceContext) -> list[Shape]:
    OF_STATE.check(c)
    return [c.shapes[0]]


def _shuffle(attrs: Attrs, value: np.ndarray, *state: np.ndarray) -> np.ndarray:
    philox = OF_STATE.philox(state, 0)
    if value.ndim == 0 or value.size <= 1:
        return value.copy()
    return np.asarray(value[draws.permutation(philox, len(value))])


define_stateless(
    "StatelessShuffle",
    gradient=MissingGradient("TensorFlow has none of random orders either"),
    inputs=["value: T", *OF_STATE.inputs],
    outputs=["output: T"],
    attrs=["T: type"],
    doc="The rows of a tensor in random order, by a key and a counter.",
    shape=_shuffle_shape,
    reference=_shuffle,
    samples=lambda: shuffle_samples(lambda k: (state_args(k), {})),
    errors=lambda: OF_STATE.errors(Arg((3,))),
)


def _key_counter(attrs: Attrs, seed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    philox = Philox.stateless(seed)
    return np.array([philox.key], np.uint64), np.array([philox.low, philox.high], np.uint64)


def _key_counter_shape(c: InferenceContext) -> list[Shape]:
    require_shape(c, 0, (2,))
    shapes: list[Shape] = [(1,), (2,), ()]
    return shapes[: len(c.op.outputs)]


def _key_counter_errors() -> Iterable[ErrorSample]:
    yield ErrorSample([Arg(values=(1, 2, 3))], r"seed has shape \(3,\); shape \(2,\) is required")


define_stateless(
    "StatelessRandomGetKeyCounter",
    inputs=["seed: Tseed"],
    outputs=["key: uint64", "counter: uint64"],
    attrs=["Tseed: {int32, int64} = DT_INT64"],
    doc="Key and counter of the stream that a pair of seeds means.",
    shape=_key_counter_shape,
    reference=_key_counter,
    samples=lambda: [Sample(seed_args(k)) for k in range(len(SEED_PAIRS))],
    errors=_key_counter_errors,
)

define_stateless(
    "StatelessRandomGetKeyCounterAlg",
    inputs=["seed: Tseed"],
    outputs=["key: uint64", "counter: uint64", "alg: int32"],
    attrs=["Tseed: {int32, int64} = DT_INT64"],
    doc="Key and counter of the stream that a pair of seeds means, and the number of the algorithm, Philox.",
    shape=_key_counter_shape,
    reference=lambda attrs, seed: (*_key_counter(attrs, seed), np.array(PHILOX, np.int32)),
    samples=lambda: [Sample(seed_args(k)) for k in range(len(SEED_PAIRS))],
    errors=_key_counter_errors,
)

define_stateless(
    "StatelessRandomGetAlg",
    outputs=["alg: int32"],
    doc="The number of the device's algorithm for stateless random ops: 1, Philox.",
    shape=lambda c: [()],
    stateful=True,
    reference=lambda attrs: np.array(PHILOX, np.int32),
    samples=lambda: [Sample([])],
)
