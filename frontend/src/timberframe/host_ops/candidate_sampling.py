"""Samplers of classes, with TensorFlow's random numbers."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from timberframe_core.errors import NotFoundError
from timberframe_core.plugin.host_ops import HostCall, host_op
from timberframe_core.shapes import format_shape
from timberframe_ops.random.philox import Philox

_RESERVED = 2048 // 4  # blocks of random numbers that a class takes of the stream, as TensorFlow reserves


class RandomWords:
    """The random numbers of one op in a session."""

    def __init__(self, seed: int, seed2: int) -> None:
        if not (seed or seed2):
            seed, seed2 = int.from_bytes(os.urandom(8)), int.from_bytes(os.urandom(8))
        self._philox = Philox.seeded(seed, seed2)
        self._lock = threading.Lock()

    def take(self, blocks: int) -> Philox:
        """Returns the generator for one run, which takes as many blocks of four 32-bit numbers."""
        with self._lock:
            now = self._philox
            self._philox = now.skip(blocks)
        return now


def words(philox: Philox) -> Iterator[int]:
    """Yields the 32-bit numbers of a generator."""
    while True:
        yield from philox.numbers(256).tolist()
        philox = philox.skip(64)


def _double(words: Iterator[int]) -> float:
    """Returns a number in [0, 1) from two words: 52 bits, the upper ones first."""
    high, low = next(words), next(words)
    return ((high & 0xFFFFF) << 32 | low) / 2**52


def _log_uniform(most: int, words: Iterator[int]) -> Callable[[], int]:
    span = math.log1p(most)
    return lambda: (int(math.exp(_double(words) * span)) - 1) % most


def _uniform(most: int, words: Iterator[int]) -> Callable[[], int]:
    return lambda: _below(most, words)


def _below(most: int, words: Iterator[int], bits: int = 64) -> int:
    """Returns an integer below `most`, each equally probable: the least words, which would favour some, are left out.

    bits: of a word, 64 or 32.
    """
    word: Callable[[Iterator[int]], int] = _word if bits == 64 else next
    if most & (most - 1) == 0:
        return word(words) & (most - 1)
    least = (2**bits - 1) % most + 1
    while (x := word(words)) < least:
        pass
    return x % most


def _word(words: Iterator[int]) -> int:
    return next(words) | next(words) << 32


def _sample(
    call: HostCall, draw: Callable[[], int], probability: Callable[[np.ndarray], np.ndarray]
) -> list[np.ndarray]:
    true, count = call.inputs[0], call.attrs["num_sampled"]
    if true.ndim != 2 or true.shape[1] != call.attrs["num_true"]:
        raise call.error(
            f"true_classes has shape {format_shape(true.shape)}; "
            f"[batch, num_true = {call.attrs['num_true']}] is required"
        )
    drawn: list[int] = []
    tries, seen = 0, set()
    while len(drawn) < count:
        x = draw()
        tries += 1
        if call.attrs["unique"]:
            if x in seen:
                continue
            seen.add(x)
        drawn.append(x)
    sampled = np.array(drawn, np.int64)

    def expected(classes: np.ndarray) -> np.ndarray:
        p = probability(classes)
        found: np.ndarray = p * count if tries == count else -np.expm1(tries * np.log1p(-p))
        return found.astype(np.float32)

    return [sampled, expected(true), expected(sampled)]


def _stream(call: HostCall) -> Iterator[int]:
    made = call.resources.get_or_make(
        f"sampler {call.path}", lambda: RandomWords(call.attrs["seed"], call.attrs["seed2"])
    )
    return words(made.take(_RESERVED * call.attrs["num_sampled"]))


@host_op("LogUniformCandidateSampler")
def _log_uniform_sampler(call: HostCall) -> list[np.ndarray]:
    most = call.attrs["range_max"]
    span = math.log1p(most)
    return _sample(call, _log_uniform(most, _stream(call)), lambda k: np.log((k + 2.0) / (k + 1.0)) / span)


@host_op("UniformCandidateSampler")
def _uniform_sampler(call: HostCall) -> list[np.ndarray]:
    most = call.attrs["range_max"]
    return _sample(call, _uniform(most, _stream(call)), lambda k: np.full(k.shape, 1.0 / most))


class Unigrams:
    """Classes that are drawn in proportion to weights, by aliases (Vose 1991, in TensorFlow's order).

    A draw takes a class, each equally probable, and gives that one with its probability and its alias otherwise.
    """

    def __init__(self, weights: np.ndarray) -> None:
        count, total = len(weights), weights.sum(dtype=np.float64)
        self._part = (weights / total).astype(np.float32)  # in TensorFlow's precision, as what follows
        own = (weights * np.float32(count)).astype(np.float64) / total
        alias = np.arange(count)
        low, high = ([i for i in range(count) if (own[i] < 1) == below] for below in (True, False))
        while high and low:
            less, more = low.pop(), high.pop()
            alias[less] = more
            own[more] -= 1 - own[less]
            (low if own[more] < 1 else high).append(more)
        own[[*low, *high]] = 1  # but for roundings
        alias[[*low, *high]] = [*low, *high]
        self._own, self._alias = own.astype(np.float32), alias

    def draw(self, words: Iterator[int]) -> int:
        """Returns a class."""
        fraction = np.float32((next(words) & 0x7FFFFF) / 2**23)
        k = _below(len(self._own), words, 32)
        return k if fraction < self._own[k] else int(self._alias[k])

    def probability(self, classes: np.ndarray) -> np.ndarray:
        """That a draw gives these classes, 0 for others."""
        known = (classes >= 0) & (classes < len(self._part))
        return np.where(known, self._part[np.where(known, classes, 0)], 0.0).astype(np.float64)


def _weights(call: HostCall) -> np.ndarray:
    """Returns the weights that the attrs give, those of the shard alone."""
    attrs = call.attrs
    given = [float(w) for w in attrs["unigrams"]]
    if bool(given) == bool(attrs["vocab_file"]):
        what = "both vocab_file and unigrams are" if given else "neither vocab_file nor unigrams is"
        raise call.error(f"{what} given; one of them is required")
    if not given:
        given = [_last_number(call, line) for line in _lines(call) if line.strip()]
    if attrs["distortion"] != 1:
        given = [w ** attrs["distortion"] for w in given]
    every = np.array([0.0] * attrs["num_reserved_ids"] + given, np.float32)
    found: np.ndarray = every[attrs["shard"] :: attrs["num_shards"]]
    if len(found) != attrs["range_max"]:
        raise call.error(f"there are {len(found)} weights; range_max, {attrs['range_max']}, are required")
    if not (found >= 0).all() or not found.any():
        raise call.error(
            f"weights are from {found.min()} to {found.max()}; none may be negative, and some must be above 0"
        )
    return found


def _lines(call: HostCall) -> list[str]:
    path = call.attrs["vocab_file"]
    try:
        return Path(os.fsdecode(path)).read_text().splitlines()
    except OSError as e:
        raise call.error(f"vocab_file '{os.fsdecode(path)}' cannot be read: {e.strerror}", NotFoundError) from None


def _last_number(call: HostCall, line: str) -> float:
    try:
        return float(line.rpartition(",")[2])
    except ValueError:
        raise call.error(f"line {line!r} of vocab_file has no weight; `word,number` is required") from None


@host_op("FixedUnigramCandidateSampler")
def _fixed_unigram_sampler(call: HostCall) -> list[np.ndarray]:
    unigrams = call.resources.get_or_make(f"unigrams {call.path}", lambda: Unigrams(_weights(call)))
    stream = _stream(call)
    return _sample(call, lambda: unigrams.draw(stream), unigrams.probability)


@host_op("AllCandidateSampler")
def _all_sampler(call: HostCall) -> list[np.ndarray]:
    count = call.attrs["num_sampled"]
    expected = [np.ones(shape, np.float32) for shape in (call.inputs[0].shape, count)]
    return [np.arange(count), *expected]
