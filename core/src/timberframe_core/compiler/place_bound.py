"""Nodes that a device declines when their shapes are known: they are placed again, and their stage is cut up.

A loop or branch with such a node in its body is driven by the executor for these shapes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from timberframe_core.compiler.ir import Node, Output
from timberframe_core.compiler.place import Devices, Placement, Placer
from timberframe_core.compiler.stages import Stage
from timberframe_core.plugin.contracts import Cluster

if TYPE_CHECKING:
    from timberframe_core.compiler.plan import BoundStage


def place_declined(
    placer: Placer, nodes: Iterable[Node], cluster: Cluster, placements: list[Placement]
) -> dict[Node, str]:
    """Asks about the nodes whose device answered DEPENDS; gives the new device of each that it declines now.

    cluster: what was lowered from the nodes. placements: takes where they go. NoKernelError where no device takes one.
    """
    asking = {n.name: n for n in nodes if n.depends}
    homes: dict[Node, str] = {}
    for bound in cluster.nodes if asking else ():
        node = asking.get(bound.name)
        why = None if node is None or node.op.name != bound.op else cluster.device.supports(bound)
        if node is not None and isinstance(why, str):
            placement = placer.place_bound(node, bound, why)
            placements.append(placement)
            homes[node] = placement.device
    return homes


def split(stage: Stage, homes: Mapping[Node, str], devices: Devices, driven: Collection[Node] = ()) -> list[Stage]:
    """Returns the stage as a row of stages: runs of neighbouring nodes of one device, nodes in
    `homes` on the devices there.

    driven: loops and branches that the executor drives; each is a stage of its own. Since nodes are in topological
    order, each part is convex.
    """
    by_name = {d.spec: d for d in devices.devices}
    runs = groupby(stage.nodes, lambda n: (homes.get(n, stage.device.spec), n if n in driven else None))
    parts = [Stage(by_name[at], stage.depth, list(nodes), stage.level, loop is not None) for (at, loop), nodes in runs]
    part_of = {n: part for part in parts for n in part.nodes}
    wanted = set(stage.outputs)
    for part in parts:
        for x in dict.fromkeys(x for n in part.nodes for x in n.inputs if x.dtype.name != "resource"):
            maker = part_of.get(x.node)
            if maker is not None and maker is not part:
                wanted.add(x)
                if maker.device is not part.device:
                    maker.sends.append((x, part.device))
    for part in parts:
        part.outputs = [x for n in part.nodes for x in n.outputs if x in wanted]
    parts[-1].sends += [(x, target) for x, target in stage.sends if part_of[x.node].device is not target]
    return parts


def joints(parts: Sequence[BoundStage]) -> tuple[list[Output], list[Output]]:
    """Returns what the parts together need from outside, and all that they make."""
    made = dict.fromkeys(x for part in parts for x in part.outputs)
    return list(dict.fromkeys(x for part in parts for x in part.inputs if x not in made)), list(made)
