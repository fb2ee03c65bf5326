"""Places a directed graph in layers from top to bottom: each node below those that it depends on, with few crossings.

The three steps are those of Sugiyama, Tagawa and Toda (1981): layers by the longest path, an order in each layer by the
means of neighbours, positions that straighten edges. grandalf, the one library in Python for this, has a licence
(GPL or EPL) that the core cannot depend on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

SWEEPS = 6
"""How often the order is improved, downwards and upwards in turns: later sweeps change little."""
GAP = 14.0
"""Between neighbours of a layer."""


@dataclass
class Layout:
    """Where things are. centers: of nodes. routes: the points through which edges pass other layers."""

    width: float
    height: float
    centers: dict[str, tuple[float, float]]
    routes: dict[tuple[str, str], list[tuple[float, float]]] = field(default_factory=dict)


def layered(widths: Mapping[str, float], edges: Sequence[tuple[str, str]], row: float) -> Layout:
    """Places nodes of these widths, in topological order, with `row` between the middles of layers.

    edges: pairs of nodes, the source before the target in `widths`.
    """
    layer = _layers(widths, edges)
    sizes = dict(widths)
    links: dict[str, tuple[list[str], list[str]]] = {n: ([], []) for n in widths}
    stations: dict[int, list[str]] = {}
    for number, (source, target) in enumerate(edges):
        before = source
        for at in range(layer[source] + 1, layer[target]):  # what passes a layer has a place of its own in it
            name = f"\0{number}/{at}"
            sizes[name], layer[name], links[name] = 2.0, at, ([], [])
            stations.setdefault(number, []).append(name)
            _link(links, before, name)
            before = name
        _link(links, before, target)
    rows: list[list[str]] = [[] for _ in range(1 + max(layer.values(), default=-1))]
    for name, at in layer.items():
        rows[at].append(name)
    _order(rows, links)
    x = _positions(rows, links, sizes)
    width = max((x[n] + sizes[n] / 2 for n in sizes), default=0.0)
    middle = {n: (x[n], row * (layer[n] + 0.5)) for n in sizes}
    routes = {edges[number]: [middle[n] for n in names] for number, names in stations.items()}
    return Layout(width, row * len(rows), {n: middle[n] for n in widths}, routes)


def _link(links: Mapping[str, tuple[list[str], list[str]]], above: str, below: str) -> None:
    links[above][1].append(below)
    links[below][0].append(above)


def _layers(widths: Mapping[str, float], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Returns the longest path to each node; what a tree of nodes leads to is directly
    above the first that reads it.
    """
    sources: dict[str, list[str]] = {}
    targets: dict[str, list[str]] = {}
    for source, target in edges:
        sources.setdefault(target, []).append(source)
        targets.setdefault(source, []).append(target)
    layer: dict[str, int] = {}
    for name in widths:
        layer[name] = max((layer[s] + 1 for s in sources.get(name, ())), default=0)
    late: set[str] = set()
    for name in widths:
        if all(s in late and len(targets[s]) == 1 for s in sources.get(name, ())):
            late.add(name)
    for name in reversed(list(widths)):
        if name in late and name in targets:
            layer[name] = min(layer[t] for t in targets[name]) - 1
    return layer


def _order(rows: list[list[str]], links: Mapping[str, tuple[list[str], list[str]]]) -> None:
    """Sorts each layer by the mean place of neighbours in the layer that was sorted before it."""
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        place = {n: i for r in rows for i, n in enumerate(r)}
        for row in rows if down else reversed(rows):
            mean = {}
            for n in row:
                near = links[n][0 if down else 1]
                mean[n] = sum(place[m] for m in near) / len(near) if near else place[n]
            row.sort(key=mean.__getitem__)
            place.update({n: i for i, n in enumerate(row)})


def _positions(
    rows: Sequence[Sequence[str]], links: Mapping[str, tuple[list[str], list[str]]], sizes: Mapping[str, float]
) -> dict[str, float]:
    """Returns the middle of each node: near the means of its neighbours, without overlap, the leftmost edge at zero."""
    x: dict[str, float] = {}
    for row in rows:
        _pack(row, [0.0] * len(row), sizes, x)
    for sweep in range(SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wanted = []
            for n in row:
                near = [*links[n][0], *links[n][1]]
                wanted.append(sum(x[m] for m in near) / len(near) if near else x[n])
            _pack(row, wanted, sizes, x)
    left = min((x[n] - sizes[n] / 2 for n in x), default=0.0)
    return {n: v - left for n, v in x.items()}


def _pack(row: Sequence[str], wanted: Sequence[float], sizes: Mapping[str, float], x: dict[str, float]) -> None:
    """Gives a layer, in its order, places with the least square distance from the wanted ones that do not overlap.

    Neighbours that would overlap are joined to a block, which goes to the mean of what its nodes want (the algorithm of
    pools of adjacent violators).
    """
    offset, offsets = 0.0, []
    for i, n in enumerate(row):
        if i:
            offset += (sizes[row[i - 1]] + sizes[n]) / 2 + GAP
        offsets.append(offset)
    blocks: list[tuple[float, int]] = []
    for want, shift in zip(wanted, offsets, strict=True):
        total, count = want - shift, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
            more, many = blocks.pop()
            total, count = total + more, count + many
        blocks.append((total, count))
    at = 0
    for total, count in blocks:
        for i in range(at, at + count):
            x[row[i]] = total / count + offsets[i]
        at += count
