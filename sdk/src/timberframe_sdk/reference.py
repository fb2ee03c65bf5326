"""Ops computed by the references of their OpDefs, in NumPy: any op that has one, for any device that shows host arrays.

A KernelDevice with `by_reference` has a kernel of this kind wherever it has no other; a device with a compiler of its
own may call `compute` for nodes that it cannot translate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from timberframe_core.errors import (
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
    UnimplementedError,
    UnknownError,
)
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.ops.random.philox import Philox
from timberframe_core.plugin.contracts import KernelDef, KernelNode, Launcher
from timberframe_core.plugin.nodes import passed_inputs

WIDER: Mapping[np.dtype[Any], type] = {
    np.dtype(np.float16): np.float64,
    np.dtype(ml_dtypes.bfloat16): np.float64,
    np.dtype(np.float32): np.float64,
    np.dtype(np.complex64): np.complex128,
}
"""What an array is converted to before a reference sees it, where the result is to be exact but for one rounding."""


def widen(array: np.ndarray) -> np.ndarray:
    """float64 or complex128 for narrower floats, the array itself for everything else."""
    wider = WIDER.get(array.dtype)
    return array if wider is None else array.astype(wider)


def has_reference(op: str) -> bool:
    """Whether `reference_launcher` can compute the op: it has a reference, and needs nothing but its inputs."""
    found = registry.find(op)
    return found is not None and found.reference is not None and not found.on_host


def evaluate(op: OpDef, attrs: Mapping[str, Any], inputs: Sequence[np.ndarray | None]) -> tuple[np.ndarray, ...]:
    """What the op's reference gives for these inputs, in the dtypes that it computes in, each output as an array."""
    assert op.reference is not None, f"op {op.name} has no reference"
    return _arrays(op.reference(attrs, *inputs))


_computed: set[tuple[str, str]] = set()


def computed_ops(device_type: str) -> frozenset[str]:
    """The ops that `compute` has computed for devices of this type, in this process and so far."""
    return frozenset(op for kind, op in tuple(_computed) if kind == device_type)


def compute(node: KernelNode, inputs: Sequence[np.ndarray], wide: bool = True) -> tuple[np.ndarray, ...]:
    """The outputs of a node from the values of all its inputs, in the node's dtypes.

    A node that has a stream draws from it. wide: floats are computed in float64 and rounded once; else in their own
    dtype. Raises the reference's OpError with op and node before the message, InvalidArgumentError where NumPy refuses
    the values, UnknownError for any other exception, UnimplementedError for an op without a reference.
    """
    op = registry.get(node.op)
    head = f"{node.op} '{node.name}'"
    _computed.add((node.device.type, node.op))
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
        raise e if e.node else type(e)(f"{head}: {e}", node.name) from e
    except MemoryError as e:
        raise ResourceExhaustedError(f"{head}: the host's memory does not suffice ({e})", node.name) from None
    except (ValueError, IndexError, ArithmeticError) as e:  # NumPy's words for values that the op does not accept
        raise InvalidArgumentError(f"{head}: {e}", node.name) from e
    except Exception as e:
        raise UnknownError(f"{head}: its reference raised {type(e).__name__}: {e}", node.name) from e
    for value, x in zip(node.outputs, results, strict=True):
        if x.shape != value.shape and not value.dynamic:
            fact = f"these values give an output of shape {x.shape}; the run was planned for {value.shape}"
            raise InvalidArgumentError(f"{head}: {fact}", node.name)
    return results


def reference_launcher(node: KernelNode, wide: bool = True) -> Launcher:
    """The builder of a kernel on host arrays that calls the op's reference, for any op that has one; see `compute`.

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
    """Random numbers from the node's stream, the same as on every device."""
    assert op.stream is not None
    assert node.stream is not None
    seeds = node.attrs["seed"], node.attrs["seed2"]
    blocks = op.stream.blocks(node.attrs, [v.shape for v in node.inputs], node.outputs[0].shape)
    philox = Philox.seeded(*(seeds if any(seeds) else node.stream.seeds)).skip(node.stream.reserve(blocks))
    return _arrays(op.stream.sample(node.attrs, philox, *inputs))


def _arrays(result: Any) -> tuple[np.ndarray, ...]:
    outputs = result if isinstance(result, tuple | list) else (result,)
    return tuple(x if isinstance(x, np.ndarray) else np.asarray(x) for x in outputs)


def _rounded(x: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """x rounded once to a dtype, to nearest and ties to even; integers are taken modulo 2**n."""
    return x if x.dtype == dtype else x.astype(dtype)
