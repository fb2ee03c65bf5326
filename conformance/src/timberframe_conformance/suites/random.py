"""Random streams: the published numbers, and streams that go on over runs, shapes, fetches and iterations of loops.

The forward suite compares the first run of each op with its reference; here a second run and the distribution of the
numbers are checked. Seeds are fixed, so that a case passes always or never.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_conformance import drive
from timberframe_conformance.case import Case, CaseFailedError, Measured, Types
from timberframe_conformance.cases.trials import Trial, fits, samples_of
from timberframe_conformance.cases.weaknesses import weaknesses
from timberframe_conformance.cluster import output_shapes
from timberframe_conformance.suites.checks import same, tf
from timberframe_conformance.suites.distributions import DISTRIBUTIONS
from timberframe_conformance.suites.forward import supported
from timberframe_conformance.tolerance.compare import check
from timberframe_core.graph.apply import apply_op
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef, RandomDraw
from timberframe_ops.math.incomplete_gamma import gamma_sample_slope
from timberframe_ops.random.philox import Philox

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "random"
SEED, SEED2 = 20, 2**40 + 7
THREADS = (1, 2, 5)
MOST_TYPES = 4
COMMON = ("float32", "float64", "int32", "int64")
"""Dtypes that are tried before others."""
REFERENCE_SIZE = 2000
"""Most elements of an output that is compared with the reference, which is slow."""

VECTORS = (
    ((0, 0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((2**64 - 1, 2**64 - 1, 2**64 - 1), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x299F31D0A4093822, 0x85A308D3243F6A88, 0x0370734413198A2E),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
)
"""Key, lower and upper counter, and the block that they make: Random123's kat_vectors for philox4x32, 10 rounds."""

BITS = "StatelessRandomUniformFullIntV2"


def collect(target: Target, ops: Sequence[OpDef]) -> Iterator[Case]:
    """Cases of the stateful random ops, of their distributions, and of the published numbers."""
    by_name = {op.name: op for op in ops}
    if BITS in by_name and target.supports(by_name[BITS], (("dtype", "uint32"), ("Tshape", "int32"))) is None:
        for k in range(len(VECTORS)):
            yield Case(SUITE, BITS, (), f"vector{k}", functools.partial(_vector, k))
    for op in ops:
        if op.stream is not None:
            for types in _types(op, target):
                yield from _streams(target, op, types)
    if "RandomUniform" in by_name and target.supports(by_name["RandomUniform"], _UNIFORMS) is None:
        for name, build in _BODIES.items():
            yield Case(SUITE, "RandomUniform", _UNIFORMS, name, functools.partial(_body, build))
        yield Case(SUITE, "RandomUniform", _UNIFORMS, "unseeded", _unseeded)
    for name, types in _GAMMAS.items():
        if name in by_name and target.supports(by_name[name], types) is None:
            yield Case(SUITE, name, types, "gradient", functools.partial(_gamma_gradient, name, types))
    for d in DISTRIBUTIONS:
        if d.op in by_name and target.supports(by_name[d.op], d.types) is None:
            yield Case(SUITE, d.op, d.types, f"distribution-{d.name}", functools.partial(_distribution, d))


_UNIFORMS: Types = (("T", "int32"), ("dtype", "float32"))


def _case(trial: Trial, op: str, what: str, run: Callable[..., Measured | None]) -> Case:
    return Case(SUITE, op, trial.types, f"{what}-{trial.detail}", functools.partial(run, trial))


