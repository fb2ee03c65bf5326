"""Stateless gamma, Poisson and binomial numbers; see `stateless`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from timberframe_core.ops.definition.opdef import Attrs, InferenceContext
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import broadcast_pair, late_errors
from timberframe_core.shapes import Shape, broadcast, format_shape
from timberframe_ops.random import rejection_draws
from timberframe_ops.random.gamma_gradient import alpha_gradient
from timberframe_ops.random.philox import Philox
from timberframe_ops.random.signatures import BOUNDED, GAMMA, ends_with, require_shape, shape_from_input, sizes_of
from timberframe_ops.random.stateful import to_output
from timberframe_ops.random.stateless_source import OF_STATE, Source, define_stateless, of_seed, seed_args


def _define_parameterized(
    name: str,
    source: Source,
    parameter: str,
    attrs: Sequence[str],
    shape_attr: str,
    draw: Any,
    high: float,
    **rest: Any,
) -> None:
    """Defines an op with one tensor of parameters, whose shape the output's ends with."""
    last = 1 + len(source.inputs)

    def shape(c: InferenceContext) -> list[Shape]:
        source.check(c)
        made = shape_from_input(c)
        ends_with(c, made, c.shapes[last], parameter.split(":")[0])
        return [made]

    def reference(attrs: Attrs, *inputs: np.ndarray) -> np.ndarray:
        sizes, given = sizes_of(inputs[0]), inputs[last]
        samples = math.prod(sizes[: len(sizes) - given.ndim])
        return to_output(draw(source.philox(inputs), given, samples).reshape(sizes), attrs["dtype"].numpy)

    def samples() -> Iterable[Sample]:
        for k, (sizes, tail) in enumerate((((), ()), ((3, 0), (0,)), ((5, 2, 3), (2, 3)), ((5, 7, 13), (13,)))):
            given = Arg(tail, low=0.1, high=high, special=False)
            yield Sample([Arg(values=sizes, dtype=None if sizes else "int32"), *source.args(k), given])

    def errors() -> Iterable[ErrorSample]:
        given = Arg((3,), low=1, high=2)
        yield from source.errors(Arg(values=(2, 3)), given)
        yield ErrorSample([Arg(values=(3, 5)), *source.args(), given], r"shape is \(3, 5\); it must end with \(3,\)")

    define_stateless(
        name,
        inputs=[f"shape: {shape_attr}", *source.inputs, parameter],
        outputs=["output: dtype"],
        attrs=[*attrs, *source.attrs],
        shape=late_errors(shape),
        shape_inputs=("shape",),
        reference=reference,
        samples=samples,
        errors=errors,
        **rest,
    )


def _define_gammas() -> None:
    dtypes = "dtype: {half, float, double}"
    for name, source, attr, default in (
        ("StatelessRandomGammaV2", of_seed(), "T", ""),
        ("StatelessRandomGammaV3", OF_STATE, "shape_dtype", " = DT_INT32"),
    ):
        attrs = [dtypes, f"{attr}: {{int32, int64}}{default}"]
        doc = "Gamma numbers of rate 1 and the shape parameters alpha, in a shape that ends with alpha's."
        _define_parameterized(
            name,
            source,
            "alpha: dtype",
            attrs,
            attr,
            rejection_draws.gamma,
            9.0,
            accuracy=GAMMA,
            gradient=alpha_gradient,
            gradient_notes=("of_distribution",),
            doc=doc,
        )


_define_gammas()
_define_parameterized(
    "StatelessRandomPoisson",
    of_seed(),
    "lam: Rtype",
    [
        "Rtype: {half, float, double, int32, int64}",
        "dtype: {half, float, double, int32, int64}",
        "T: {int32, int64}",
    ],
    "T",
    rejection_draws.poisson,
    40.0,
    doc="Poisson numbers of the rates lam, in a shape that ends with theirs; an impossible rate gives NaN or 0.",
)


@late_errors
def _binomial_shape(c: InferenceContext) -> list[Shape]:
    require_shape(c, 1, (2,))
    made = shape_from_input(c)
    try:
        pairs = broadcast(c.shapes[2], c.shapes[3])
    except ValueError:
        raise c.error(
            f"counts and probs have shapes {format_shape(c.shapes[2])} and {format_shape(c.shapes[3])}; "
            "they must broadcast"
        ) from None
    ends_with(c, made, pairs, "counts and probs")
    return [made]


def _binomial(attrs: Attrs, shape: np.ndarray, seed: np.ndarray, counts: np.ndarray, probs: np.ndarray) -> np.ndarray:
    sizes, real = sizes_of(shape), attrs["T"].numpy
    pairs = np.broadcast_arrays(counts.astype(real), probs.astype(real))
    samples = math.prod(sizes[: len(sizes) - pairs[0].ndim])
    drawn = rejection_draws.binomial(Philox.stateless(seed), pairs[0].reshape(-1), pairs[1].reshape(-1), samples)
    return to_output(drawn.reshape(sizes), attrs["dtype"].numpy)


