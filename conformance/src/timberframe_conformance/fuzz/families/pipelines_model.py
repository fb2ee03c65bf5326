"""A model of tf.data in plain Python: what a program of family `pipelines` calls. It draws no random numbers.

Datasets are functions that give a new iterator; elements are NumPy values, or tuples of them.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

int32, int64 = np.int32, np.int64


class NotModelledError(Exception):
    """The program draws random numbers, whose order TensorFlow alone defines."""


class InvalidArgumentError(Exception):
    """The program is refused by TensorFlow, too."""


def set_random_seed(seed: int) -> None:
    """Does nothing, as nothing is random."""


def device(name: str) -> Any:
    """Does nothing."""
    return contextlib.nullcontext()


def where(condition: Any, a: Any, b: Any) -> Any:
    return np.where(condition, a, b)


def maximum(a: Any, b: Any) -> Any:
    return np.maximum(a, b)


def reduce_sum(x: Any) -> Any:
    return np.sum(x)


def cast(x: Any, dtype: Any) -> Any:
    return np.asarray(x).astype(dtype)


def fill(shape: Any, x: Any) -> Any:
    return np.full([int(n) for n in shape], x)


def reshape(x: Any, shape: Any) -> Any:
    return np.reshape(x, shape)


class Dataset:
    """A dataset: a function that gives a new iterator of its elements."""

    def __init__(self, make: Callable[[], Iterator[Any]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[Any]:
        return self._make()

    def elements(self, limit: int) -> list[Any]:
        """Returns the first elements, with tuples as lists."""
        return [list(e) if isinstance(e, tuple) else np.asarray(e) for e in itertools.islice(self, limit)]

    @staticmethod
    def range(*ends: Any) -> Dataset:
        return Dataset(lambda: map(np.int64, range(*map(int, ends))))

    @staticmethod
    def from_tensors(x: Any) -> Dataset:
        return Dataset(lambda: iter([x]))

    @staticmethod
    def from_tensor_slices(x: Any) -> Dataset:
        return Dataset(lambda: iter(x))

    @staticmethod
    def zip(datasets: Any) -> Dataset:
        return Dataset(lambda: zip(*datasets, strict=False))

    def concatenate(self, other: Dataset) -> Dataset:
        return Dataset(lambda: itertools.chain(self, other))

    def map(self, f: Any, num_parallel_calls: Any = None) -> Dataset:
        return Dataset(lambda: (_called(f, e) for e in self))

    def filter(self, f: Any) -> Dataset:
        return Dataset(lambda: (e for e in self if _called(f, e)))

    def flat_map(self, f: Any) -> Dataset:
        return Dataset(lambda: (inner for e in self for inner in _called(f, e)))

    def unbatch(self) -> Dataset:
        return self.flat_map(lambda x: x)

    def take(self, count: int) -> Dataset:
        return Dataset(lambda: itertools.islice(self, None if count < 0 else count))

    def skip(self, count: int) -> Dataset:
        return Dataset(lambda: itertools.islice(self, count, None))

    def shard(self, count: int, index: int) -> Dataset:
        return Dataset(lambda: itertools.islice(self, index, None, count))

    def cache(self) -> Dataset:
        return self

    def prefetch(self, size: int) -> Dataset:
        return self

    def repeat(self, count: int = -1) -> Dataset:
        def forever() -> Iterator[Any]:
            for _ in itertools.count() if count < 0 else range(count):
                found = False
                for e in self:
                    found = True
                    yield e
                if not found:
                    return

        return Dataset(forever)

    def batch(self, size: int, drop_remainder: bool = False) -> Dataset:
        def batches() -> Iterator[Any]:
            for part in _chunks(self, size):
                if len(part) == size or not drop_remainder:
                    if len({np.shape(p) for p in part}) > 1:
                        raise InvalidArgumentError("elements of different shapes")
                    yield (
                        tuple(map(np.stack, zip(*part, strict=True))) if isinstance(part[0], tuple) else np.stack(part)
                    )

        return Dataset(batches)

    def padded_batch(
        self, size: int, padded_shapes: Any, padding_values: Any = None, drop_remainder: bool = False
    ) -> Dataset:
        filler = np.int64(0) if padding_values is None else padding_values

        def batches() -> Iterator[Any]:
            for part in _chunks(self, size):
                if len(part) < size and drop_remainder:
                    return
                length = padded_shapes[0] or max(len(p) for p in part)
                if any(len(p) > length for p in part):
                    raise InvalidArgumentError("an element is longer than padded_shapes")
                yield np.stack([np.concatenate([p, np.full(length - len(p), filler)]) for p in part])

        return Dataset(batches)

    def window(self, size: int, shift: int | None = None, stride: int = 1, drop_remainder: bool = False) -> Dataset:
        step = size if shift is None else shift

        def windows() -> Iterator[Any]:
            source, done = iter(self), False
            kept: list[Any] = []
            while True:
                while len(kept) < (size - 1) * stride + 1 and not done:
                    try:
                        kept.append(next(source))
                    except StopIteration:
                        done = True
                part = kept[: (size - 1) * stride + 1 : stride]
                if not part or (len(part) < size and drop_remainder):
                    return
                yield Dataset(lambda part=part: iter(part))  # type: ignore[misc]  # a default binds the loop's value
                lacking = step - len(kept)
                kept = kept[step:]
                for _ in range(max(0, lacking)):
                    if next(source, None) is None:
                        done = True

        return Dataset(windows)

    def interleave(self, f: Any, cycle_length: int, block_length: int = 1, num_parallel_calls: Any = None) -> Dataset:
        def merged() -> Iterator[Any]:
            source = iter(self)
            open_: list[Any] = [None] * cycle_length
            at, done = 0, False
            while True:
                if open_[at] is None and not done:
                    element = next(source, None)
                    done = element is None
                    open_[at] = None if done else iter(_called(f, element))
                if open_[at] is None:
                    if done and all(o is None for o in open_):
                        return
                else:
                    for _ in range(block_length):
                        inner = next(open_[at], None)
                        if inner is None:
                            open_[at] = None
                            break
                        yield inner
                at = (at + 1) % cycle_length

        return Dataset(merged)

    def apply(self, f: Any) -> Dataset:
        made: Dataset = f(self)
        return made

    def shuffle(self, *_: Any, **__: Any) -> Dataset:
        raise NotModelledError("shuffle")


def _called(f: Any, element: Any) -> Any:
    return f(*element) if isinstance(element, tuple) else f(element)


def _chunks(source: Any, size: int) -> Iterator[list[Any]]:
    elements = iter(source)
    while part := list(itertools.islice(elements, size)):
        yield part


class experimental:  # noqa: N801 - the name of TensorFlow's module
    """Transformations for `apply`, and functions that join datasets."""

    @staticmethod
    def scan(state: Any, f: Any) -> Any:
        def scanned(source: Dataset) -> Iterator[Any]:
            now = state
            for e in source:
                now, made = f(now, e)
                yield made

        return lambda d: Dataset(lambda: scanned(d))

    @staticmethod
    def take_while(f: Any) -> Any:
        return lambda d: Dataset(lambda: itertools.takewhile(lambda e: _called(f, e), d))

    @staticmethod
    def enumerate_dataset(start: int = 0) -> Any:
        return lambda d: Dataset(lambda: ((np.int64(i), e) for i, e in enumerate(d, start)))

    @staticmethod
    def group_by_window(key: Any, reduce: Any, size: int) -> Any:
        def groups(source: Dataset) -> Iterator[Any]:
            kept: dict[int, list[Any]] = {}
            for e in source:
                k = int(key(e))
                kept.setdefault(k, []).append(e)
                if len(kept[k]) == size:
                    yield from reduce(k, Dataset(lambda part=kept.pop(k): iter(part)))  # type: ignore[misc]  # as above
            for k in sorted(kept):
                yield from reduce(k, Dataset(lambda part=kept[k]: iter(part)))  # type: ignore[misc]  # as above

        return lambda d: Dataset(lambda: groups(d))

    @staticmethod
    def map_and_batch(f: Any, size: int, drop_remainder: bool = False) -> Any:
        return lambda d: d.map(f).batch(size, drop_remainder)

    @staticmethod
    def parallel_interleave(f: Any, cycle_length: int, block_length: int = 1, sloppy: bool = False) -> Any:
        return lambda d: d.interleave(f, cycle_length, block_length)

    @staticmethod
    def choose_from_datasets(datasets: Any, choice: Dataset) -> Dataset:
        def chosen() -> Iterator[Any]:
            sources = [iter(d) for d in datasets]
            for k in choice:
                element = next(sources[int(k)], None)
                if element is not None:
                    yield element

        return Dataset(chosen)

    @staticmethod
    def sample_from_datasets(*_: Any, **__: Any) -> Dataset:
        raise NotModelledError("sample_from_datasets")


class data:  # noqa: N801 - the name of TensorFlow's module
    """The module `tf.data`."""

    Dataset = Dataset
    experimental = experimental


class Graph:
    """Iterators of sessions are TensorFlow's; the model has none."""

    def __init__(self) -> None:
        raise NotModelledError("a session")
