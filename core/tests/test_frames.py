"""Frames in lanes, and the lines between them."""

from __future__ import annotations

import random
from itertools import combinations, pairwise

import pytest

from timberframe_core.drawing.frames import TRACK, Frame, Frames, Place, arrange

Pair = tuple[int, int]


def drawn(seed: int) -> tuple[list[Frame], Frames]:
    """Twelve frames in two lanes, and a line from each to some after it."""
    choose = random.Random(seed)
    frames = [Frame(choose.uniform(80, 400), choose.uniform(60, 300), choose.randrange(2)) for _ in range(12)]
    pairs = [(i, j) for i, j in combinations(range(12), 2) if choose.random() < 0.3]
    return frames, arrange(frames, [100.0, 100.0], pairs)


def crosses(a: Place, b: Place, corner: Place, frame: Frame) -> bool:
    """Returns whether a line that goes straight down or across has a point inside of a frame."""
    (left, top), (right, bottom) = corner, (corner[0] + frame.width, corner[1] + frame.height)
    return (
        max(a[0], b[0]) > left + 0.1 and min(a[0], b[0]) < right - 0.1
        and max(a[1], b[1]) > top + 0.1 and min(a[1], b[1]) < bottom - 0.1
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_lines_go_beside_the_frames(seed: int) -> None:
    frames, placed = drawn(seed)
    for points in placed.lines.values():
        for a, b in pairwise(points):
            assert a[0] == b[0] or a[1] == b[1]
            assert not any(crosses(a, b, corner, f) for corner, f in zip(placed.corners, frames, strict=True))


@pytest.mark.parametrize("seed", range(8))
def test_lines_of_a_gutter_are_apart(seed: int) -> None:
    _, placed = drawn(seed)
    upright = [points[1:3] for points in placed.lines.values() if len(points) == 4]
    for (a, b), (c, d) in combinations(upright, 2):
        apart = abs(a[0] - c[0]) > TRACK - 0.1 or max(a[1], b[1]) < min(c[1], d[1]) or max(c[1], d[1]) < min(a[1], b[1])
        assert apart


@pytest.mark.parametrize("seed", range(8))
def test_frames_are_below_those_that_lead_to_them_and_inside_the_drawing(seed: int) -> None:
    frames, placed = drawn(seed)
    for i, j in placed.lines:
        assert placed.corners[j][1] > placed.corners[i][1] + frames[i].height
    for (left, top), frame in zip(placed.corners, frames, strict=True):
        assert left >= 0
        assert left + frame.width <= placed.width
        assert top + frame.height <= placed.height
    assert all(0 <= x <= placed.width for points in placed.lines.values() for x, _ in points)