def _binomial_samples() -> Iterable[Sample]:
    counts = (3.0, 30.0, 1000.0, 20.0, 0.0, 5.0, 5.0)
    probs = (0.25, 0.75, 0.5, 0.5, 0.5, 0.0, 1.0)
    yield Sample([Arg(values=(9, 7)), *seed_args(), Arg(values=counts), Arg(values=probs)])
    yield Sample([Arg(values=(31, 2, 7)), *seed_args(1), Arg(values=counts), Arg(values=((0.125,), (0.75,)))])
    yield Sample([Arg(values=(), dtype="int32"), *seed_args(2), Arg(values=12.0), Arg(values=0.5)])
    yield Sample([Arg(values=(0, 7)), *seed_args(3), Arg(values=counts), Arg(values=0.5)])


def _binomial_errors() -> Iterable[ErrorSample]:
    two, three = Arg(values=(1.0, 2.0)), Arg(values=(0.5, 0.5, 0.5))
    yield ErrorSample([Arg(values=(3, 5)), *seed_args(), two, two], r"shape is \(3, 5\); it must end with \(2,\)")
    yield ErrorSample([Arg(values=(3, 3)), *seed_args(), two, three], r"shapes \(2,\) and \(3,\); they must broadcast")
    yield ErrorSample([Arg(values=(3, 2)), Arg(values=(1, 2, 3)), two, two], r"seed has shape \(3,\)")


define_stateless(
    "StatelessRandomBinomial",
    inputs=["shape: S", "seed: Tseed", "counts: T", "probs: T"],
    outputs=["output: dtype"],
    attrs=[
        "S: {int32, int64}",
        "Tseed: {int32, int64} = DT_INT64",
        "T: {half, float, double, int32, int64} = DT_DOUBLE",
        "dtype: {half, float, double, int32, int64} = DT_INT64",
    ],
    doc="Binomial numbers: successes among counts trials of probability probs, in a shape that ends with theirs.",
    shape=_binomial_shape,
    shape_inputs=("shape",),
    reference=_binomial,
    samples=_binomial_samples,
    errors=_binomial_errors,
)


def _bounded_shape(c: InferenceContext) -> list[Shape]:
    require_shape(c, 1, (2,))
    made = shape_from_input(c)
    tail: Shape = ()
    for i in range(2, 6):
        tail = broadcast_pair(c, tail, c.shapes[i])
    ends_with(c, made, tail, "the parameters")
    return [made]


def _bounded(attrs: Attrs, shape: np.ndarray, seed: np.ndarray, *parameters: np.ndarray) -> np.ndarray:
    """Draws integers: the numbers of one set of parameters come one after another from the
    sequence, then those of the next.
    """
    sizes, real = sizes_of(shape), attrs["dtype"].numpy
    given = [p.reshape(-1) for p in np.broadcast_arrays(*(p.astype(real) for p in parameters))]
    size = math.prod(sizes)
    samples = max(1, size // max(1, given[0].size))
    found = rejection_draws.bounded_normal(Philox.stateless(seed), real, size, samples, tuple(given))
    return found.reshape(size // samples, samples).T.reshape(sizes)


def _bounded_samples() -> Iterable[Sample]:
    rows = ((0.0, 1.0, 2.0), (1.0, 2.0, 3.0), (-1.0, -1.0, 5.0), (1.0, 1.0, 6.0))
    yield Sample([Arg(values=(50, 3)), *seed_args(), *(Arg(values=p) for p in rows)])
    yield Sample(
        [Arg(values=(7, 2, 3)), *seed_args(1), Arg(values=((0.0,), (1.0,))), *(Arg(values=p) for p in rows[1:])]
    )
    yield Sample([Arg(values=(65,)), *seed_args(2), *(Arg(values=p) for p in (0.0, 1.0, 1.0, 1.25))])
    yield Sample([Arg(values=(0, 3)), *seed_args(3), *(Arg(values=p) for p in rows)])


def _bounded_errors() -> Iterable[ErrorSample]:
    good = [Arg(values=p) for p in (0.0, 1.0, -1.0, 1.0)]
    yield ErrorSample(
        [Arg(values=(2, 2)), *seed_args(), Arg(values=(0.0, 1.0, 2.0)), *good[1:]], r"it must end with \(3,\)"
    )
    yield ErrorSample([Arg(values=(2, 2)), Arg(values=(1, 2, 3)), *good], r"seed has shape \(3,\)")
    wrong = [Arg(values=p) for p in (0.0, -1.0, -1.0, 1.0)]
    yield ErrorSample([Arg(values=(2, 2)), *seed_args(), *wrong], r"row 0 has a deviation or bounds")
    wrong[1] = Arg(values=(1.0, -1.0))
    yield ErrorSample([Arg(values=(2, 2)), *seed_args(), *wrong], r"row 1 has a deviation or bounds")


define_stateless(
    "StatelessParameterizedTruncatedNormal",
    inputs=["shape: S", "seed: Tseed", "means: dtype", "stddevs: dtype", "minvals: dtype", "maxvals: dtype"],
    outputs=["output: dtype"],
    attrs=["S: {int32, int64}", "Tseed: {int32, int64} = DT_INT64", "dtype: {half, float, double}"],
    doc="Normal numbers between bounds, in a shape that ends with that to which the parameters broadcast.",
    shape=_bounded_shape,
    shape_inputs=("shape",),
    reference=_bounded,
    accuracy=BOUNDED,
    samples=_bounded_samples,
    errors=_bounded_errors,
)