def _types(op: OpDef, target: Target) -> list[Types]:
    """Returns dtypes that the device supports, without those that only give the dtype of a
    shape; at most four of them.
    """
    groups, _ = supported(op, target)
    spelled = {a.type_attr for a in op.inputs if a.name in op.shape_inputs}
    found: dict[Types, Types] = {}
    for types in (t for group in groups.values() for t in group):
        found.setdefault(tuple(pair for pair in types if pair[0] not in spelled), types)
    ranked = sorted(found, key=lambda key: [COMMON.index(t) if t in COMMON else len(COMMON) for _, t in key])
    return [found[key] for key in ranked[:: -(-len(ranked) // MOST_TYPES) or 1]]


def _streams(target: Target, op: OpDef, types: Types) -> Iterator[Case]:
    """Cases in these dtypes: samples that end within a block and within a chunk of blocks, and the largest. Numbers
    that are all equal would not show that another stream was drawn from."""
    seeded = [s for s in samples_of(op) if any(s.attrs.get(name) for name in ("seed", "seed2"))]
    trials = [Trial(op, types, s, k) for k, s in enumerate(seeded) if fits(op, s, types)]
    trials.sort(key=_output_size)
    small = [t for t in trials if _output_size(t) <= REFERENCE_SIZE]
    fewest = min(len(weaknesses(t)) for t in small)
    small = [t for t in small if len(weaknesses(t)) == fewest]
    small = small[:: max(1, (len(small) - 1) // 2)]
    for trial in small:
        yield _case(trial, op.name, "continues", _continues)
    yield _case(small[-1], op.name, "restarts", _restarts)
    most = max(trials, key=lambda t: (-len(weaknesses(t)), _output_size(t)))
    yield _case(most, op.name, "threads", _threads)
    for option, values in target.device.attributes.variants.items():
        for value in values:
            run = functools.partial(_continues, variant=(option, value))
            yield _case(small[-1], op.name, f"variant-{value}", run)


def _output_size(trial: Trial) -> int:
    arrays = drive.flatten(trial.arrays(trial.op.name))
    return int(np.prod(output_shapes(trial.op, trial.attrs(arrays), arrays)[0][0], dtype=np.int64))


def _vector(k: int, target: Target) -> None:
    (key, low, high), numbers = VECTORS[k]
    graph = tf.Graph()
    with graph.as_default(), tf.device(target.spec):
        counter = np.array([low, high], np.uint64)
        bits = apply_op(BITS, [[4], np.array([key], np.uint64), counter, 1], {"dtype": tf.uint32})
    with target.session(graph) as session:
        same(session.run(bits), np.array(numbers, np.uint32), "the block")


def _build(trial: Trial, target: Target, **seeds: int) -> tuple[drive.Built, dict[str, Any], list[np.ndarray]]:
    arrays = trial.arrays(f"{SUITE}/{trial.op.name}/{trial.number}")
    attrs = {**trial.attrs(arrays), "seed": SEED, "seed2": SEED2, **seeds}
    return drive.build(trial.op, attrs, arrays, target.spec, known=False), attrs, drive.flatten(arrays)


def _at(op: OpDef, attrs: dict[str, Any], offset: int) -> OpDef:
    """Returns the op, its reference being what is drawn after this number of blocks."""
    draw: RandomDraw | None = op.stream
    assert draw is not None

    def reference(_: Any, *inputs: np.ndarray) -> Any:
        return draw.sample(attrs, Philox.seeded(attrs["seed"], attrs["seed2"]).skip(offset), *inputs)

    return dataclasses.replace(op, reference=reference)


def _continues(trial: Trial, target: Target, variant: tuple[str, str] | None = None) -> Measured | None:
    """Returns three runs by different fetches: each begins where the one before ended."""
    built, attrs, inputs = _build(trial, target)
    with built.graph.as_default(), tf.device(target.spec):
        also = [tf.identity(built.fetches[0]), *built.fetches]
    options = {target.device.type: dict([variant])} if variant else {}
    offset, measured = 0, None
    with target.session(built.graph, device_options=options) as session:
        for fetches in (built.fetches, also, built.fetches):
            got = session.run(fetches, built.feeds)[-1:]
            measured = check(_at(trial.op, attrs, offset), attrs, inputs, got, built.dtypes)
            assert trial.op.stream is not None
            offset += trial.op.stream.blocks(attrs, [x.shape for x in inputs], np.shape(got[0]))
    return measured


def _restarts(trial: Trial, target: Target) -> None:
    built, _, _ = _build(trial, target)
    runs = []
    for _ in range(2):
        with target.session(built.graph) as session:
            runs.append([session.run(built.fetches, built.feeds) for _ in range(2)])
    _equal_bits(runs[0], runs[1], "the second session's runs")


def _threads(trial: Trial, target: Target) -> None:
    built, _, _ = _build(trial, target)
    first = None
    for threads in THREADS:
        with target.session(built.graph, intra_op_parallelism_threads=threads) as session:
            got = [session.run(built.fetches, built.feeds) for _ in range(2)]
        first = first or got
        _equal_bits(first, got, f"two runs with {threads} threads")


def _equal_bits(first: Sequence[Any], got: Sequence[Any], what: str) -> None:
    for a, b in zip(first, got, strict=True):
        x, y = np.asarray(a[0]), np.asarray(b[0])
        if not (np.array_equal(x, y) if x.dtype == object else x.tobytes() == y.tobytes()):
            raise CaseFailedError(f"{what} differ from the first ones; every bit must be equal")


# Bodies


def _draw(size: Any, seed: int = SEED, seed2: int = SEED2) -> Any:
    return apply_op("RandomUniform", [size], {"dtype": tf.float32, "seed": seed, "seed2": seed2})


def _unseeded(target: Target) -> None:
    """Without seeds no two ops and no two sessions draw the same."""
    graph = tf.Graph()
    with graph.as_default(), tf.device(target.spec):
        drawn = [_draw([64], 0, 0) for _ in range(2)]
    found = []
    for _ in range(2):
        with target.session(graph) as session:
            found += [x.tobytes() for x in session.run(drawn)]
    if len(set(found)) < len(found):
        raise CaseFailedError("two ops, or two sessions, draw the same numbers from seeds 0 and 0; they must differ")


def _loop(iterations: Any) -> Any:
    """Returns a loop of fixed shapes."""

    def body(i: Any, rows: Any) -> Any:
        mask = tf.reshape(tf.cast(tf.equal(tf.range(3), i), tf.float32), [3, 1])
        return i + 1, rows + mask * tf.reshape(_draw([5]), [1, 5])

    return tf.while_loop(lambda i, rows: i < iterations, body, [tf.constant(0), tf.zeros([3, 5])])[1]


def _growing_loop(iterations: Any) -> Any:
    """Returns a loop whose shapes change."""
    return tf.while_loop(
        lambda i, rows: i < iterations,
        lambda i, rows: (i + 1, tf.concat([rows, tf.reshape(_draw([5]), [1, 5])], 0)),
        [tf.constant(0), tf.zeros([0, 5])],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 5])],
    )[1]


_BODIES: dict[str, Callable[[Any], Any]] = {"in-a-loop": _loop, "in-a-growing-loop": _growing_loop}


def _body(build: Callable[[Any], Any], target: Target) -> None:
    """Checks that each iteration of a loop draws the next numbers, and so does a second run."""
    graph = tf.Graph()
    with graph.as_default(), tf.device(target.spec):
        rows = build(tf.constant(3))
    op = registry.get("RandomUniform")
    assert op.stream is not None
    attrs = {"seed": SEED, "seed2": SEED2, "dtype": tf.float32}
    philox, sizes = Philox.seeded(SEED, SEED2), np.array([5], np.int32)
    with target.session(graph) as session:
        for run in range(2):
            streams = [philox.skip(op.stream.blocks(attrs, [(1,)], (5,)) * (3 * run + i)) for i in range(3)]
            wanted = np.stack([op.stream.sample(attrs, p, sizes) for p in streams])
            same(session.run(rows), wanted, f"what run {run + 1} draws in its iterations")


_GAMMAS: dict[str, Types] = {
    "RandomGamma": (("S", "int32"), ("T", "float64")),
    "StatelessRandomGammaV2": (("T", "int32"), ("Tseed", "int64"), ("dtype", "float64")),
}


def _gamma_gradient(name: str, types: Types, target: Target) -> None:
    """Checks that the gradient by alpha is that of the numbers drawn at an equal probability below them."""
    graph = tf.Graph()
    stateful = registry.get(name).stream is not None
    with graph.as_default(), tf.device(target.spec):
        alpha = tf.placeholder(tf.float64, [3])
        attrs = {n: tf.as_dtype(t) for n, t in types} | ({"seed": SEED, "seed2": SEED2} if stateful else {})
        inputs = [[40], alpha] if stateful else [[40, 3], np.array([SEED, SEED2]), alpha]
        drawn = apply_op(name, inputs, attrs)
        slope = tf.gradients(drawn, alpha)[0]
    with target.session(graph) as session:
        given = np.array([0.5, 1.0, 7.0])
        got, gradient = session.run([drawn, slope], {alpha: given})
    wanted = gamma_sample_slope(given, got).sum(0)
    # The slopes are positive; RandomGammaGrad's own accuracy is checked by the forward suite.
    if not np.all(np.abs(gradient - wanted) <= 1e-12 * wanted):
        raise CaseFailedError(f"the gradient is {gradient.tolist()}; for the numbers drawn it is {wanted.tolist()}")


def _distribution(distribution: Any, target: Target) -> Measured | None:
    graph = tf.Graph()
    with graph.as_default(), tf.device(target.spec):
        attrs = {name: tf.as_dtype(t) for name, t in distribution.types} | {"seed": SEED, "seed2": SEED2}
        drawn = apply_op(distribution.op, list(distribution.inputs), attrs)
    with target.session(graph) as session:
        wrong = distribution.wrong(np.asarray(session.run(drawn)))
    if wrong:
        raise CaseFailedError(wrong)
    return None
