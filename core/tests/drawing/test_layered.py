"""Places of graphs in layers."""

from __future__ import annotations

import random
from itertools import pairwise

from timberframe_core.drawing.layered import layered


def test_every_node_is_below_those_that_it_depends_on() -> None:
    rng = random.Random(3)
    names = [str(i) for i in range(60)]
    edges = list({(str(rng.randrange(i)), str(i)) for i in range(1, 60) for _ in range(2)})
    found = layered(dict.fromkeys(names, 50.0), edges, 40.0)
    assert all(found.centers[a][1] < found.centers[b][1] for a, b in edges)


def test_nodes_of_a_layer_do_not_overlap_and_stay_inside() -> None:
    names = {"top": 30.0} | {f"n{i}": 20.0 + 10 * i for i in range(7)}
    found = layered(names, [("top", n) for n in names if n != "top"], 40.0)
    row = sorted((found.centers[n][0], names[n]) for n in names if n != "top")
    assert all(b[0] - b[1] / 2 > a[0] + a[1] / 2 for a, b in pairwise(row))
    assert row[0][0] - row[0][1] / 2 >= 0
    assert row[-1][0] + row[-1][1] / 2 <= found.width


def test_crossings_that_can_be_avoided_are() -> None:
    edges = [("a", "z"), ("b", "y"), ("c", "x")]
    found = layered(dict.fromkeys("abcxyz", 20.0), edges, 40.0)
    tops, bottoms = ([found.centers[e[k]][0] for e in edges] for k in (0, 1))
    assert sorted(range(3), key=tops.__getitem__) == sorted(range(3), key=bottoms.__getitem__)


def test_a_chain_is_straight() -> None:
    found = layered(dict.fromkeys("abc", 20.0), [("a", "b"), ("b", "c")], 40.0)
    assert len({x for x, _ in found.centers.values()}) == 1


def test_an_edge_past_other_layers_goes_around_their_nodes() -> None:
    found = layered(dict.fromkeys("abc", 20.0), [("a", "b"), ("b", "c"), ("a", "c")], 40.0)
    ((x, y),) = found.routes["a", "c"]
    assert y == found.centers["b"][1]
    assert abs(x - found.centers["b"][0]) > 10


def test_a_chain_that_ends_in_a_late_node_is_near_it() -> None:
    edges = [("a", "b"), ("b", "c"), ("c", "d"), ("variable", "read"), ("read", "d")]
    found = layered(dict.fromkeys(["a", "b", "c", "variable", "read", "d"], 20.0), edges, 40.0)
    heights = {n: y for n, (_, y) in found.centers.items()}
    assert (heights["variable"], heights["read"]) == (heights["b"], heights["c"])


def test_nothing_has_no_size() -> None:
    assert layered({}, [], 40.0).width == 0
