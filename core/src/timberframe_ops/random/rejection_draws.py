"""Gamma, Poisson, binomial and truncated normal numbers by rejection, in NumPy; the streams are TensorFlow's.

Each output has a run of the stream to itself (but for the truncated normals), so that what one rejects moves no other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from timberframe_core.errors import InternalError, InvalidArgumentError
from timberframe_ops.random.draws import SAMPLES_PER_OUTPUT, box_muller, uniform_bits
from timberframe_ops.random.philox import Philox, to_float64

INVERSION_SAMPLES = 42
"""Blocks between the outputs of binomials with a mean below 10."""

_STIRLING_TAILS = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
    0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287,
)  # fmt: skip


class _Buffer:
    """Numbers that each lane has drawn and not used; they are used from the last to the first."""

    def __init__(self, lanes: Lanes, size: int, make: Callable[[np.ndarray], np.ndarray]) -> None:
        self.lanes = lanes
        self.make = make
        self.values = np.empty((len(lanes.position), size), np.float64)
        self.left = np.zeros(len(lanes.position), np.int64)

    def draw(self, lanes: np.ndarray) -> np.ndarray:
        """Returns the next number of each of these lanes."""
        empty = lanes[self.left[lanes] == 0]
        if len(empty):
            self.values[empty] = self.make(self.lanes.blocks(empty))
            self.left[empty] = self.values.shape[1]
        self.left[lanes] -= 1
        return np.asarray(self.values[lanes, self.left[lanes]])


class Lanes:
    """Generators at separate positions of one stream, which advance independently."""

    def __init__(self, philox: Philox, starts: np.ndarray) -> None:
        self.philox = philox
        self.position = starts.astype(np.uint64)

    def blocks(self, lanes: np.ndarray) -> np.ndarray:
        """Returns the next block of each of these lanes."""
        found = self.philox.blocks_at(self.position[lanes])
        self.position[lanes] += np.uint64(1)
        return found

    def uniforms(self) -> _Buffer:
        """Uniforms of float64."""
        return _Buffer(self, 2, to_float64)

    def normals(self) -> _Buffer:
        """Normals of float64."""
        return _Buffer(self, 2, lambda bits: box_muller(bits, double=True))


def _spread(philox: Philox, outputs: int, blocks: int = SAMPLES_PER_OUTPUT) -> Lanes:
    return Lanes(philox, np.arange(outputs, dtype=np.uint64) * np.uint64(blocks))


def gamma(philox: Philox, alpha: np.ndarray, samples: int) -> np.ndarray:
    """Gamma numbers of shape [samples, alphas] in float64 (G. Marsaglia, W. Tsang, ACM TOMS 26(3), 2000).

    For alpha below 1 it is Gamma(alpha + 1) times a uniform to the power 1 / alpha; for 1 an exponential.
    """
    a = np.repeat(alpha.reshape(-1).astype(np.float64), samples)
    lanes = _spread(philox, len(a))
    normals, uniforms = lanes.normals(), lanes.uniforms()
    out = np.empty(len(a))
    with np.errstate(all="ignore"):
        ones = np.flatnonzero(a == 1)
        out[ones] = -np.log1p(-uniforms.draw(ones))
        d = a + np.where(a < 1, 2.0 / 3, -1.0 / 3)
        c = 1.0 / 3 / np.sqrt(d)
        active = np.flatnonzero(a != 1)
        while len(active):
            x = normals.draw(active)
            v = 1 + c[active] * x
            positive = ~(v <= 0)
            tried, x, v = active[positive], x[positive], v[positive] ** 3
            u = uniforms.draw(tried)
            bound = 0.5 * x * x + d[tried] * (1 - v + np.log(v))
            accepted = (u < 1 - 0.0331 * (x * x) * (x * x)) | (np.log(u) < bound) | np.isnan(a[tried])
            done = tried[accepted]
            out[done] = d[done] * v[accepted]
            small = done[a[done] < 1]
            out[small] *= uniforms.draw(small) ** (1 / a[small])
            active = np.setdiff1d(active, done, assume_unique=True)
    return out.reshape(alpha.size, samples).T


def poisson(philox: Philox, rate: np.ndarray, samples: int) -> np.ndarray:
    """Poisson numbers of shape [samples, rates] in float64.

    Below a rate of 10 the number of uniforms whose product stays above exp(-rate) (Knuth); from 10 on transformed
    rejection (W. Hoermann, Insurance: Mathematics and Economics 12, 1993). NaN for an impossible rate.
    """
    r = np.repeat(rate.reshape(-1).astype(np.float64), samples)
    uniforms = _spread(philox, len(r)).uniforms()
    out = np.full(len(r), np.nan)
    with np.errstate(all="ignore"):
        low = np.flatnonzero((r >= 0) & (r < 10))
        limit = np.exp(-r)
        product = np.ones(len(r))
        out[low] = 0
        while len(low):
            product[low] *= uniforms.draw(low)
            low = low[product[low] > limit[low]]
            out[low] += 1
        _large_rates(np.flatnonzero((r >= 10) & np.isfinite(r)), r, uniforms, out)
    return out.reshape(rate.size, samples).T


def _large_rates(active: np.ndarray, rate: np.ndarray, uniforms: _Buffer, out: np.ndarray) -> None:
    log_rate = np.log(rate)
    b = 0.931 + 2.53 * np.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    while len(active):
        aa, bb, rr = a[active], b[active], rate[active]
        u = uniforms.draw(active) - 0.5
        v = uniforms.draw(active)
        shifted = 0.5 - np.abs(u)
        k = np.floor((2 * aa / shifted + bb) * u + rr + 0.43)
        inside = (shifted >= 0.07) & (v <= 0.9277 - 3.6224 / (bb - 2))
        outside = (k < 0) | ((shifted < 0.013) & (v > shifted))
        s = np.log(v * inverse_alpha[active] / (aa / (shifted * shifted) + bb))
        gammas = np.array([math.lgamma(x + 1) if 0 <= x < math.inf else math.inf for x in k.tolist()])
        accepted = inside | (~outside & (s <= -rr + k * log_rate[active] - gammas))
        out[active[accepted]] = k[accepted]
        active = active[~accepted]


def binomial(philox: Philox, counts: np.ndarray, probs: np.ndarray, samples: int) -> np.ndarray:
    """Binomial numbers of shape [samples, pairs] in float64; counts and probs are vectors of one dtype.

    Where the smaller of the two means is below 10, geometric gaps are summed; else transformed rejection (W. Hoermann,
    Journal of Statistical Computation and Simulation 46, 1993). NaN for a probability that is no number.
    """
    out = np.full(len(counts) * samples, np.nan)
    with np.errstate(all="ignore"):
        n = np.repeat(counts, samples)
        p = np.repeat(probs, samples)
        none, all_ = (n <= 0) | (p <= 0), p >= 1
        out[all_] = n[all_]
        out[none] = 0
        flipped = p > 0.5
        q = np.where(flipped, n.dtype.type(1) - p, p)
        open_ = ~(none | all_ | np.isnan(p))
        large = open_ & (n * q >= 10)
        n64, q64 = n.astype(np.float64), q.astype(np.float64)
        _transformed(np.flatnonzero(large), n64, q64, _spread(philox, len(n)).uniforms(), out)
        _inverted(np.flatnonzero(open_ & ~large), n64, q64, _spread(philox, len(n), INVERSION_SAMPLES).uniforms(), out)
        turned = open_ & flipped
        out[turned] = n64[turned] - out[turned]
    return out.reshape(len(counts), samples).T


def _inverted(active: np.ndarray, n: np.ndarray, p: np.ndarray, uniforms: _Buffer, out: np.ndarray) -> None:
    total = np.zeros(len(n))
    out[active] = 0
    while len(active):
        total[active] += np.ceil(np.log(uniforms.draw(active)) / np.log1p(-p[active]))
        active = active[~(total[active] > n[active])]
        out[active] += 1


def _tail(k: np.ndarray) -> np.ndarray:
    """Returns what Stirling's approximation of log k! leaves out."""
    small = np.array(_STIRLING_TAILS)[np.clip(k, 0, 9).astype(np.int64)]
    square = (k + 1) * (k + 1)
    return np.asarray(np.where(k <= 9, small, (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)))


