"""The figures of a bench, as a table and as data."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from timberframe_conformance.bench.peaks import MEMORY_BYTES
from timberframe_conformance.reports.environment import environment

MATMUL_FLOPS = 2.0 * 1024**3


@dataclass
class Figures:
    """What was measured. times: fastest seconds by (name, side). cleared: variables that were removed for the run."""

    device: str
    cleared: dict[str, str]
    cores: int
    measurements: list[Any] = field(default_factory=list)
    times: dict[tuple[str, str], float] = field(default_factory=dict)
    copy_rate: float = 0.0
    memory_rate: float = 0.0
    multiply_add_rate: float | None = None
    planning: float | None = None
    planning_limit: float = 0.0
    missed: list[str] = field(default_factory=list)
    without: dict[str, str] = field(default_factory=dict)
    """Why the device cannot run what was not measured, by name."""
    host: bool = True
    """Whether the device computes where the peaks are measured."""
    given_peaks: tuple[float, float] | None = None
    """Operations and bytes a second that the device can do, where the caller says."""

    @property
    def best_product_rate(self) -> float:
        """The best rate of a matrix product by any side, in operations a second."""
        rates = [
            m.flops / t
            for m in self.measurements
            if m.name.startswith("matmul") and (t := self.times.get((m.name, m.side)))
        ]
        return max(rates, default=0.0)

    @property
    def peak(self) -> float:
        """Operations a second that can be done: those given, or of the multiply-add loop and products the most."""
        if self.given_peaks:
            return self.given_peaks[0]
        return max(self.multiply_add_rate or 0.0, self.best_product_rate)

    def roof(self, measurement: Any) -> float | None:
        """Least seconds that the work can take: the slower of arithmetic and memory traffic (the roofline).

        None where the device is not the host and nobody says what it can do.
        """
        if not measurement.nbytes or not (self.given_peaks or (self.host and self.copy_rate)):
            return None
        if self.given_peaks:
            return max(float(measurement.flops) / self.peak, float(measurement.nbytes) / self.given_peaks[1])
        arithmetic = measurement.flops / self.peak if self.peak else 0.0
        rate = self.copy_rate if measurement.nbytes <= MEMORY_BYTES else self.memory_rate
        return max(arithmetic, float(measurement.nbytes) / (rate or self.copy_rate))

    def to_dict(self) -> dict[str, Any]:
        """Returns the figures as JSON holds them; times in seconds, rates a second."""
        rows = [
            {
                "name": m.name,
                "side": m.side,
                "seconds": self.times[m.name, m.side] / m.per,
                "flops": m.flops,
                "bytes": m.nbytes,
            }
            for m in self.measurements
            if (m.name, m.side) in self.times
        ]
        return {
            "device": self.device, "environment": {**environment(), "cleared": self.cleared, "cores": self.cores},
            "peaks": {"multiply_add": self.multiply_add_rate, "matmul": self.best_product_rate, "copy": self.copy_rate,
                      "copy_memory": self.memory_rate, "given": self.given_peaks, "of_the_device": self.host},
            "planning_seconds": self.planning, "measurements": rows, "missed": self.missed,
            "without": self.without,
        }  # fmt: skip


def show(figures: Figures, console: Console, sides: list[str]) -> None:
    """Prints executor and kernel figures, ratios, how near each is to the roofline, and missed targets."""
    if figures.cleared:
        console.print(
            f"removed for this run: {', '.join(f'{k}={v}' for k, v in figures.cleared.items())}", highlight=False
        )
    for table in (_executor(figures), _kernels(figures, sides)):
        if table.row_count:
            console.print(table)
    for name, why in figures.without.items():
        console.print(f"[yellow]not measured[/] {escape(f'{name}: {why}')}", highlight=False)
    console.print(peaks_text(figures), highlight=False)
    for line in figures.missed:
        console.print(f"[red]target missed[/] {line}", highlight=False)


def peaks_text(figures: Figures) -> str:
    """Returns what the roofline is drawn from."""
    if figures.given_peaks:
        operations, transfers = figures.given_peaks
        return f"peaks as given: {operations / 1e9:.0f} GFLOP/s, {transfers / 1e9:.1f} GB/s"
    if not figures.host:
        return f"no roofline: what {figures.device} can do at best is not known; --peaks FLOPS,BYTES says it"
    fma, best = figures.multiply_add_rate, figures.best_product_rate
    return (
        f"peaks on {figures.cores} core(s): "
        + (f"multiply-add (one core) {fma / 1e9:.0f} GFLOP/s, " if fma else "no C compiler to measure multiply-adds, ")
        + (f"best matrix product {best / 1e9:.0f} GFLOP/s, " if best else "")
        + f"copy {figures.copy_rate / 1e9:.1f} GB/s in the caches, {figures.memory_rate / 1e9:.1f} GB/s in memory"
    )


def _executor(figures: Figures) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("executor", "time", "target"):
        table.add_column(name)
    rows = [
        (m.name, figures.times[m.name, m.side] / m.per, m.limit) for m in figures.measurements if m.limit is not None
    ]
    if figures.planning is not None:
        rows.append(("plan of 10,000 nodes", figures.planning, figures.planning_limit))
    for name, seconds, limit in rows:
        good = seconds <= limit
        shown = "" if math.isinf(limit) else duration(limit)
        table.add_row(name, f"[{'green' if good else 'red'}]{duration(seconds)}[/]", shown)
        if not good:
            figures.missed.append(f"{name}: {duration(seconds)}, at most {duration(limit)}")
    return table


def _kernels(figures: Figures, sides: list[str]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("kernel")
    for side in sides:
        table.add_column(side, justify="right")
    for peer in sides[1:]:
        table.add_column(f"x {peer}", justify="right")
    shown = [m for m in figures.measurements if m.side == "device" and m.limit is None]
    roofs = [figures.roof(m) for m in shown]
    if any(roofs):
        table.add_column("of roofline", justify="right")
    for m, roof in zip(shown, roofs, strict=True):
        own = figures.times[m.name, "device"]
        row = [m.name, *(duration(t) if (t := figures.times.get((m.name, s))) else "" for s in sides)]
        row += [f"{t / own:.2f}" if (t := figures.times.get((m.name, p))) else "" for p in sides[1:]]
        row += [f"{100 * roof / own:.0f}%" if roof else ""] * any(roofs)
        table.add_row(*row)
        _judge(figures, m, own)
    for name in figures.without:
        table.add_row(
            name, "no kernel", *(duration(t) if (t := figures.times.get((name, p))) else "" for p in sides[1:])
        )
    return table


def _judge(figures: Figures, m: Any, own: float) -> None:
    for peer, least in m.targets:
        ratio = _ratio(figures, m, own, peer)
        if ratio is not None and ratio < least:
            figures.missed.append(f"{m.name}: {ratio:.2f} of {peer}, at least {least}")
    if m.name == "matmul 1024" and m.flops / own < 0.85 * figures.peak and figures.cores == 1 and figures.host:
        figures.missed.append(f"{m.name}: {m.flops / own / figures.peak:.0%} of the peak, at least 85%")


def _ratio(figures: Figures, m: Any, own: float, peer: str) -> float | None:
    """Returns how many times as fast as the peer; None where it was not measured."""
    if peer == "copy":
        return float(m.nbytes) / own / figures.memory_rate
    if peer == "matmul":
        product = figures.times.get(("matmul 1024", "device"))
        return None if product is None else (m.flops / own) / (MATMUL_FLOPS / product)
    theirs = figures.times.get((m.name, peer))
    return None if theirs is None else theirs / own


def duration(seconds: float) -> str:
    """Returns seconds in the unit that reads best."""
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds * 1e9:.3g} ns"
