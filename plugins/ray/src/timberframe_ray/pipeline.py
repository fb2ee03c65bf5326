"""Pipelines: parts of a model on several devices, which work on parts of a batch at the same time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from timberframe_ray.collectives.optimizer import ancestors
from timberframe_sdk import HostCall, InvalidArgumentError, NotDifferentiable, apply_op, define_op, host_op

define_op(
    "Ray>Barrier",
    doc="Comes between blocks of a device's work that are to be done one after the other: each becomes a cluster.",
    shape=lambda c: [],
    gradient=NotDifferentiable("it has no inputs"),
    on_host=True,
    stateful=True,
)


@host_op("Ray>Barrier")
def _nothing(call: HostCall) -> list[Any]:
    return []


Block = tuple[str, int]
"""Forward ("F") or backward ("B") work of a stage on the part of the batch with this number."""


def pipeline(
    optimizer: Any,
    stages: Sequence[Callable[[Any], Any]],
    devices: Sequence[str],
    batch: Any,
    labels: Any,
    loss: Callable[[Any, Any], Any],
    microbatches: int = 8,
    schedule: str = "1f1b",
) -> tuple[Any, list[tuple[Any, Any]]]:
    """Returns the loss of a batch and pairs of gradient and variable, for `optimizer.apply_gradients`.

    stages: functions of one tensor, each called once for every part of the batch, with devices[i] as its device; their
    variables must be shared, as in ``tf.variable_scope(name, reuse=tf.AUTO_REUSE)``. loss: of the last one's result and
    the labels, a scalar of floats that is a mean over rows, computed where the last stage is. batch, labels: tensors of
    any dtype whose first dimension is a multiple of `microbatches`. InvalidArgumentError where it is none, where there
    are no stages, not as many devices as stages, or no microbatches, and for another schedule.
    schedule: "gpipe" does all forward work before the backward work (P. Huang et al., "GPipe", 2019); "1f1b" does one
    of each in turn, so that a stage keeps results of as many parts as stages follow (D. Narayanan et al., "PipeDream",
    2019). Both leave a stage idle for (S - 1) / (M + S - 1) of the time, with S equal stages and M parts, and give the
    same bits.
    """
    if not stages or microbatches < 1:
        raise InvalidArgumentError(
            f"pipeline: {len(stages)} stages, microbatches is {microbatches}; at least one of each is required"
        )
    orders = [block_order(len(stages), s, microbatches, schedule) for s in range(len(stages))]
    if len(devices) != len(stages):
        raise InvalidArgumentError(
            f"pipeline: {len(stages)} stages on {len(devices)} devices; one for each is required"
        )
    graph = batch.graph
    places = [_place(graph, device) for device in devices]
    blocks: dict[tuple[int, Block], list[Any]] = {}
    losses, pairs = [], []
    parts = _split(batch, microbatches)
    for m, (x, y) in enumerate(zip(parts, _split(labels, microbatches), strict=True)):
        for s, stage in enumerate(stages):
            with graph.device(devices[s]):
                known = len(graph.get_operations())
                x = stage(x)  # what the next stage gets
                if s == len(stages) - 1:
                    x = loss(x, y)  # what is differentiated
            blocks[s, ("F", m)] = graph.get_operations()[known:]
        losses.append(x)
        known = len(graph.get_operations())
        pairs.append(optimizer.compute_gradients(x, colocate_gradients_with_ops=True))
        for op in graph.get_operations()[known:]:
            s = places.index(op.device) if op.device in places else len(stages) - 1  # where gradients begin
            blocks.setdefault((s, ("B", m)), []).append(op)
    results = [*losses, *(g for one in pairs for g, _ in one if g is not None)]
    needed = ancestors([r.op for r in results])  # not the initial values of variables that the stages made
    for s, order in enumerate(orders):
        _order([[op for op in blocks[s, block] if op in needed] for block in order], graph, devices[s])
    return _mean(losses), _mean_pairs(pairs)


def block_order(stages: int, stage: int, microbatches: int, schedule: str) -> list[Block]:
    """Returns what a stage does, one after the other."""
    if schedule not in ("gpipe", "1f1b"):
        raise InvalidArgumentError(f"pipeline: schedule is {schedule!r}; it must be 'gpipe' or '1f1b'")
    ahead = microbatches if schedule == "gpipe" else min(microbatches, stages - stage)
    order: list[Block] = [("F", m) for m in range(ahead)]
    for m in range(microbatches):
        order.append(("B", m))
        if ahead + m < microbatches:
            order.append(("F", ahead + m))
    return order


def _place(graph: Any, device: str) -> str:
    """Returns the device of operations that are made where this one is asked for."""
    with graph.device(device), graph.control_dependencies(None):
        found: str = apply_op("NoOp").device
    return found


def _split(tensor: Any, count: int) -> list[Any]:
    return list(apply_op("Split", [0, tensor], {"num_split": count}))


def _order(blocks: Sequence[Sequence[Any]], graph: Any, device: str) -> None:
    """Makes a device do blocks one after the other."""
    for before, after in itertools.pairwise(blocks):
        own, read = set(before), {x.op for op in before for x in op.inputs}
        with graph.device(device), graph.control_dependencies(None):
            barrier = apply_op("Ray>Barrier")
        for op in before:
            if op in own - read and _works(op):
                graph.add_control_input(barrier, op)
        inside = set(after)
        for op in after:
            if _works(op) and not any(x.op in inside and _works(x.op) for x in op.inputs):
                graph.add_control_input(op, barrier)


def _works(op: Any) -> bool:
    """Returns whether an operation computes something: constants, variables and shapes are there anyway."""
    return bool(op.inputs) and any(x.dtype.is_floating for x in op.inputs)


def _mean(values: Sequence[Any]) -> Any:
    return apply_op("AddN", [list(values)]) / len(values)


def _mean_pairs(pairs: Iterable[Sequence[tuple[Any, Any]]]) -> list[tuple[Any, Any]]:
    """For each variable the mean of its gradients, where it is."""
    found = []
    for of_variable in zip(*pairs, strict=True):
        variable, given = of_variable[0][1], [g for g, _ in of_variable]
        if any(g is None for g in given):
            found.append((None, variable))
            continue
        with variable.graph.colocate_with(variable.op):
            found.append((_mean(given), variable))
    return found
