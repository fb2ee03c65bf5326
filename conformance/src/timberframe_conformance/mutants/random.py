"""Bugs in random streams and in what is made of their numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from timberframe_conformance.mutants.base import Call, mutant
from timberframe_core.ops.definition import registry
from timberframe_ops.random.draws import box_muller, full_range
from timberframe_ops.random.philox import Philox, to_float32
from timberframe_ops.random.signatures import sizes_of

REALS: dict[str, Sequence[str]] = {"dtype": ("float32", "float64")}
FLOAT32: dict[str, Sequence[str]] = {"dtype": ("float32",)}


def _philox(
    c: Call, advance: Callable[[int], int] = lambda blocks: blocks, seeds: tuple[str, str] = ("seed", "seed2")
) -> Philox:
    """Returns the generator of a launch, its stream moved on by `advance` of what the op reserves."""
    op, stream = registry.get(c.node.op), c.node.stream
    assert op.stream is not None
    assert stream is not None
    blocks = op.stream.blocks(c.attrs, [v.shape for v in c.node.inputs], c.node.outputs[0].shape)
    first = stream.reserve(advance(blocks))
    given = c.attrs[seeds[0]], c.attrs[seeds[1]]
    return Philox.seeded(*(given if any(given) else stream.seeds)).skip(first)


def _sample(c: Call, philox: Philox) -> Any:
    op = registry.get(c.node.op)
    assert op.stream is not None
    drawn = np.asarray(op.stream.sample(c.attrs, philox, *c.inputs))
    return drawn.astype(c.node.outputs[0].dtype)


@mutant("stream-stands", "RandomUniform", "every run draws the same numbers", REALS, suites=("random",))
def _(c: Call) -> Any:
    return _sample(c, _philox(c, lambda blocks: 0))


@mutant("stream-lags", "RandomStandardNormal", "a run reserves only what it uses", REALS, suites=("random",))
def _(c: Call) -> Any:
    return _sample(c, _philox(c, lambda blocks: blocks // 1024))


@mutant("shuffle-lags", "RandomShuffle", "a run reserves a block less", ("int32", "float32"), suites=("random",))
def _(c: Call) -> Any:
    return _sample(c, _philox(c, lambda blocks: max(0, blocks - 1)))


@mutant("seven-rounds", "RandomUniform", "the generator has 7 rounds", FLOAT32, suites=("forward", "random"))
def _(c: Call) -> Any:
    return _sample(c, dataclasses.replace(_philox(c), rounds=7))


@mutant("vector-rounds", "StatelessRandomUniformFullIntV2", "the generator has 9 rounds", suites=("forward", "random"))
def _(c: Call) -> Any:
    shape, key, counter, _ = c.inputs
    philox = dataclasses.replace(Philox.at(key, counter), rounds=9)
    return full_range(philox, sizes_of(shape), c.node.outputs[0].dtype)


@mutant("seeds-swapped", "TruncatedNormal", "seed and seed2 are swapped", REALS, suites=("forward", "random"))
def _(c: Call) -> Any:
    return _sample(c, _philox(c, seeds=("seed2", "seed")))


@mutant("counter-carry", "StatelessRandomUniformV2", "the counter's lower half does not carry into the upper", FLOAT32)
def _(c: Call) -> Any:
    shape, key, counter, _ = c.inputs
    count = int(np.prod(sizes_of(shape)))
    low = int(counter[0])
    blocks = [Philox(int(key[0]), (low + i) % 2**64, int(counter[1])).blocks(1)[0] for i in range(-(-count // 4))]
    bits = np.array(blocks, np.uint32).reshape(-1)[:count]
    return to_float32(bits).reshape(sizes_of(shape))


@mutant("seeds-unmixed", "StatelessRandomUniform", "the pair of seeds is the key", REALS)
def _(c: Call) -> Any:
    shape, seed = c.inputs
    first, second = (int(s) % 2**32 for s in seed)
    op = registry.get("RandomUniform")
    assert op.stream is not None
    return op.stream.sample(c.attrs, Philox(first | second << 32), shape)


@mutant("high-bits", "RandomUniform", "uniforms are made of the upper 23 bits", FLOAT32, suites=("forward",))
def _(c: Call) -> Any:
    count = c.node.outputs[0].size
    return to_float32(_philox(c).numbers(count) >> np.uint32(9)).reshape(c.node.outputs[0].shape)


@mutant("uniform-one", "RandomUniform", "uniforms lie in (0, 1]", FLOAT32, suites=("forward", "random"))
def _(c: Call) -> Any:
    return 1 - _sample(c, _philox(c))


@mutant("cosine-first", "RandomStandardNormal", "the cosine comes before the sine", FLOAT32)
def _(c: Call) -> Any:
    size = c.node.outputs[0].size
    pairs = box_muller(_philox(c).blocks(-(-size // 4)), double=False).reshape(-1, 2)[:, ::-1]
    return pairs.reshape(-1)[:size].astype(np.float32).reshape(c.node.outputs[0].shape)


@mutant("scaled-normal", "RandomStandardNormal", "the deviation is 1.05", REALS, suites=("forward", "random"))
def _(c: Call) -> Any:
    return _sample(c, _philox(c)) * np.float32(1.05)


@mutant(
    "clipped-normal",
    "TruncatedNormal",
    "normals beyond two deviations are clipped",
    FLOAT32,
    suites=("forward", "random"),
)
def _(c: Call) -> Any:
    size = c.node.outputs[0].size
    starts = np.arange(-(-size // 4), dtype=np.uint64) * np.uint64(256)
    drawn = box_muller(_philox(c).blocks_at(starts), double=False).reshape(-1)[:size]
    return np.clip(drawn, -2, 2).astype(np.float32).reshape(c.node.outputs[0].shape)


@mutant(
    "modulo-bias",
    "RandomUniformInt",
    "16 random bits are brought into the range",
    {"Tout": ("int32",)},
    suites=("forward", "random"),
)
def _(c: Call) -> Any:
    shape, low, high = c.inputs
    if int(low) >= int(high):
        return None if not c.node.outputs[0].size else c.true
    bits = full_range(_philox(c), sizes_of(shape), np.dtype(np.uint32)) & np.uint32(0xF)
    return (int(low) + bits.astype(np.int64) % (int(high) - int(low))).astype(np.int32)


@mutant("naive-shuffle", "RandomShuffle", "each element swaps with any other", ("int32",), suites=("forward", "random"))
def _(c: Call) -> Any:
    value = c.inputs[0]
    philox = _philox(c)
    if value.ndim == 0 or value.size <= 1 or len(value) < 2:
        return value
    order = np.arange(len(value))
    for i, step in enumerate((philox.numbers(len(value) - 1) % np.uint32(len(value))).tolist()):
        order[i], order[step] = order[step], order[i]
    return value[order]


@mutant(
    "flat-categories",
    "Multinomial",
    "the logits are taken for weights",
    {"T": ("float32",)},
    suites=("forward", "random"),
)
def _(c: Call) -> Any:
    logits, count = c.inputs
    weights = np.log1p(np.abs(np.where(np.isfinite(logits), logits, 0))).astype(np.float32)
    op = registry.get("Multinomial")
    assert op.stream is not None
    return op.stream.sample(c.attrs, _philox(c), weights, count)


@mutant(
    "poisson-rate",
    "RandomPoissonV2",
    "every other count is one too high",
    {"R": ("float64",)},
    suites=("random",),
)
def _(c: Call) -> Any:
    drawn = _sample(c, _philox(c))
    drawn.reshape(-1)[::2] += 1
    return drawn


@mutant(
    "gamma-boost",
    "RandomGamma",
    "alphas below 1 lack their power of a uniform",
    {"T": ("float64",)},
    suites=("forward", "random"),
)
def _(c: Call) -> Any:
    shape, alpha = c.inputs
    op = registry.get("RandomGamma")
    assert op.stream is not None
    return op.stream.sample(c.attrs, _philox(c), shape, np.where(alpha < 1, alpha + 1, alpha))