def _transformed(active: np.ndarray, n: np.ndarray, p: np.ndarray, uniforms: _Buffer, out: np.ndarray) -> None:
    deviation = np.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    center, squeeze, odds = n * p + 0.5, 0.92 - 4.2 / b, p / (1 - p)
    alpha, mode = (2.83 + 5.1 / b) * deviation, np.floor((n + 1) * p)
    while len(active):
        aa, bb, nn, m, r = a[active], b[active], n[active], mode[active], odds[active]
        u = uniforms.draw(active)
        v = uniforms.draw(active)
        u = u - 0.5
        shifted = 0.5 - np.abs(u)
        k = np.floor((2 * aa / shifted + bb) * u + center[active])
        inside = (shifted >= 0.07) & (v <= squeeze[active])
        possible = ~((k < 0) | (k > nn))
        j = np.where(possible, k, 0)
        v = np.log(v * alpha[active] / (aa / (shifted * shifted) + bb))
        bound = (
            (m + 0.5) * np.log((m + 1) / (r * (nn - m + 1)))
            + (nn + 1) * np.log((nn - m + 1) / (nn - j + 1))
            + (j + 0.5) * np.log(r * (nn - j + 1) / (j + 1))
            + _tail(m) + _tail(nn - m) - _tail(j) - _tail(nn - j)
        )  # fmt: skip
        accepted = inside | (possible & (v <= bound))
        out[active[accepted]] = k[accepted]
        active = active[~accepted]


