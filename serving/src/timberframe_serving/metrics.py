"""Counts and times, written in Prometheus' text form under TensorFlow Serving's names.

Names begin with a colon, and counters do not end in `_total`, since those of TensorFlow Serving are so: dashboards that
read these go on reading them.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence

Labels = tuple[str, ...]
_MOST_SERIES = 4096
"""The limit of one metric: further ones are counted together, so that nobody fills the memory with made-up labels."""


def _exponential(first: float, factor: float, count: int) -> tuple[float, ...]:
    return tuple(first * factor**i for i in range(count))


MICROSECONDS = _exponential(10.0, 1.8, 33)
SIZES = _exponential(1.0, 2.0, 17)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class Metric:
    """Numbers by the values of labels. name: with colons, as TensorFlow Serving's. kind: Prometheus' type."""

    def __init__(self, name: str, kind: str, help_text: str, labels: Sequence[str]) -> None:
        self.name, self.kind, self.help, self.labels = name, kind, help_text, tuple(labels)
        self._lock = threading.Lock()
        """The lock of the numbers: the event loop and the threads of models add to them."""

    def _known(self, labels: Labels, held: Mapping[Labels, object]) -> Labels:
        return labels if labels in held or len(held) < _MOST_SERIES else ("other",) * len(self.labels)

    def _named(self, labels: Labels, *further: str) -> str:
        parts = [f'{n}="{_escaped(v)}"' for n, v in zip(self.labels, labels, strict=True)] + list(further)
        return f"{{{','.join(parts)}}}" if parts else ""

    def lines(self) -> Iterable[str]:
        """Yields the metric's lines of text."""
        yield f"# HELP {self.name} {self.help}"
        yield f"# TYPE {self.name} {self.kind}"
        yield from self.samples()

    def samples(self) -> Iterable[str]:
        """Yields a line for each number."""
        raise NotImplementedError


class Counter(Metric):
    """Counts that only grow."""

    def __init__(self, name: str, help_text: str, labels: Sequence[str]) -> None:
        super().__init__(name, "counter", help_text, labels)
        self._counts: dict[Labels, float] = {}

    def add(self, *labels: str, amount: float = 1) -> None:
        """Adds to the count of these labels."""
        with self._lock:
            known = self._known(labels, self._counts)
            self._counts[known] = self._counts.get(known, 0) + amount

    def samples(self) -> Iterable[str]:
        with self._lock:
            held = list(self._counts.items())
        for labels, count in held:
            yield f"{self.name}{self._named(labels)} {count:.17g}"


class Gauge(Metric):
    """Values of the moment, asked for when they are written."""

    def __init__(
        self, name: str, help_text: str, labels: Sequence[str], read: Callable[[], Iterable[tuple[Labels, float]]]
    ) -> None:
        super().__init__(name, "gauge", help_text, labels)
        self._read = read

    def samples(self) -> Iterable[str]:
        for labels, value in self._read():
            yield f"{self.name}{self._named(labels)} {value:.17g}"


class Histogram(Metric):
    """Counts of values by the bounds that they are at or under."""

    def __init__(self, name: str, help_text: str, labels: Sequence[str], bounds: Sequence[float]) -> None:
        super().__init__(name, "histogram", help_text, labels)
        self._bounds = tuple(bounds)
        self._held: dict[Labels, list[float]] = {}
        """The count of each bucket, that above all of them, and the sum of the values."""

    def observe(self, value: float, *labels: str) -> None:
        """Adds a value."""
        at = bisect_left(self._bounds, value)
        with self._lock:
            counts = self._held.get(labels)
            if counts is None:
                known = self._known(labels, self._held)
                counts = self._held.setdefault(known, [0.0] * (len(self._bounds) + 2))
            counts[at] += 1
            counts[-1] += value

    def samples(self) -> Iterable[str]:
        with self._lock:
            held = [(labels, list(counts)) for labels, counts in self._held.items()]
        for labels, counts in held:
            passed = 0.0
            for bound, count in zip((*map("{:.6g}".format, self._bounds), "+Inf"), counts[:-1], strict=True):
                passed += count
                edge = self._named(labels, f'le="{bound}"')
                yield f"{self.name}_bucket{edge} {passed:.17g}"
            yield f"{self.name}_sum{self._named(labels)} {counts[-1]:.17g}"
            yield f"{self.name}_count{self._named(labels)} {passed:.17g}"


class Metrics:
    """All that a server counts."""

    def __init__(self) -> None:
        serving, saved = ":tensorflow:serving", ":tensorflow:cc:saved_model"
        self.requests = Counter(f"{serving}:request_count", "Requests by their result.", ("model_name", "status"))
        self.latency = Histogram(
            f"{serving}:request_latency",
            "Microseconds from a parsed request to its answer.",
            ("model_name", "API", "entrypoint"),
            MICROSECONDS,
        )
        self.runtime = Histogram(
            f"{serving}:runtime_latency",
            "Microseconds that the model ran.",
            ("model_name", "API", "runtime"),
            MICROSECONDS,
        )
        batches = f"{serving}:batching_session"
        self.queuing = Histogram(
            f"{batches}:queuing_latency", "Microseconds that requests waited.", ("model_name",), MICROSECONDS
        )
        self.batch_sizes = Histogram(f"{batches}:processed_batch_size", "Rows of a batch.", ("model_name",), SIZES)
        self.padding = Histogram(f"{batches}:padding_size", "Rows added to a batch.", ("model_name",), SIZES)
        self.loads = Counter(f"{saved}:load_attempt_count", "Loads of a version.", ("model_path", "status"))
        self.load_time = Histogram(f"{saved}:load_latency", "Microseconds of a load.", ("model_path",), MICROSECONDS)
        self.warmup_time = Histogram(
            f"{serving}:model_warmup_latency", "Microseconds of a warm-up.", ("model_path", "status"), MICROSECONDS
        )
        self.swaps = Counter(
            "timberframe_serving_swaps", "Changes of the versions that serve a model.", ("model_name",)
        )
        self.metrics: list[Metric] = [
            self.requests, self.latency, self.runtime, self.queuing, self.batch_sizes, self.padding, self.loads,
            self.load_time, self.warmup_time, self.swaps,
        ]  # fmt: skip

    def text(self) -> str:
        """Returns all of it in Prometheus' text form."""
        return "\n".join(line for metric in self.metrics for line in metric.lines()) + "\n"
