"""Draws what an Explanation says of memory: what each stage needs, and what is alive while its nodes run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from timberframe_core.runtime.plan_picture import COLOURS, bytes_text

if TYPE_CHECKING:
    from timberframe_core.runtime.explain import StageReport

MOST_BARS = 300
"""Of a stage with more nodes, several in a row are drawn as one: the one with the most bytes."""
LEFT, WIDTH, HEIGHT = 190.0, 620.0, 70.0


def memory_svg(stages: Iterable[StageReport]) -> str:
    """Bars of what each stage needs, in running order: constants, outputs, workspace, tensors in between."""
    known = [(i, s) for i, s in enumerate(stages) if s.arena_bytes is not None]
    if not known:
        return ""
    row = 24.0
    parts, most = [], max(sum(_parts_of(s).values()) for _, s in known) or 1
    for line, (i, stage) in enumerate(known):
        y, x = 34 + line * row, LEFT
        label = f"{i}: {stage.device}"
        parts.append(
            f'<text x="{LEFT - 8:.0f}" y="{y + 12:.1f}" text-anchor="end" font-size="11">{escape(label)}</text>'
        )
        for k, (name, count) in enumerate(_parts_of(stage).items()):
            size = WIDTH * count / most
            parts.append(
                f'<rect class="b{k}" x="{x:.1f}" y="{y:.1f}" width="{size:.1f}" height="16" fill="{COLOURS[k][0]}">'
                f"<title>{escape(f'stage {i}, {name}: {count} bytes')}</title></rect>"
            )
            x += size
        total = sum(_parts_of(stage).values())
        parts.append(f'<text class="small" x="{x + 6:.1f}" y="{y + 12:.1f}" font-size="11">{bytes_text(total)}</text>')
    for k, name in enumerate(_parts_of(known[0][1])):
        parts.append(
            f'<rect class="b{k}" x="{LEFT + 110 * k:.0f}" y="8" width="10" height="10" fill="{COLOURS[k][0]}"/>'
            f'<text x="{LEFT + 110 * k + 15:.0f}" y="17" font-size="11">{name}</text>'
        )
    return _svg("memory of each stage", 44 + row * len(known), parts)


def _parts_of(stage: StageReport) -> dict[str, int]:
    workspace = stage.workspace_bytes or 0
    return {
        "constants": stage.persistent_bytes or 0, "outputs": stage.output_bytes or 0,
        "workspace": workspace, "tensors": (stage.arena_bytes or 0) - workspace,
    }  # fmt: skip


def live_svg(stages: Iterable[StageReport]) -> str:
    """For each stage with several nodes a bar for each, in running order: the bytes that are alive while it runs."""
    known = [(i, s) for i, s in enumerate(stages) if len(s.live_bytes) > 1]
    if not known:
        return ""
    most = max(count for _, s in known for _, count in s.live_bytes) or 1
    parts = [part for line, (i, s) in enumerate(known) for part in _live(i, s, most, 8 + line * (HEIGHT + 22))]
    return _svg("memory while the nodes run", 8 + len(known) * (HEIGHT + 22), parts)


def _live(number: int, stage: StageReport, most: int, top: float) -> Iterator[str]:
    step = -(-len(stage.live_bytes) // MOST_BARS)
    groups = [stage.live_bytes[i : i + step] for i in range(0, len(stage.live_bytes), step)]
    bars = [max(group, key=lambda pair: pair[1]) for group in groups]
    width, bottom = WIDTH / len(bars), top + HEIGHT
    highest = max(count for _, count in bars)
    yield (
        f'<text x="{LEFT - 8:.0f}" y="{top + 12:.1f}" text-anchor="end" font-size="11">'
        f"{escape(f'{number}: {stage.device}')}</text>"
        f'<text class="small" x="{LEFT - 8:.0f}" y="{top + 27:.1f}" text-anchor="end" font-size="11">'
        f"at most {bytes_text(highest)}</text>"
    )
    for k, (name, count) in enumerate(bars):
        tall = HEIGHT * count / most
        yield (
            f'<rect class="b0" x="{LEFT + k * width:.2f}" y="{bottom - tall:.2f}" width="{width:.2f}" '
            f'height="{tall:.2f}" fill="{COLOURS[0][0]}"><title>{escape(f"{name}: {count} bytes")}</title></rect>'
        )


def _svg(label: str, height: float, parts: Sequence[str]) -> str:
    width = LEFT + WIDTH + 90
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="tf-plan" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{label}">' + "\n".join(parts) + "</svg>\n"
    )