class _Sequence:
    """Blocks of a stream one after another, made many at a time."""

    def __init__(self, philox: Philox) -> None:
        self.philox = philox
        self.ready = np.empty((0, 4), np.uint32)
        self.taken = 0

    def next(self) -> np.ndarray:
        """Returns the next block."""
        if self.taken == len(self.ready):
            self.ready, self.taken = self.philox.blocks(64), 0
            self.philox = self.philox.skip(64)
        self.taken += 1
        return np.asarray(self.ready[self.taken - 1])


MAX_ITERATIONS = 1000
"""Candidates in a row that a bounded normal may reject before it gives up."""

INVALID_BOUNDS = (
    "row {0} has a deviation or bounds that no number suits; a positive deviation, minval below maxval and one of them "
    "finite are required"
)
NOTHING_ACCEPTED = f"row {{0}}: {MAX_ITERATIONS} numbers in a row lay outside of the bounds; wider ones are required"

NORMAL_PROPOSAL = 1.3
"""With a bound so many deviations from the mean on either side, normals are proposed and those outside rejected."""


def bounded_normal(
    philox: Philox, dtype: np.dtype[Any], size: int, batch: int, parameters: tuple[np.ndarray, ...]
) -> np.ndarray:
    """`size` normals in batches of `batch`, each with its (mean, deviation, lowest, highest).

    Proposals are normal, uniform or exponential, whichever is accepted most often (C. Robert, Statistics and Computing
    5, 1995). Batches take numbers one after another from one sequence.
    """
    out = np.empty(size, dtype)
    blocks = _Sequence(philox)
    with np.errstate(all="ignore"):
        for start in range(0, size, batch):
            mean, deviation, low, high = (dtype.type(p.reshape(-1)[start // batch % p.size]) for p in parameters)
            if not (deviation > 0 and low < high and (np.isfinite(low) or np.isfinite(high))):
                raise InvalidArgumentError(INVALID_BOUNDS.format(start // batch))
            if (np.isinf(low) and low < 0) or high < mean:
                low, high, deviation = high, low, -deviation
            part = out[start : start + batch]
            if not _standard_bounded((low - mean) / deviation, (high - mean) / deviation, part, blocks):
                raise InternalError(NOTHING_ACCEPTED.format(start // batch))
            part[:] = part * deviation + mean
    return out


def _standard_bounded(low: Any, high: Any, out: np.ndarray, blocks: _Sequence) -> bool:
    """Fills `out` with standard normals between two bounds, of which `low` is the finite one."""
    real = type(low)
    root = np.sqrt(low * low + real(4))
    cutoff = real(2) * np.exp(real(0.5) + (low * (low - root)) / real(4)) / (low + root)
    if (low < -real(NORMAL_PROPOSAL) and high >= 0) or (high > real(NORMAL_PROPOSAL) and low <= 0):
        candidates = _normal_candidates(low, high, blocks)
    elif high - low < cutoff:
        candidates = _uniform_candidates(low, high, blocks)
    else:
        candidates = _exponential_candidates(low, high, (low + root) / real(2), blocks)
    filled = rejected = 0
    while filled < len(out):
        for value, accepted in next(candidates):
            if accepted:
                out[filled] = value
                filled, rejected = filled + 1, 0
                if filled == len(out):
                    break
            else:
                rejected += 1
                if rejected >= MAX_ITERATIONS:
                    return False
    return True


def _uniforms(bits: np.ndarray, real: Any) -> np.ndarray:
    return uniform_bits(bits, np.dtype(real).name).astype(real)


def _normal_candidates(low: Any, high: Any, blocks: _Sequence) -> Any:
    real = type(low)
    while True:
        drawn = box_muller(blocks.next(), real is np.float64).astype(real)
        yield [(x, low <= x <= high) for x in drawn]


def _uniform_candidates(low: Any, high: Any, blocks: _Sequence) -> Any:
    real = type(low)
    factor = real(0) if low < 0 else low * low
    while True:
        z = _uniforms(blocks.next(), real) * (high - low) + low
        u = _uniforms(blocks.next(), real)
        yield list(zip(z, u <= np.exp((factor - z * z) / real(2)), strict=True))


def _exponential_candidates(low: Any, high: Any, alpha: Any, blocks: _Sequence) -> Any:
    real = type(low)
    while True:
        drawn = _uniforms(blocks.next(), real)
        z = -np.log(drawn[::2]) / alpha + low
        x = alpha - z if low < alpha else np.full_like(z, low - alpha)
        yield list(zip(z, (drawn[1::2] <= np.exp(-x * x / real(2))) & (z < high), strict=True))
