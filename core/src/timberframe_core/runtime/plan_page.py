"""An Explanation as a page, and as what a notebook shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from timberframe_core.drawing.page import asset, page
from timberframe_core.runtime.memory_picture import live_svg, memory_svg
from timberframe_core.runtime.plan_picture import DARK_STYLE, LIGHT_STYLE, STYLE, plan_svg

if TYPE_CHECKING:
    from timberframe_core.runtime.explain import Explanation


def plan_page(plan: Explanation) -> str:
    """Returns the page: the graph, memory of each stage, what passes did, placement, kernels, loops."""
    frame = '<div class="scroll" tabindex="0" role="region" aria-label="graph">'
    drawing = f'<p class="muted">{_HOW}</p>{frame}{plan_svg(plan, "")}</div>'
    bars = memory_svg(plan.stages)
    peaks = _list(f"at most {n:,} bytes on {device}" for device, n in plan.peak_bytes.items())
    memory = f'{peaks}<div class="scroll">{bars}</div>' if bars else "<p>It is known when shapes are.</p>"
    live = live_svg(plan.stages)
    along = f'<p class="muted">{_LIVE}</p><div class="scroll">{live}</div>' if live else ""
    sections = [
        ("Graph", drawing), ("Memory of each stage, in running order", memory),
        ("Memory while the nodes of a stage run", along), ("Passes", _passes(plan)),
        ("Placement", _SEARCH + _placement(plan)), ("Kernels", _kernels(plan)), ("Loops and branches", _loops(plan)),
        ("Computed on the host while planning", _list(plan.host_values)),
        ("Left out", _list(plan.skipped_rewrites)),
    ]  # fmt: skip
    body = "\n".join(f"<section><h2>{title}</h2>{content}</section>" for title, content in sections if content)
    dark = f'@media (prefers-color-scheme:dark){{:root:not([data-theme="light"]){{{DARK_STYLE}}}}}'
    styles = [LIGHT_STYLE, dark, f':root[data-theme="dark"]{{{DARK_STYLE}}}']
    script = asset("timberframe_core.drawing", "plan.js")
    return page(f"Plan for {', '.join(plan.fetches)}", body, None, styles, [script])


def plan_fragment(plan: Explanation) -> str:
    """Returns the graph, and the report as text below it, folded."""
    return (
        f'<div style="overflow-x:auto">{plan_svg(plan, STYLE)}</div>'
        f"<details><summary>plan as text</summary><pre>{escape(str(plan))}</pre></details>"
    )


_HOW = (
    "A column for each device, a frame for each cluster, in running order from top to bottom. What hovers over a node "
    "says why it is there and what runs it; the small word in its corner is the pass that rewrote it. Dashed nodes are "
    "what is fed or kept between runs, and what comes from another frame, by its number; dashed lines between frames "
    "say what goes that way."
)
_LIVE = (
    "A bar for each node, in running order: the bytes of what nodes of the stage have made by then, and others still "
    "read or the run gives as a result. What hovers over a bar names the node. Constants and variables are not in it."
)
_SEARCH = '<p><label>Search <input type="search" id="search" placeholder="a node, an op, a device"></label></p>'


def _table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table; cells are HTML. Nothing, if there are no rows."""
    body = "\n".join(
        f'<tr><th scope="row">{row[0]}</th>' + "".join(f"<td>{cell}</td>" for cell in row[1:]) + "</tr>" for row in rows
    )
    head = "".join(f'<th scope="col">{h}</th>' for h in heads)
    table = f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll tall" tabindex="0" role="region" aria-label="{caption}">{table}</div>' if body else ""


def _list(items: Iterable[str]) -> str:
    found = "".join(f"<li>{escape(item)}</li>" for item in items)
    return f"<ul>{found}</ul>" if found else ""


def _passes(plan: Explanation) -> str:
    rows = [
        (
            escape(p.name), str(len(p.rewritten)), _names(p.rewritten), escape(p.failure),
            _list(f"{name}: {why}" for name, why in p.declined),
        )
        for p in plan.passes
    ]  # fmt: skip
    return _table("In running order", ("pass", "nodes", "rewrote", "failed", "left as they are"), rows)


def _names(names: Sequence[str], most: int = 12) -> str:
    text = escape(", ".join(names[:most]))
    if len(names) <= most:
        return text
    return f"{text}<details><summary>{len(names) - most} more</summary>{escape(', '.join(names[most:]))}</details>"


def _placement(plan: Explanation) -> str:
    rows = [
        (
            escape(p.node),
            escape(p.op),
            escape(p.device),
            escape(p.reason),
            _list(f"{d}: {why}" for d, why in p.rejected),
        )
        for p in plan.placements
    ]
    return _table("The device of each node", ("node", "op", "device", "because", "not on"), rows)


def _kernels(plan: Explanation) -> str:
    rows = [
        (escape(k.node), escape(k.op), escape(k.kernel), escape(k.plugin), _names(k.covers), _list(k.declined))
        for k in plan.kernels
    ]
    return _table("What runs each node", ("node", "op", "kernel", "plugin", "covers", "declined"), rows)


def _loops(plan: Explanation) -> str:
    rows = [(escape(x.node), escape(x.op), escape(x.driver), escape(x.reason)) for x in plan.loops]
    return _table("Who runs them", ("node", "op", "run by", "because"), rows)
