"""Ops computed by the references of their OpDefs, in NumPy: any op that has one, for any device that shows host arrays.

A KernelDevice with `by_reference` has a kernel of this kind wherever it has no other; a device with a compiler of its
own may call `compute` for nodes that it cannot translate.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from timberframe_core.errors import (
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
    UnimplementedError,
    UnknownError,
)
from timberframe_core.failures import class_for, raised
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.formats import widen as widen
from timberframe_core.ops.definition.opdef import OpDef, as_arrays
from timberframe_core.ops.definition.opdef import evaluate as evaluate
from timberframe_core.plugin.contracts import KernelDef, KernelNode, Launcher
from timberframe_core.plugin.nodes import passed_inputs
from timberframe_sdk.execution.errors import at_node


def has_reference(op: str) -> bool:
    """Returns whether `reference_launcher` can compute the op: it has a reference, and needs nothing but its inputs."""
    found = registry.find(op)
    return found is not None and found.reference is not None and not found.on_host


_computed: Counter[tuple[str, str]] = Counter()
_counting = threading.Lock()


def times_computed(device_type: str) -> Mapping[str, int]:
    """Returns how often `compute` has computed each op for devices of this type, in this process and so far."""
    with _counting:
        return {op: count for (kind, op), count in _computed.items() if kind == device_type}


def compute(node: KernelNode, inputs: Sequence[np.ndarray], wide: bool = True) -> tuple[np.ndarray, ...]:
    """Returns the outputs of a node from the values of all its inputs, in the node's dtypes.

    A node that has a stream draws from it. wide: floats are computed in float64 and rounded once; else in their own
    dtype. Raises the reference's OpError with op and node before the message, InvalidArgumentError where NumPy refuses
    the values, UnknownError for any other exception, UnimplementedError for an op without a reference.
    """
    op = registry.get(node.op)
    head = f"{node.op} '{node.name}'"
    with _counting:
        _computed[node.device.type, node.op] += 1
    if op.reference is None:
        raise UnimplementedError(f"{head}: the op has no reference; it needs a kernel", node.name)
    try:
        with np.errstate(all="ignore"):
            if op.stream is not None and node.stream is not None:
                found = _draw(op, node, inputs)
            else:
                found = evaluate(op, node.attrs, [widen(x) for x in inputs] if wide else inputs)
            results = tuple(_rounded(x, v.dtype) for x, v in zip(found, node.outputs, strict=True))
    except OpError as e:
        if e.node:
            raise
        raise at_node(e, node) from e
    except MemoryError as e:
        raise ResourceExhaustedError(f"{head}: the host's memory does not suffice ({e})", node.name) from None
    except Exception as e:
        kind = class_for(e)
        fact = f"its reference raised {raised(e)}" if kind is UnknownError else str(e)
        raise kind(f"{head}: {fact}", node.name) from e
    for value, x in zip(node.outputs, results, strict=True):
        if x.shape != value.shape and not value.dynamic:
            fact = f"these values give an output of shape {x.shape}; the run was planned for {value.shape}"
            raise InvalidArgumentError(f"{head}: {fact}", node.name)
    return results


def reference_launcher(node: KernelNode, wide: bool = True) -> Launcher:
    """Returns the builder of a kernel on host arrays that calls the op's reference, for any op
    that has one; see `compute`.

    Inputs that launchers do not get come from the node. Of an output whose size the op decides, the launcher fills the
    first elements and returns the true shape.
    """
    passed = passed_inputs(node)
    planned: dict[int, Any] = {i: node.const(i) for i in range(len(node.inputs)) if i not in passed}

    def launch(*arrays: np.ndarray) -> list[tuple[int, ...]] | None:
        given = dict(zip(passed, arrays, strict=False))
        results = compute(node, [planned[i] if i in planned else given[i] for i in range(len(node.inputs))], wide)
        shapes = []
        for value, out, result in zip(node.outputs, arrays[len(passed) :], results, strict=False):
            if value.dynamic:
                out.reshape(-1)[: result.size] = result.reshape(-1)
                shapes.append(result.shape)
            else:
                out[...] = result
        return shapes or None

    return launch


def reference_kernels(device: str, ops: Iterable[str], *, wide: bool = True) -> list[KernelDef]:
    """Kernels by reference of these ops, for all dtypes that they are defined for; wide: see `compute`.

    They are marked as `fallback`. device: a type with `host_memory`.
    """
    build = reference_launcher if wide else _launcher_in_own_dtype
    return [
        KernelDef(op, device, build, types, fallback=True)
        for op in ops
        for types in registry.get(op).defined_for or ({},)
    ]


def _launcher_in_own_dtype(node: KernelNode) -> Launcher:
    return reference_launcher(node, wide=False)


def _draw(op: OpDef, node: KernelNode, inputs: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Returns random numbers from the node's stream, the same as on every device."""
    from timberframe_ops.random.philox import Philox  # here, since there are ops with streams where this is

    assert op.stream is not None
    assert node.stream is not None
    blocks = op.stream.blocks(node.attrs, [v.shape for v in node.inputs], node.outputs[0].shape)
    philox = Philox.seeded(*node.stream.start(node.attrs)).skip(node.stream.reserve(blocks))
    return as_arrays(op.stream.sample(node.attrs, philox, *inputs))


def _rounded(x: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """x rounded once to a dtype, to nearest and ties to even; integers are taken modulo 2**n."""
    return x if x.dtype == dtype else x.astype(dtype)
