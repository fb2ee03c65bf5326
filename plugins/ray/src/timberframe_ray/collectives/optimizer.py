"""Optimizers whose gradients are means over the processes of a group, reduced while the backward pass goes on."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from timberframe_ray.collectives.group import group
from timberframe_ray.collectives.ops import all_gather, broadcast
from timberframe_sdk import InvalidArgumentError, apply_op, is_static

BUCKET_BYTES = 4 << 20
"""Enough that an all-reduce is not all overhead, and few enough that the backward pass covers most of them."""
_FRAMES = ("switch", "merge", "enter", "exit", "next_iteration")


def DistributedOptimizer(  # noqa: N802  # it stands for a class, which depends on the optimizer
    optimizer: Any, bucket_bytes: int = BUCKET_BYTES
) -> Any:
    """Returns an optimizer as the one that is given, whose `compute_gradients` gives the means over all processes.

    bucket_bytes: gradients are reduced in buckets of about so many bytes, each alone with 0, in the order in which the
    backward pass makes them: one bucket is on its way while the next one is computed. They keep their shapes, and have
    the dtypes of `all_reduce`. Gradients of some rows only are gathered, and must have equally many rows in all
    processes. The processes must begin with equal variables, see `broadcast_variables`. InvalidArgumentError where
    `optimizer` is none.
    """
    if not hasattr(optimizer, "compute_gradients") or not hasattr(optimizer, "apply_gradients"):
        raise InvalidArgumentError(f"DistributedOptimizer: {optimizer!r} given; a tf.train.Optimizer is required")
    kind = type(optimizer)
    made = copy.copy(optimizer)
    made.__class__ = type(f"Distributed{kind.__name__}", (_Distributed, kind), {"_bucket_bytes": bucket_bytes})
    return made


def broadcast_variables(variables: Iterable[Any], root: int = 0) -> list[Any]:
    """Operations that give variables the values that they have in the process of rank `root`.

    With a MonitoredSession they follow what restores variables there, as ``Scaffold(local_init_op=tf.group(*these))``.
    """
    assigned, last = [], None
    for variable in variables:
        value = broadcast(variable, root)
        _after(value.op, last)  # all processes must have one order
        last = value.op
        assigned.append(variable.assign(value).op)
    return assigned


class _Distributed:
    """What goes before an optimizer's class."""

    _bucket_bytes: int

    def compute_gradients(self, *arguments: Any, **named: Any) -> list[tuple[Any, Any]]:
        """See the optimizer's own; the gradients are means over all processes."""
        pairs = super().compute_gradients(*arguments, **named)  # type: ignore[misc]  # the optimizer's
        means = mean_gradients([gradient for gradient, _ in pairs], self._bucket_bytes)
        return [(mean, variable) for mean, (_, variable) in zip(means, pairs, strict=True)]


def mean_gradients(gradients: Sequence[Any], bucket_bytes: int = BUCKET_BYTES) -> list[Any]:
    """Returns the means over all processes of tensors and IndexedSlices; None stays None."""
    size, found = group().size, list(gradients)
    dense = {i: g for i, g in enumerate(gradients) if g is not None and not hasattr(g, "indices")}
    last: Any = None
    started = []
    for bucket in _buckets(dense, bucket_bytes):
        values = [dense[i] for i in bucket]
        start = apply_op("Ray>AllReduceStart", [values])
        _after(start.op, last)  # all processes must have one order
        started.append((bucket, values, start))
        last = start.op
    _overlap([(values, start.op) for _, values, start in started])
    for bucket, values, start in started:
        sums = apply_op("Ray>AllReduceEnd", [start, values])
        _after(sums[0].op, last)
        for i, total in zip(bucket, sums, strict=True):
            found[i] = total / size
    for i, g in enumerate(gradients):
        if g is not None and i not in dense:
            rows, indices = all_gather(g.values), all_gather(g.indices)
            _after(rows.op, last)
            _after(indices.op, rows.op)
            last = indices.op
            found[i] = type(g)(rows / size, indices, g.dense_shape)
    return found


def _after(operation: Any, before: Any) -> None:
    """Makes an operation wait for another one, if there is one."""
    if before is not None:
        operation.graph.add_control_input(operation, before)


def _buckets(dense: dict[int, Any], most: int) -> list[list[int]]:
    """Returns positions of the gradients of each bucket, in the order in which the backward pass
    makes them; of one dtype.
    """
    buckets: list[list[int]] = []
    left, dtype = 0, None
    for i in sorted(dense, key=lambda i: dense[i].op.id):
        if left <= 0 or dense[i].dtype is not dtype:
            buckets.append([])
            left, dtype = most, dense[i].dtype
        buckets[-1].append(i)
        left -= _bytes(dense[i])
    return buckets


def _bytes(tensor: Any) -> int:
    """Returns those that a tensor has, 0 where its shape is not known."""
    shape, count = tensor.static_shape, tensor.dtype.numpy.itemsize
    if not is_static(shape):
        return 0
    for n in shape:
        count *= n
    return int(count)


def _overlap(started: Sequence[tuple[Sequence[Any], Any]]) -> None:
    """Puts each bucket on its way before the rest of the backward pass begins.

    Otherwise a device would do all of that as one cluster first. What only later buckets need waits for the start of
    an earlier one, where it reads what that needs, too.
    """
    before: set[Any] = set()
    previous: Any = None
    for values, start in started:
        needed = ancestors([v.op for v in values], before)
        if any(op.op_def.role in _FRAMES for op in needed):
            return  # nothing outside may be waited for in a loop of TensorFlow 1
        for op in needed:
            if any(x.op in before and _computed(x) for x in op.inputs) and _computed(*op.outputs):
                _after(op, previous)
        before |= needed
        previous = start


def _computed(*tensors: Any) -> bool:
    """Returns whether there are floats among them: others are shapes and positions, which are known before a run."""
    return any(x.dtype.is_floating or x.dtype.is_complex for x in tensors)


def ancestors(operations: Sequence[Any], known: Collection[Any] = ()) -> set[Any]:
    """Returns the operations, and all that they need, but for those that are known."""
    found: set[Any] = set()
    waiting = list(operations)
    while waiting:
        op = waiting.pop()
        if op not in found and op not in known:
            found.add(op)
            waiting += [*(x.op for x in op.inputs), *op.control_inputs]
    return found
