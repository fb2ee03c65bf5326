"""Ops that draw from a stream of the Session: each run goes on where the last one ended.

Attrs seed and seed2 start the stream; where both are 0 nobody knows where it starts. A reference gives the first run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, MissingGradient, RandomDraw, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import unchanged
from timberframe_core.shapes import Shape, StaticShape, format_shape
from timberframe_ops.random import draws, rejection_draws
from timberframe_ops.random.gamma_gradient import alpha_gradient
from timberframe_ops.random.philox import Philox
from timberframe_ops.random.signatures import (
    BOUNDED,
    GAMMA,
    NO_GRADIENT,
    NORMAL,
    REALS,
    SHAPES,
    matrix_shape,
    numbers_drawn,
    require_shape,
    shape_errors,
    shape_from_input,
    sizes_of,
)

_SEEDS = ("seed: int = 0", "seed2: int = 0")
_SEED_PAIRS = ((3, 5), (87654321, 0), (-1, 2**62), (0, 2**31 - 1))


def _seeded(k: int = 0) -> dict[str, Any]:
    return dict(zip(("seed", "seed2"), _SEED_PAIRS[k % len(_SEED_PAIRS)], strict=True))


def _define(name: str, draw: RandomDraw, attrs: Sequence[str], **rest: Any) -> None:
    """Defines a stateful random op whose reference is the first draw of the stream that its seeds start."""

    def first_draw(attrs: Attrs, *inputs: np.ndarray) -> Any:
        return draw.sample(attrs, Philox.seeded(attrs["seed"], attrs["seed2"]), *inputs)

    define_op(
        name,
        attrs=[*_SEEDS, *attrs],
        reference=first_draw,
        stream=draw,
        stateful=True,
        gradient=rest.pop("gradient", NO_GRADIENT),
        **rest,
    )


def _filled(name: str, doc: str, fill: Callable[..., Any], **rest: Any) -> None:
    """Defines an op that fills a shape."""

    def samples() -> Iterable[Sample]:
        for k, shape in enumerate(SHAPES):
            yield Sample([Arg(values=shape, dtype=None if shape else "int32")], _seeded(k))
        yield Sample([Arg(values=(5,))], implementation_defined="without seeds the stream starts anywhere")

    _define(
        name,
        RandomDraw(numbers_drawn, lambda attrs, philox, shape: fill(philox, sizes_of(shape), attrs["dtype"].name)),
        [f"dtype: {REALS}", "T: {int32, int64}"],
        inputs=["shape: T"],
        outputs=["output: dtype"],
        doc=f"{doc} seed and seed2: where the stream starts; both 0: anywhere.",
        shape=lambda c: [shape_from_input(c)],
        shape_inputs=("shape",),
        samples=samples,
        errors=shape_errors,
        **rest,
    )


_filled("RandomUniform", "Uniform numbers in [0, 1).", draws.uniform)
_filled("RandomStandardNormal", "Standard normal numbers.", draws.normal, accuracy=NORMAL)
_filled(
    "TruncatedNormal",
    "Standard normal numbers of magnitude below 2: larger ones are drawn again.",
    draws.truncated_normal,
    accuracy=NORMAL,
)


def _integer_shape(c: InferenceContext) -> list[Shape]:
    require_shape(c, 1, ())
    require_shape(c, 2, ())
    return [shape_from_input(c)]


def _integer_samples() -> Iterable[Sample]:
    ranges = (
        (0, 10),
        (-7, 1_000_003),
        (-(2**31), 2**31 - 1),
        (5, 6),
        (0, 2**31 - 1),
        (-3, 0),
        (0, 3),
        (0, 2),
        (1, 100),
    )
    for k, (shape, (low, high)) in enumerate(zip(SHAPES, ranges, strict=True)):
        yield Sample([Arg(values=shape), Arg(values=low), Arg(values=high)], _seeded(k))
    yield Sample([Arg(values=(33,)), Arg(values=-(2**63)), Arg(values=2**63 - 1)], _seeded(), {"Tout": ("int64",)})
    yield Sample([Arg(values=(0,)), Arg(values=3), Arg(values=3)], _seeded())


def _integer_errors() -> Iterable[ErrorSample]:
    yield from shape_errors(Arg(values=0), Arg(values=3))
    shape = Arg(values=(2,))
    yield ErrorSample([shape, Arg(values=(0,)), Arg(values=3)], r"minval has shape \(1,\); a scalar is required")
    yield ErrorSample([shape, Arg(values=0), Arg(values=(3,))], r"maxval has shape \(1,\); a scalar is required")
    yield ErrorSample([shape, Arg(values=3), Arg(values=3)], r"minval 3 is not below maxval 3")


EMPTY_RANGE = "minval {0} is not below maxval {1}; minval must be less than maxval"


def integers(philox: Philox, shape: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Returns integers in [low, high) of the shape that an input spells."""
    sizes = sizes_of(shape)
    if not math.prod(sizes):
        return np.empty(sizes, low.dtype)
    if low >= high:
        raise InvalidArgumentError(EMPTY_RANGE.format(low, high))
    return draws.uniform_int(philox, sizes, low, high)


