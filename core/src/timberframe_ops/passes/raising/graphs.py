"""A graph without TensorFlow 1's control flow and reference variables, made of one with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.graph import Graph
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.ops.definition import registry
from timberframe_ops.passes.raising.branches import guarded
from timberframe_ops.passes.raising.frames import Frame, find_frames
from timberframe_ops.passes.raising.regions import ALWAYS, Region
from timberframe_ops.passes.raising.schedule import Schedule
from timberframe_ops.passes.raising.scope import Raising, Scope


@dataclass(frozen=True)
class Raised:
    """The graph that takes the place of another. fetches, feeds: for each fetch and feed what stands for it."""

    graph: Graph
    fetches: list[list[Tensor | Operation]]
    feeds: list[Tensor]


def raise_graph(
    source: Graph, order: Sequence[Operation], fetches: Sequence[Tensor | Operation], feeds: Sequence[Tensor]
) -> Raised:
    """Rewrites the operations of `order`, which are what these fetches need.

    Raises UnimplementedError naming the node where control flow is not that of loops and branches.
    """
    fed = set(feeds)
    wanted = [f for f in fetches if isinstance(f, Tensor) and f not in fed]
    raising = Raising(source, fed)
    root = Scope(raising, raising.graph)
    stand_ins = [_feed(root, tensor) for tensor in feeds]
    frame = find_frames(order, fed)
    _check_outside(frame, wanted)
    region = Region(frame, fed, wanted)
    region.wanted.update(pred for t in wanted for pred, _ in region.condition(t) or ())
    Schedule(root, region, region.units, ALWAYS).run()
    found = [_fetch(root, region, fetch) for fetch in fetches]
    return Raised(raising.graph, found, stand_ins)


def _check_outside(frame: Frame, wanted: Iterable[Tensor]) -> None:
    """Raises InvalidArgumentError for a fetch that has a value in each iteration of a loop."""
    for tensor in wanted:
        for loop in frame.children.values():
            if tensor.op in loop.everything() and tensor.op not in loop.exits:
                raise InvalidArgumentError(
                    f"{tensor.op.type} '{tensor.op.name}': is inside of loop '{loop.name}', where it has a value in "
                    "each iteration; what is fetched must come out through Exit",
                    tensor.op.name,
                )


def _feed(root: Scope, tensor: Tensor) -> Tensor:
    op = root.graph.create_op(
        registry.get("Placeholder"),
        [],
        {"dtype": tensor.dtype.base_dtype, "shape": tensor.static_shape},
        root.free_name(tensor.op.name),
        device="",
        exact_name=True,
    )
    op._where = tensor.op._where
    stand_in = op.outputs[0]
    stand_in.handle = tensor.handle
    root.feed(tensor, stand_in)
    root.ran[tensor.op] = (op,)
    return stand_in


def _fetch(root: Scope, region: Region, fetch: Tensor | Operation) -> list[Tensor | Operation]:
    """Returns what stands for a fetch; an operation may stand for several, or for none where its branch never runs."""
    if isinstance(fetch, Operation):
        return list(root.ran.get(fetch, ()))
    condition = region.condition(fetch)
    if condition is None:
        raise InvalidArgumentError(
            f"{fetch.op.type} '{fetch.op.name}': output {fetch.value_index} is on a branch that never runs; what is "
            "fetched must be computed",
            fetch.op.name,
        )
    return [guarded(root, fetch, region.literals(condition))]
