"""`conformance bench --models --profile`: where the time of a network goes, by op and kernel, from traced runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from statistics import median
from typing import Any

from rich.console import Console

import timberframe as tf
from timberframe_conformance.bench import peaks
from timberframe_conformance.bench.models.report import aligned
from timberframe_conformance.bench.table import Figures, duration, peaks_text

RUNS = 9
"""Of each way, plain and traced. Each figure is the median over the runs."""
SHARE = 0.005
"""Of the time of a run: kernels that take less are shown as one line."""

Key = tuple[str, str]


@dataclass(frozen=True)
class Work:
    """What one kernel does in a run, for all nodes of one op.

    seconds: the sum of its events. nbytes, flops: as its events say, see timberframe_sdk.work_of. roof: the sum of the
    least times in which the machine can do what each event says; None where its peaks are not known.
    """

    op: str
    kernel: str
    nodes: int
    seconds: float
    nbytes: int
    flops: int
    roof: float | None


@dataclass(frozen=True)
class Profile:
    """A model's work, the longest first. seconds: of a run as users call it; traced: of one that goes node by node."""

    name: str
    batch: int
    kind: str
    seconds: float
    traced: float
    work: list[Work] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it; times in seconds."""
        return asdict(self)


@dataclass(frozen=True)
class _Event:
    """What `Figures.roof` asks of a measurement, of one event."""

    nbytes: int
    flops: int


def peaks_of(target: Any, threads: int, cleared: dict[str, str], given: tuple[float, float] | None = None) -> Figures:
    """Returns what the machine can do with so many threads, with the device's instruction
    set; or what the caller says.
    """
    figures = Figures(target.spec, cleared, threads, host=target.device.host_memory, given_peaks=given)
    if figures.host and given is None:
        figures.copy_rate = peaks.copy_rate(peaks.CACHED_BYTES, threads)
        figures.memory_rate = peaks.copy_rate(peaks.MEMORY_BYTES, threads)
        one = peaks.multiply_add_rate(target.device.attributes.details.get("isa", ""))
        figures.multiply_add_rate = one and one * threads
    return figures


def describe_peaks(figures: Figures) -> str:
    """Returns what the roofline is drawn from."""
    if figures.given_peaks or not figures.host:
        return peaks_text(figures)
    rate = figures.multiply_add_rate
    arithmetic = f"multiply-add {rate / 1e9:.0f} GFLOP/s" if rate else "no C compiler to measure multiply-adds"
    return (
        f"peaks on {figures.cores} thread(s): {arithmetic}, copy {figures.copy_rate / 1e9:.1f} GB/s in the caches, "
        f"{figures.memory_rate / 1e9:.1f} GB/s in memory"
    )


def profiled(name: str, batch: int, kind: str, call: Callable[..., Any], figures: Figures) -> Profile:
    """Runs `call` plainly and traced; it takes the options and metadata of `Session.run` by their names."""
    call()
    plain = [_seconds(call) for _ in range(RUNS)]
    traced, events = [], []
    for _ in range(RUNS):
        metadata = tf.RunMetadata()
        traced.append(_seconds(partial(call, options=tf.RunOptions(trace=True), run_metadata=metadata)))
        events.append(_by_kernel((metadata.trace or {}).get("traceEvents", ())))
    return Profile(name, batch, kind, median(plain), median(traced), _work(events, figures))


def _seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _by_kernel(events: Iterable[Mapping[str, Any]]) -> dict[Key, list[Mapping[str, Any]]]:
    """Returns the events of nodes, by op and kernel. What is prepared once for all runs is left out."""
    found: dict[Key, list[Mapping[str, Any]]] = {}
    for event in events:
        details = event.get("args", {})
        if "op" in details and event.get("cat") != "prepare":
            found.setdefault((details["op"], details.get("kernel", "")), []).append(event)
    return found


def _work(runs: list[dict[Key, list[Mapping[str, Any]]]], figures: Figures) -> list[Work]:
    made = []
    for (op, kernel), events in runs[0].items():
        seconds = median(sum(e["dur"] for e in run.get((op, kernel), ())) * 1e-6 for run in runs)
        done = [_Event(e["args"].get("bytes", 0), e["args"].get("flops", 0)) for e in events]
        roofs = [roof for event in done if (roof := figures.roof(event)) is not None]
        nbytes, flops = sum(e.nbytes for e in done), sum(e.flops for e in done)
        made.append(Work(op, kernel, len(events), seconds, nbytes, flops, sum(roofs) if roofs else None))
    return sorted(made, key=lambda w: -w.seconds)


def show(profile: Profile, console: Console) -> None:
    """Prints a table of the kernels that take a noticeable share of the time."""
    console.print(
        f"{profile.name}, batch {profile.batch}, {profile.kind}: {duration(profile.seconds)} a run; "
        f"traced {duration(profile.traced)}",
        highlight=False,
    )
    whole = sum(w.seconds for w in profile.work)
    shown = [w for w in profile.work if w.seconds >= SHARE * whole]
    lines = [_cells(w, whole) for w in shown]
    rest = whole - sum(w.seconds for w in shown)
    if rest > 0:
        nodes = sum(w.nodes for w in profile.work) - sum(w.nodes for w in shown)
        lines.append(["others", "", str(nodes), duration(rest), f"{rest / whole:.1%}", "", "", ""])
    header = ["op", "kernel", "nodes", "time", "share", "GFLOP/s", "GB/s", "of roofline"]
    console.print(aligned(header, lines, left=2), highlight=False, markup=False, soft_wrap=True)


def _cells(work: Work, whole: float) -> list[str]:
    seconds = work.seconds or float("inf")
    return [
        work.op, work.kernel.removeprefix("timberframe_"), str(work.nodes), duration(work.seconds),
        f"{work.seconds / whole:.1%}", f"{work.flops / seconds / 1e9:.1f}" if work.flops else "",
        f"{work.nbytes / seconds / 1e9:.1f}", f"{work.roof / seconds:.0%}" if work.roof else "",
    ]  # fmt: skip