_define(
    "RandomUniformInt",
    RandomDraw(numbers_drawn, lambda attrs, philox, *inputs: integers(philox, *inputs)),
    ["Tout: {int32, int64}", "T: {int32, int64}"],
    inputs=["shape: T", "minval: Tout", "maxval: Tout"],
    outputs=["output: Tout"],
    doc="Uniform integers in [minval, maxval), by a remainder: of wide ranges the lower ones come a little more often.",
    shape=_integer_shape,
    shape_inputs=("shape",),
    samples=_integer_samples,
    errors=_integer_errors,
)


def _shuffle(attrs: Attrs, philox: Philox, value: np.ndarray) -> np.ndarray:
    if value.ndim == 0 or value.size <= 1:
        return value.copy()
    return np.asarray(value[draws.permutation(philox, len(value))])


def _swaps_drawn(attrs: Attrs, shapes: Sequence[StaticShape], output: StaticShape) -> int:
    return (output[0] - 1 + 3) // 4 if output and math.prod(output) > 1 and output[0] > 1 else 0


def shuffle_samples(more: Callable[[int], tuple[Sequence[Arg], dict[str, Any]]]) -> Iterable[Sample]:
    """Yields what the ops that shuffle rows are tried with; `more` gives further inputs and attrs of the kth sample."""
    for k, shape in enumerate(((), (1,), (2,), (5, 0, 2), (301, 3), (1001,), (65_537,))):
        inputs, attrs = more(k)
        types = {"T": ("uint8", "float16", "int32", "float64", "complex128")} if max(shape, default=0) > 65_535 else {}
        yield Sample([Arg(shape), *inputs], attrs, types)


_define(
    "RandomShuffle",
    RandomDraw(_swaps_drawn, _shuffle),
    ["T: type"],
    inputs=["value: T"],
    outputs=["output: T"],
    doc="The rows of a tensor (its first dimension) in random order.",
    shape=unchanged,
    samples=lambda: shuffle_samples(lambda k: ((), _seeded(k))),
)


def _categories(attrs: Attrs, philox: Philox, logits: np.ndarray, count: np.ndarray) -> np.ndarray:
    return draws.multinomial(philox, logits, int(count)).astype(attrs["output_dtype"].numpy)


