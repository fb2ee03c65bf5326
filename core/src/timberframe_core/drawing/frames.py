"""Places frames in lanes, each below those before it, and lines between them that go beside the frames.

A line leaves a frame at the side, goes along the gutter between two lanes on a track of its own, and enters the other
frame at its side; one to the next frame of the same lane goes straight down.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

Place = tuple[float, float]
GAP = 30.0
"""Between frames of a lane, and above the first."""
HEAD = 26.0
"""Room for the lanes' names."""
TRACK = 9.0
"""Between lines that are neighbours."""


@dataclass(frozen=True)
class Frame:
    """What is to be placed. lane: its lane's position, from the left."""

    width: float
    height: float
    lane: int


@dataclass(frozen=True)
class Frames:
    """Where things are. corners: the upper left one of each frame. lanes: their middles. lines: the points of each."""

    width: float
    height: float
    corners: Sequence[Place]
    lanes: Sequence[float]
    lines: dict[tuple[int, int], list[Place]]


def arrange(frames: Sequence[Frame], heads: Sequence[float], pairs: Collection[tuple[int, int]]) -> Frames:
    """Places frames, given in an order in which each comes after those that lead to it.

    heads: the widths of the lanes' names. pairs: the numbers of frames between which there are lines.
    """
    tops = _tops(frames, pairs)
    below = _next_in_lane(frames)
    around = [pair for pair in pairs if below.get(pair[0]) != pair[1]]
    ports = _ports(frames, tops, around)
    spans: dict[int, dict[tuple[int, int], tuple[float, float]]] = {}
    for i, j in around:
        ends = ports[i, j]
        spans.setdefault(_gutter(frames, i, j), {})[i, j] = min(ends), max(ends)
    tracks = {gutter: _tracks(found) for gutter, found in spans.items()}
    lanes, left, gutters = [], 0.0, []
    for lane, head in enumerate([*heads, 0.0]):
        gutters.append(left)
        left += max(
            2 * GAP if 0 < lane < len(heads) else GAP, 2 * GAP + TRACK * max(tracks.get(lane, {0: -2}).values())
        )
        width = max([head, *(f.width for f in frames if f.lane == lane)])
        lanes.append(left + width / 2)
        left += width
    corners = [(lanes[f.lane] - f.width / 2, top) for f, top in zip(frames, tops, strict=True)]
    lines = {}
    for i, j in pairs:
        gutter = _gutter(frames, i, j)
        if (i, j) not in ports:
            middle = lanes[frames[i].lane]
            lines[i, j] = [(middle, tops[i] + frames[i].height), (middle, tops[j])]
            continue
        x = gutters[gutter] + GAP + TRACK * tracks[gutter][i, j]
        sides = [corners[n][0] + (frames[n].width if gutter > frames[n].lane else 0.0) for n in (i, j)]
        start, end = ports[i, j]
        lines[i, j] = [(sides[0], start), (x, start), (x, end), (sides[1], end)]
    height = max((top + f.height for f, top in zip(frames, tops, strict=True)), default=HEAD) + GAP
    return Frames(left, height, corners, lanes[:-1], lines)


def _tops(frames: Sequence[Frame], pairs: Iterable[tuple[int, int]]) -> list[float]:
    """Returns each frame below the ones before it in its lane, and below those with lines to it."""
    sources: dict[int, list[int]] = {}
    for i, j in pairs:
        sources.setdefault(j, []).append(i)
    bottoms: dict[int, float] = {}
    tops: list[float] = []
    for j, frame in enumerate(frames):
        above = [tops[i] + frames[i].height + GAP for i in sources.get(j, ()) if i < j]
        tops.append(max([GAP + HEAD, bottoms.get(frame.lane, 0.0), *above]))
        bottoms[frame.lane] = tops[j] + frame.height + GAP
    return tops


def _next_in_lane(frames: Sequence[Frame]) -> dict[int, int]:
    last: dict[int, int] = {}
    found = {}
    for j, frame in enumerate(frames):
        if frame.lane in last:
            found[last[frame.lane]] = j
        last[frame.lane] = j
    return found


def _gutter(frames: Sequence[Frame], i: int, j: int) -> int:
    """Returns the gutter of a line, by the lane to the right of it: beside the lane of its end,
    on the side of its start.
    """
    start, end = frames[i].lane, frames[j].lane
    if start == end:
        return start + 1 if start == max(f.lane for f in frames) else start
    return end if start < end else end + 1


def _ports(
    frames: Sequence[Frame], tops: Sequence[float], pairs: Iterable[tuple[int, int]]
) -> dict[tuple[int, int], tuple[float, float]]:
    """Returns where each line leaves and enters: from the bottom of a frame's side upwards, from its top downwards."""
    used: dict[tuple[int, bool, bool], int] = {}

    def port(n: int, gutter: int, leaves: bool) -> float:
        side = n, gutter > frames[n].lane, leaves
        away = TRACK * (used.setdefault(side, 0) + 1.5)
        used[side] += 1
        away = min(away, frames[n].height / 2)
        return tops[n] + (frames[n].height - away if leaves else away)

    return {(i, j): (port(i, _gutter(frames, i, j), True), port(j, _gutter(frames, i, j), False)) for i, j in pairs}


def _tracks(spans: dict[tuple[int, int], tuple[float, float]]) -> dict[tuple[int, int], int]:
    """Tracks of a gutter, from 0, for lines that take so much of its height: short ones first, no two on one place."""
    taken: list[list[tuple[float, float]]] = []
    found = {}
    for pair, (top, bottom) in sorted(spans.items(), key=lambda item: item[1][1] - item[1][0]):
        free = (k for k, row in enumerate(taken) if all(bottom + TRACK <= a or b + TRACK <= top for a, b in row))
        track = next(free, len(taken))
        if track == len(taken):
            taken.append([])
        taken[track].append((top, bottom))
        found[pair] = track
    return found
