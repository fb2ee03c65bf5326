"""Samplers of classes, with TensorFlow's random numbers."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator

import numpy as np

from timberframe_core.ops.random.philox import Philox
from timberframe_core.plugin.host_ops import HostCall, host_op
from timberframe_core.shapes import format_shape

_RESERVED = 2048 // 4  # blocks of random numbers that a class takes of the stream, as TensorFlow reserves


class RandomWords:
    """The random numbers of one op in a session."""

    def __init__(self, seed: int, seed2: int) -> None:
        if not (seed or seed2):
            seed, seed2 = int.from_bytes(os.urandom(8)), int.from_bytes(os.urandom(8))
        self._philox = Philox.seeded(seed, seed2)
        self._lock = threading.Lock()

    def take(self, blocks: int) -> Philox:
        """The generator for one run, which takes as many blocks of four 32-bit numbers."""
        with self._lock:
            now = self._philox
            self._philox = now.skip(blocks)
        return now


def words(philox: Philox) -> Iterator[int]:
    """The 32-bit numbers of a generator."""
    while True:
        yield from philox.numbers(256).tolist()
        philox = philox.skip(64)


def _double(words: Iterator[int]) -> float:
    """A number in [0, 1) from two words: 52 bits, the upper ones first."""
    high, low = next(words), next(words)
    return ((high & 0xFFFFF) << 32 | low) / 2**52


def _log_uniform(most: int, words: Iterator[int]) -> Callable[[], int]:
    span = math.log1p(most)
    return lambda: (int(math.exp(_double(words) * span)) - 1) % most


def _uniform(most: int, words: Iterator[int]) -> Callable[[], int]:
    return lambda: _below(most, words)


def _below(most: int, words: Iterator[int]) -> int:
    """An integer below `most`, each equally probable: the least words, which would favour some, are left out."""
    if most & (most - 1) == 0:
        return _word(words) & (most - 1)
    least = (2**64 - 1) % most + 1
    while (x := _word(words)) < least:
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