def _categories_drawn(attrs: Attrs, shapes: Sequence[StaticShape], output: StaticShape) -> int:
    rows, count = output
    return rows * ((count + 3) // 4 * 8) * 256


def multinomial_samples() -> Iterable[tuple[Arg, Arg]]:
    """Yields what the ops that draw categories are tried with."""
    for shape, count in (
        ((3, 7), 5),
        ((1, 1), 8),
        ((0, 4), 3),
        ((2, 5), 0),
        ((5, 131), 17),
        ((300, 3), 4),
        ((2, 10), 2049),
    ):
        yield Arg(shape, special=False), Arg(values=count)
    inf = math.inf
    yield Arg(values=((-inf, 0.0, -inf), (math.nan, 1.0, 1.0), (inf, 1.0, 2.0), (-inf, -inf, -inf))), Arg(values=6)


def multinomial_errors(*more: Arg) -> Iterable[ErrorSample]:
    """Wrong inputs of these ops, before the other inputs `more`."""
    yield ErrorSample([Arg((3,)), Arg(values=2), *more], r"input 0 has shape \(3,\); it must have rank 2")
    yield ErrorSample([Arg((3, 0)), Arg(values=2), *more], r"at least one class is required")
    yield ErrorSample([Arg((3, 2)), Arg(values=(2,)), *more], r"num_samples has shape \(1,\); a scalar is required")
    yield ErrorSample([Arg((3, 2)), Arg(values=-1), *more], r"num_samples is -1; it must be zero or more")


_define(
    "Multinomial",
    RandomDraw(_categories_drawn, _categories),
    ["T: realnumbertype", "output_dtype: {int32, int64} = DT_INT64"],
    inputs=["logits: T", "num_samples: int32"],
    outputs=["output: output_dtype"],
    doc="Classes of each row of logits, with probabilities in proportion to exp(logits); num_samples for each row.",
    shape=matrix_shape,
    shape_inputs=("num_samples",),
    samples=lambda: [Sample(args, _seeded(k)) for k, args in enumerate(multinomial_samples())],
    errors=multinomial_errors,
)


def _after_parameter(c: InferenceContext) -> list[Shape]:
    """[*shape, *parameter's shape]."""
    shape, parameter = shape_from_input(c), c.shapes[1]
    return [None if shape is None or parameter is None else (*shape, *parameter)]


def parameter_samples(low: float, high: float) -> Iterable[tuple[StaticShape, Arg]]:
    """Yields shapes of samples and the parameters that they are drawn for."""
    yield (), Arg((), low=low, high=high, special=False)
    yield (0,), Arg((3,), low=low, high=high, special=False)
    yield (3,), Arg((0,), low=low, high=high, special=False)
    yield (5,), Arg((2, 3), low=low, high=high, special=False)
    yield (5, 7), Arg((13,), low=low, high=high, special=False)


def _parameter_errors() -> Iterable[ErrorSample]:
    yield from shape_errors(Arg((3,), low=1, high=2))


def _define_parameterized(name: str, sample: Callable[..., Any], low: float, high: float, **rest: Any) -> None:
    def samples() -> Iterable[Sample]:
        for k, (shape, parameter) in enumerate(parameter_samples(low, high)):
            yield Sample([Arg(values=shape, dtype=None if shape else "int32"), parameter], _seeded(k))

    _define(
        name,
        RandomDraw(numbers_drawn, sample),
        shape=_after_parameter,
        shape_inputs=("shape",),
        samples=samples,
        errors=_parameter_errors,
        **rest,
    )


def after_parameter(drawn: np.ndarray, sizes: StaticShape, parameter: np.ndarray) -> np.ndarray:
    """Returns numbers of shape [samples, parameters] in the shape of the samples followed by that of the parameters."""
    return drawn.reshape((*sizes, *parameter.shape))


def to_output(drawn: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Counts in the output's dtype; what is no number becomes 0 in an integer."""
    return drawn.astype(dtype) if dtype.kind not in "iu" else np.nan_to_num(drawn, nan=0.0).astype(dtype)


def _gamma(attrs: Attrs, philox: Philox, shape: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    sizes = sizes_of(shape)
    return after_parameter(rejection_draws.gamma(philox, alpha, math.prod(sizes)), sizes, alpha)


def _poisson(attrs: Attrs, philox: Philox, shape: np.ndarray, rate: np.ndarray) -> np.ndarray:
    sizes = sizes_of(shape)
    drawn = after_parameter(rejection_draws.poisson(philox, rate, math.prod(sizes)), sizes, rate)
    return to_output(drawn, attrs["dtype"].numpy)


_define_parameterized(
    "RandomGamma",
    _gamma,
    0.1,
    9.0,
    attrs=["S: {int32, int64}", "T: {half, float, double}"],
    inputs=["shape: S", "alpha: T"],
    outputs=["output: T"],
    doc="Gamma numbers of rate 1, `shape` for each of the shape parameters alpha.",
    accuracy=GAMMA,
    gradient=alpha_gradient,
    gradient_notes=("of_distribution",),
)

_RATE = MissingGradient("TensorFlow has none by the rate either")

_define_parameterized(
    "RandomPoissonV2",
    _poisson,
    0.0,
    40.0,
    attrs=[
        "S: {int32, int64}",
        "R: {half, float, double, int32, int64} = DT_DOUBLE",
        "dtype: {half, float, double, int32, int64} = DT_INT64",
    ],
    inputs=["shape: S", "rate: R"],
    outputs=["output: dtype"],
    gradient=_RATE,
    doc="Poisson numbers, `shape` for each of the rates; an impossible rate gives NaN (0 in integers).",
)

_define_parameterized(
    "RandomPoisson",
    _poisson,
    0.0,
    40.0,
    attrs=["S: {int32, int64}", "dtype: {half, float, double}"],
    inputs=["shape: S", "rate: dtype"],
    outputs=["output: dtype"],
    gradient=_RATE,
    doc="RandomPoissonV2 in the dtype of the rates.",
)

PARAMETERS = ("means", "stdevs", "minvals", "maxvals")
BATCH = 100
"""Numbers that share a batch where all batches have the same parameters."""


def _bounded_shape(c: InferenceContext) -> list[Shape]:
    shape = shape_from_input(c)
    if shape == ():
        raise c.error("shape is (); it must have at least one size")
    for i in range(1, 5):
        given, name = c.shapes[i], c.op.inputs[i].name
        if given is None:
            continue
        if len(given) > 1:
            raise c.error(f"{name} has shape {format_shape(given)}; a scalar or a vector is required")
        rows = None if shape is None else shape[0]
        if given and given[0] not in (None, 1, rows) and rows is not None:
            raise c.error(f"{name} has shape {format_shape(given)}; length 1 or {rows}, shape's first, is required")
    return [shape]


def batch_size(parameters: Sequence[StaticShape], output: StaticShape) -> int:
    """Returns numbers in a batch: all of one row of the output, or a fixed count where all rows
    have the same parameters.
    """
    means, deviations, low, high = parameters
    same = means in ((), (1,)) and deviations in ((), (1,)) and low == () and high == ()
    return BATCH if same else math.prod(output[1:])


def _bounded(attrs: Attrs, philox: Philox, shape: np.ndarray, *parameters: np.ndarray) -> np.ndarray:
    sizes = sizes_of(shape)
    batch = max(1, batch_size([p.shape for p in parameters], sizes))
    found = rejection_draws.bounded_normal(philox, attrs["dtype"].numpy, math.prod(sizes), batch, parameters)
    return found.reshape(sizes)


def _bounded_drawn(attrs: Attrs, shapes: Sequence[StaticShape], output: StaticShape) -> int:
    size, batch = math.prod(output), batch_size(shapes[1:], output)
    batches = -(-size // batch) if batch == BATCH else output[0]
    return batches * 2 * rejection_draws.MAX_ITERATIONS * (batch + 3) // 4


def _bounded_samples() -> Iterable[Sample]:
    inf = math.inf
    bounds = (
        (0.0, 1.0, -2.0, 2.0), (1.0, 2.0, -1.0, 5.0), (0.0, 1.0, 1.0, 1.25), (0.0, 1.0, 3.0, 9.0),
        (0.0, 1.0, -9.0, -3.0), (0.0, 1.0, -inf, -3.0), (0.0, 1.0, -0.5, 0.5), (2.0, 0.5, 2.0, inf),
    )  # fmt: skip
    for k, parameters in enumerate(bounds):
        yield Sample([Arg(values=(3, 75)), *(Arg(values=p) for p in parameters)], _seeded(k))
    rows = ((0.0, 1.0, 2.0), (1.0, 2.0, 3.0), (-1.0, -1.0, 5.0), (1.0, 1.0, 6.0))
    yield Sample([Arg(values=(3, 50)), *(Arg(values=p) for p in rows)], _seeded())
    yield Sample([Arg(values=(0, 3)), *(Arg(values=p) for p in bounds[0])], _seeded())


def _bounded_errors() -> Iterable[ErrorSample]:
    good = [Arg(values=p) for p in (0.0, 1.0, -1.0, 1.0)]
    yield from shape_errors(*good)
    yield ErrorSample([Arg(values=(2, 2)), Arg(values=((0.0,),)), *good[1:]], r"a scalar or a vector is required")
    yield ErrorSample([Arg(values=(2, 2)), Arg(values=(0.0, 1.0, 2.0)), *good[1:]], r"length 1 or 2")
    for wrong in ((0.0, -1.0, -1.0, 1.0), (0.0, 1.0, 1.0, -1.0)):
        yield ErrorSample([Arg(values=(2, 2)), *(Arg(values=p) for p in wrong)], r"row 0 has a deviation or bounds")
    second = [Arg(values=p) for p in ((0.0, 0.0), (1.0, -1.0), (-1.0, -1.0), (1.0, 1.0))]
    yield ErrorSample([Arg(values=(2, 2)), *second], r"row 1 has a deviation or bounds")


_define(
    "ParameterizedTruncatedNormal",
    RandomDraw(_bounded_drawn, _bounded),
    [f"dtype: {REALS}", "T: {int32, int64}"],
    inputs=["shape: T", *(f"{name}: dtype" for name in PARAMETERS)],
    outputs=["output: dtype"],
    doc="Normal numbers between bounds; parameters are scalars, or vectors with an entry for each row of the output.",
    shape=_bounded_shape,
    shape_inputs=("shape",),
    accuracy=BOUNDED,
    samples=_bounded_samples,
    errors=_bounded_errors,
)
