"""Draws an Explanation: a lane for each device, in it the clusters from top to bottom, in these the nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

from timberframe_core.drawing.layered import Layout, layered

if TYPE_CHECKING:
    from timberframe_core.runtime.explain import Explanation, StageReport

MOST_NODES = 400
"""Of a plan with more, each stage is drawn as one node."""
ROW, NODE_HEIGHT, LETTER = 64.0, 36.0, 6.9
"""Between layers; of a node; of a letter at the size of the labels."""
PAD, HEAD, GAP = 14.0, 26.0, 30.0
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
.tf-plan .edge{{stroke:{muted}}}.tf-plan .node:focus rect,.tf-plan .node:hover rect{{stroke-width:3}}
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
    """A stage as it is drawn: what is in it, where, and its place on the page."""

    stage: StageReport
    nodes: Sequence[str]
    layout: Layout
    top: float = 0.0
    left: float = 0.0

    @property
    def width(self) -> float:
        return max(self.layout.width, LETTER * 24) + 2 * PAD

    @property
    def height(self) -> float:
        return self.layout.height + HEAD + PAD

    def center(self, node: str) -> tuple[float, float]:
        """Where a node is on the page."""
        return self.on_page(self.layout.centers[node])

    def on_page(self, place: tuple[float, float]) -> tuple[float, float]:
        """A place of the layout on the page."""
        return self.left + (self.width - self.layout.width) / 2 + place[0], self.top + HEAD + place[1]


def plan_svg(plan: Explanation, style: str = STYLE) -> str:
    """The drawing as an SVG element, with its style; light or dark as the reader's system asks."""
    stages = [s for s in plan.stages if s.nodes]
    if sum(len(s.nodes) for s in stages) > MOST_NODES:
        names = {n: f"{i}{_STAGE}{_ops_of(plan, s)}" for i, s in enumerate(stages) for n in s.nodes}
    else:
        names = {n: n for s in stages for n in s.nodes}
    edges = {(names.get(a, a), names[b]): what for a, b, what in plan.edges if names.get(a, a) != names[b]}
    shown = _hints(plan, names)
    boxes = _boxes(stages, names, list(edges), shown)
    devices = list(dict.fromkeys(s.device for s in stages))
    width, height, lanes = _place(boxes, devices, list(edges))
    homes = {n: box for box in boxes for n in box.layout.centers}
    parts = [_lane(device, lanes[device]) for device in devices]
    parts += [_frame(i, box, devices.index(box.stage.device) % len(COLOURS)) for i, box in enumerate(boxes)]
    parts += [_edge(homes, a, b, what) for (a, b), what in edges.items()]
    parts += [
        _node(box, n, devices.index(box.stage.device) % len(COLOURS), shown, n in box.nodes)
        for box in boxes
        for n in box.layout.centers
    ]
    title = escape(f"plan for {', '.join(plan.fetches)}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="tf-plan" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="group" aria-label="{title}">\n'
        f"<style>{style}</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def _ops_of(plan: Explanation, stage: StageReport) -> str:
    """The ops of a stage by their numbers, the most frequent first."""
    ops = {p.node: p.op for p in plan.placements}
    counts = Counter(ops.get(n, "") for n in stage.nodes)
    return f"{len(stage.nodes)} nodes: " + ", ".join(f"{op} {n}" for op, n in counts.most_common(3))


def _boxes(
    stages: Sequence[StageReport],
    names: Mapping[str, str],
    edges: Sequence[tuple[str, str]],
    hints: Mapping[str, tuple[str, str, str]],
) -> list[_Box]:
    """Each stage with its nodes, and above them what no stage makes, in the first that reads it."""
    made, boxes = {names[n] for s in stages for n in s.nodes}, []
    for stage in stages:
        own = list(dict.fromkeys(names[n] for n in stage.nodes))
        members = set(own)
        outside = [a for a, b in edges if b in members and a not in made]
        inside = list(dict.fromkeys([*outside, *own]))
        made.update(outside)
        rank = {n: i for i, n in enumerate(inside)}
        inner = [(a, b) for a, b in edges if rank.get(a, len(rank)) < rank.get(b, -1)]
        widths = {n: _width(_label(n, hints)) for n in inside}
        boxes.append(_Box(stage, own, layered(widths, inner, ROW)))
    return boxes


def _place(
    boxes: Sequence[_Box], devices: Sequence[str], edges: Sequence[tuple[str, str]]
) -> tuple[float, float, dict[str, tuple[float, float]]]:
    """Puts each stage below those before it on its device and those that it receives from; the size, and the lanes."""
    lanes, left = {}, GAP
    for device in devices:
        width = max([b.width for b in boxes if b.stage.device == device] + [LETTER * 1.4 * len(device)])
        lanes[device] = left, width
        left += width + 2 * GAP
    homes = {n: i for i, box in enumerate(boxes) for n in box.layout.centers}
    bottom = dict.fromkeys(devices, GAP + HEAD)
    for i, box in enumerate(boxes):
        sources = {homes[a] for a, b in edges if homes[b] == i and homes[a] < i}
        box.top = max([bottom[box.stage.device], *(boxes[s].top + boxes[s].height + GAP for s in sources)])
        start, width = lanes[box.stage.device]
        box.left = start + (width - box.width) / 2
        bottom[box.stage.device] = box.top + box.height + GAP
    return left, max(bottom.values(), default=GAP), lanes


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


def _label(name: str, hints: Mapping[str, tuple[str, str, str]]) -> tuple[str, str]:
    """The two lines in a node: its op, and the end of its name; of a whole stage how many nodes of which ops."""
    if _STAGE in name:
        first, _, second = name.split(_STAGE, 1)[1].partition(": ")
        return first, second
    op = hints[name][0] if name in hints else "input"
    short = name if len(name) <= LONGEST else "..." + name[3 - LONGEST :]
    return op if len(op) <= LONGEST else op[: LONGEST - 3] + "...", short


def _width(label: tuple[str, str]) -> float:
    return max(56.0, LETTER * max(map(len, label))) + 14


def _lane(device: str, lane: tuple[float, float]) -> str:
    x = lane[0] + lane[1] / 2
    return f'<text class="lane" x="{x:.1f}" y="{GAP:.0f}" text-anchor="middle" font-size="14">{escape(device)}</text>'


def _frame(number: int, box: _Box, colour: int) -> str:
    stage = box.stage
    memory = "" if stage.arena_bytes is None else f", {bytes_text(stage.arena_bytes + (stage.output_bytes or 0))}"
    title = f"{number}: {stage.kind}{memory}"
    hint = [title, f"{len(stage.nodes)} nodes on {stage.device}", *(f"receives {r}" for r in stage.receives)]
    if stage.arena_bytes is not None:
        hint.append(
            f"arena {stage.arena_bytes} bytes, workspace {stage.workspace_bytes}, constants {stage.persistent_bytes}, "
            f"outputs {stage.output_bytes}"
        )
    return (
        f"<g><title>{escape(chr(10).join(hint))}</title>"
        f'<rect class="b{colour}" x="{box.left:.1f}" y="{box.top:.1f}" width="{box.width:.1f}" '
        f'height="{box.height:.1f}" rx="6" fill="{COLOURS[colour][0]}" fill-opacity="0.07" stroke-opacity="0.5"/>'
        f'<text x="{box.left + 10:.1f}" y="{box.top + 17:.1f}" font-size="11">{escape(title)}</text></g>'
    )


def _edge(homes: Mapping[str, _Box], source: str, target: str, what: str) -> str:
    """A curve from node to node, around what is between them."""
    start, end = homes[source], homes[target]
    (x0, y0), (x1, y1) = start.center(source), end.center(target)
    between = [start.on_page(at) for at in start.layout.routes.get((source, target), ())] if start is end else []
    points = [(x0, y0 + NODE_HEIGHT / 2), *between, (x1, y1 - NODE_HEIGHT / 2)]
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (a, top), (b, bottom) in pairwise(points):
        bend = max(abs(bottom - top) / 2, 14.0)
        path += f"C{a:.1f} {top + bend:.1f} {b:.1f} {bottom - bend:.1f} {b:.1f} {bottom:.1f}"
    hint = f"{source.split(_STAGE)[-1]} to {target.split(_STAGE)[-1]}: {what}"
    dash = ' stroke-dasharray="5 3"' if start is not end else ""
    return (
        f'<path class="edge" d="{path}" fill="none" stroke="#565e66" stroke-opacity="0.75"{dash}>'
        f"<title>{escape(hint)}</title></path>"
    )


def _node(box: _Box, name: str, colour: int, hints: Mapping[str, tuple[str, str, str]], own: bool) -> str:
    _, passes, hint = hints.get(name, ("", "", name.split(_STAGE)[-1]))
    x, y = box.center(name)
    first, second = _label(name, hints)
    width = _width((first, second))
    dash = "" if own else ' stroke-dasharray="3 3"'
    corner = f'x="{x + width / 2 - 5:.1f}" y="{y - 22:.1f}" text-anchor="end" font-size="9"'
    badge = f'<text class="small" {corner}>{escape(passes)}</text>'
    return (
        f'<g class="node d{colour}" tabindex="0"><title>{escape(hint)}</title>'
        f'<rect x="{x - width / 2:.1f}" y="{y - NODE_HEIGHT / 2:.1f}" width="{width:.1f}" height="{NODE_HEIGHT:.0f}" '
        f'rx="{4 if own else 16}" fill="#ffffff" stroke="{COLOURS[colour][0]}" stroke-width="1.5"{dash}/>'
        f'<text x="{x - width / 2 + 7:.1f}" y="{y - 3:.1f}" font-size="11">{escape(first)}</text>'
        f'<text class="small" x="{x - width / 2 + 7:.1f}" y="{y + 12:.1f}" font-size="11">{escape(second)}</text>'
        f"{badge if passes else ''}</g>"
    )


def bytes_text(count: int) -> str:
    """A number of bytes in the unit that suits it."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count} bytes"
