"""Draws an Explanation: a lane for each device, in it the clusters from top to bottom, in these the nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

from timberframe_core.drawing.frames import GAP, Frame, Frames, arrange
from timberframe_core.drawing.layered import Layout, layered

if TYPE_CHECKING:
    from timberframe_core.runtime.explain import Explanation, StageReport

MOST_NODES = 400
"""Of a plan with more, each stage is drawn as one node."""
ROW, NODE_HEIGHT, LETTER = 64.0, 36.0, 6.9
"""Between layers; of a node; of a letter at the size of the labels."""
PAD, HEAD = 14.0, 26.0
LONGEST = 26
COLOURS = (
    ("#0072b2", "#56b4e9"), ("#c44f00", "#f0883e"), ("#00805f", "#35c9a0"), ("#9c5188", "#e29bcb"),
    ("#8a6500", "#e6b422"), ("#5b6570", "#a9b3bd"), ("#5f4bb6", "#a99bf5"),
)  # fmt: skip
"""Of devices, on light and on dark ground; those of `page.css`."""
_STAGE = "\0"
"""After the number, in the name of a stage that is drawn as a node."""
_RULES = """.tf-plan{{background:{ground}}}.tf-plan text{{fill:{text};font:11px system-ui,sans-serif}}
.tf-plan .small{{fill:{muted}}}.tf-plan .lane{{font-size:14px;font-weight:600}}.tf-plan .node rect{{fill:{surface}}}
.tf-plan .edge{{stroke:{muted}}}.tf-plan .head{{fill:{muted}}}
.tf-plan .edge:hover,.tf-plan g:focus .edge{{stroke-width:3}}
.tf-plan .node:focus rect,.tf-plan .node:hover rect{{stroke-width:3}}
"""
LIGHT = {"ground": "#fbfbf9", "surface": "#ffffff", "text": "#1c2126", "muted": "#565e66"}
DARK = {"ground": "#14171a", "surface": "#1c2024", "text": "#e6e8ea", "muted": "#a4adb5"}


def _style(shade: Mapping[str, str], dark: int) -> str:
    devices = "".join(
        f".tf-plan .d{k} rect{{stroke:{pair[dark]}}}.tf-plan .b{k}{{stroke:{pair[dark]};fill:{pair[dark]}}}"
        for k, pair in enumerate(COLOURS)
    )
    return _RULES.format(**shade) + devices


LIGHT_STYLE, DARK_STYLE = _style(LIGHT, 0), _style(DARK, 1)
STYLE = f"{LIGHT_STYLE}@media (prefers-color-scheme:dark){{{DARK_STYLE}}}"


@dataclass
class _Box:
    """A stage as it is drawn. nodes: its own. received: what its nodes read of other stages, and their numbers."""

    stage: StageReport
    nodes: Sequence[str]
    received: Mapping[str, int]
    layout: Layout
    colour: int

    @property
    def width(self) -> float:
        return max(self.layout.width, LETTER * 24) + 2 * PAD

    @property
    def height(self) -> float:
        return self.layout.height + HEAD + PAD


def plan_svg(plan: Explanation, style: str = STYLE) -> str:
    """Returns the drawing as an SVG element, with its style; light or dark as the reader's system asks."""
    stages = [s for s in plan.stages if s.nodes]
    whole = sum(len(s.nodes) for s in stages) > MOST_NODES
    if whole:
        names = {n: f"{i}{_STAGE}{_ops_of(plan, s)}" for i, s in enumerate(stages) for n in s.nodes}
    else:
        names = {n: n for s in stages for n in s.nodes}
    edges = {(names.get(a, a), names[b]): what for a, b, what in plan.edges if names.get(a, a) != names[b]}
    homes = {names[n]: i for i, s in enumerate(stages) for n in s.nodes}
    shown = _hints(plan, names)
    devices = list(dict.fromkeys(s.device for s in stages))
    boxes = [
        _box(i, stage, names, edges, homes, shown, devices.index(stage.device) % len(COLOURS), whole)
        for i, stage in enumerate(stages)
    ]
    between: dict[tuple[int, int], list[str]] = {}
    for (a, b), what in edges.items():
        if a in homes and homes[a] != homes[b]:
            between.setdefault((homes[a], homes[b]), []).append(f"{_called(a)}: {what}")
    heads = [LETTER * 1.4 * len(device) for device in devices]
    lanes = [devices.index(box.stage.device) for box in boxes]
    placed = arrange([Frame(x.width, x.height, lane) for x, lane in zip(boxes, lanes, strict=True)], heads, between)
    parts = [_lane(device, middle) for device, middle in zip(devices, placed.lanes, strict=True)]
    for i, (box, corner) in enumerate(zip(boxes, placed.corners, strict=True)):
        parts += [_frame(i, box, corner), *_inside(box, corner, edges, shown)]
    parts += [_line(placed, pair, carried) for pair, carried in between.items()]
    title = escape(f"plan for {', '.join(plan.fetches)}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="tf-plan" viewBox="0 0 {placed.width:.0f} {placed.height:.0f}" '
        f'width="{placed.width:.0f}" height="{placed.height:.0f}" role="group" aria-label="{title}">\n'
        f"<style>{style}</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def _called(name: str) -> str:
    """Returns the name of a node, or what a stage that is drawn as one has."""
    return name.split(_STAGE)[-1]


def _ops_of(plan: Explanation, stage: StageReport) -> str:
    """Returns the ops of a stage by their numbers, the most frequent first."""
    ops = {p.node: p.op for p in plan.placements}
    counts = Counter(ops.get(n, "") for n in stage.nodes)
    return f"{len(stage.nodes)} nodes: " + ", ".join(f"{op} {n}" for op, n in counts.most_common(3))


def _box(
    number: int,
    stage: StageReport,
    names: Mapping[str, str],
    edges: Mapping[tuple[str, str], str],
    homes: Mapping[str, int],
    hints: Mapping[str, tuple[str, str, str]],
    colour: int,
    whole: bool,
) -> _Box:
    """Returns a stage with its nodes and above them what they read: what is fed or kept, and what other stages make.

    whole: the stage is one node, and what it receives is not drawn.
    """
    own = list(dict.fromkeys(names[n] for n in stage.nodes))
    members = set(own)
    read = dict.fromkeys(a for a, b in edges if b in members and a not in members)
    received = {a: homes[a] for a in read if a in homes}
    sources = [a for a in read if not (whole and a in received)]
    widths = {n: _width(_label(n, hints, received.get(n))) for n in [*sources, *own]}
    rank = {n: i for i, n in enumerate(widths)}
    inner = [(a, b) for a, b in edges if b in members and rank.get(a, len(rank)) < rank[b]]
    return _Box(stage, own, received, layered(widths, inner, ROW), colour)


def _hints(plan: Explanation, names: Mapping[str, str]) -> dict[str, tuple[str, str, str]]:
    """For each drawn node its op, what passes rewrote it, and what hovers over it."""
    passes: dict[str, list[str]] = {}
    for report in plan.passes:
        for n in report.rewritten:
            passes.setdefault(n, []).append(report.name)
    kernels = {k.node: k for k in plan.kernels}
    loops = {x.node: x for x in plan.loops}
    found: dict[str, tuple[str, str, str]] = {}
    for p in plan.placements:
        lines = [f"{p.op} '{p.node}'", f"on {p.device}: {p.reason}"]
        lines += [f"not {device}: {why}" for device, why in p.rejected]
        if (k := kernels.get(p.node)) is not None:
            lines.append(f"kernel: {k.kernel}" + (f" of plugin {k.plugin}" if k.plugin else ""))
            lines += [f"not {why}" for why in k.declined]
        if (x := loops.get(p.node)) is not None:
            lines.append(f"run by: {', '.join(filter(None, (x.driver, x.reason)))}")
        lines += [f"rewritten by pass {name}" for name in passes.get(p.node, ())]
        if names.get(p.node, p.node) == p.node:
            found[p.node] = p.op, ", ".join(passes.get(p.node, ())), "\n".join(lines)
    return found


def _label(name: str, hints: Mapping[str, tuple[str, str, str]], origin: int | None = None) -> tuple[str, str]:
    """Returns the two lines in a node: its op, and the end of its name; of a whole stage how many nodes of which ops.

    origin: the number of the frame that it comes from, in place of its op.
    """
    if _STAGE in name:
        first, _, second = name.split(_STAGE, 1)[1].partition(": ")
        return first, second
    op = hints[name][0] if name in hints else "input"
    op = op if origin is None else f"from {origin}"
    short = name if len(name) <= LONGEST else "..." + name[3 - LONGEST :]
    return op if len(op) <= LONGEST else op[: LONGEST - 3] + "...", short


def _width(label: tuple[str, str]) -> float:
    return max(56.0, LETTER * max(map(len, label))) + 14


def _lane(device: str, middle: float) -> str:
    return (
        f'<text class="lane" x="{middle:.1f}" y="{GAP:.0f}" text-anchor="middle" font-size="14">{escape(device)}</text>'
    )


def _frame(number: int, box: _Box, corner: tuple[float, float]) -> str:
    stage = box.stage
    memory = "" if stage.arena_bytes is None else f", {bytes_text(stage.arena_bytes + (stage.output_bytes or 0))}"
    title = f"{number}: {stage.kind}{memory}"
    hint = [title, f"{len(stage.nodes)} nodes on {stage.device}", *(f"receives {r}" for r in stage.receives)]
    if stage.arena_bytes is not None:
        hint.append(
            f"arena {stage.arena_bytes} bytes, workspace {stage.workspace_bytes}, constants {stage.persistent_bytes}, "
            f"outputs {stage.output_bytes}"
        )
    left, top = corner
    return (
        f"<g><title>{escape(chr(10).join(hint))}</title>"
        f'<rect class="b{box.colour}" x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" '
        f'height="{box.height:.1f}" rx="6" fill="{COLOURS[box.colour][0]}" fill-opacity="0.07" stroke-opacity="0.5"/>'
        f'<text x="{left + 10:.1f}" y="{top + 17:.1f}" font-size="11">{escape(title)}</text></g>'
    )


def _inside(
    box: _Box,
    corner: tuple[float, float],
    edges: Mapping[tuple[str, str], str],
    hints: Mapping[str, tuple[str, str, str]],
) -> Iterator[str]:
    """Yields the edges and the nodes of a frame."""
    left, top = corner[0] + (box.width - box.layout.width) / 2, corner[1] + HEAD
    centers = {n: (left + x, top + y) for n, (x, y) in box.layout.centers.items()}
    for (a, b), what in edges.items():
        if a in centers and b in centers and b not in box.received:
            between = [(left + x, top + y) for x, y in box.layout.routes.get((a, b), ())]
            (x0, y0), (x1, y1) = centers[a], centers[b]
            yield _edge(
                [(x0, y0 + NODE_HEIGHT / 2), *between, (x1, y1 - NODE_HEIGHT / 2)],
                f"{_called(a)} to {_called(b)}: {what}",
            )
    for n, center in centers.items():
        yield _node(box, n, center, hints)


def _edge(points: Sequence[tuple[float, float]], hint: str) -> str:
    """Returns a curve from node to node, through the points between them."""
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (a, top), (b, bottom) in pairwise(points):
        bend = max(abs(bottom - top) / 2, 14.0)
        path += f"C{a:.1f} {top + bend:.1f} {b:.1f} {bottom - bend:.1f} {b:.1f} {bottom:.1f}"
    return (
        f'<path class="edge" d="{path}" fill="none" stroke="#565e66" stroke-opacity="0.75">'
        f"<title>{escape(hint)}</title></path>"
    )


def _line(placed: Frames, pair: tuple[int, int], carried: Sequence[str]) -> str:
    """From frame to frame, with all that goes that way."""
    points = placed.lines[pair]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    (x0, y0), (x1, y1) = points[-2:]
    down, right = (y1 > y0) - (y1 < y0), (x1 > x0) - (x1 < x0)
    head = f"M{x1:.1f} {y1:.1f}l{-7 * right - 4 * down} {-7 * down - 4 * right}l{8 * down} {8 * right}z"
    hint = escape("\n".join([f"{pair[0]} to {pair[1]}", *carried]))
    return (
        f'<g tabindex="0"><title>{hint}</title><path class="edge" d="{path}" fill="none" stroke="#565e66" '
        f'stroke-width="1.5" stroke-linejoin="round" stroke-dasharray="5 3"/>'
        f'<path class="head" d="{head}" fill="#565e66"/></g>'
    )


def _node(box: _Box, name: str, center: tuple[float, float], hints: Mapping[str, tuple[str, str, str]]) -> str:
    _, passes, hint = hints.get(name, ("", "", _called(name)))
    origin, own = box.received.get(name), name in box.nodes
    x, y = center
    first, second = _label(name, hints, origin)
    width = _width((first, second))
    dash = "" if own else ' stroke-dasharray="3 3"'
    corner = f'x="{x + width / 2 - 5:.1f}" y="{y - 22:.1f}" text-anchor="end" font-size="9"'
    badge = f'<text class="small" {corner}>{escape(passes)}</text>'
    return (
        f'<g class="node d{box.colour}" tabindex="0"><title>{escape(hint)}</title>'
        f'<rect x="{x - width / 2:.1f}" y="{y - NODE_HEIGHT / 2:.1f}" width="{width:.1f}" height="{NODE_HEIGHT:.0f}" '
        f'rx="{4 if own else 16}" fill="#ffffff" stroke="{COLOURS[box.colour][0]}" stroke-width="1.5"{dash}/>'
        f'<text x="{x - width / 2 + 7:.1f}" y="{y - 3:.1f}" font-size="11">{escape(first)}</text>'
        f'<text class="small" x="{x - width / 2 + 7:.1f}" y="{y + 12:.1f}" font-size="11">{escape(second)}</text>'
        f"{badge if passes and own else ''}</g>"
    )


def bytes_text(count: int) -> str:
    """Returns a number of bytes in the unit that suits it."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count} bytes"
