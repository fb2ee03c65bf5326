"""What builders and launchers return, checked: a mistake names the kernel that made it."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_core.errors import InternalError, OpError, UnknownError
from timberframe_core.ops.definition import registry
from timberframe_core.ops.random.philox import Philox
from timberframe_core.plugin.contracts import KernelDef, KernelNode, Launcher, Value
from timberframe_core.plugin.nodes import passed_inputs


def build_kernel(kernel: KernelDef, node: KernelNode) -> Any:
    """What the kernel's builder makes of a node; any exception of it comes out as an OpError that names both."""
    head = f"{node.op} '{node.name}'"
    try:
        built = kernel.build(node)
    except OpError as e:
        raise e if e.node else type(e)(f"{head}: {e}", node.name) from e
    except Exception as e:
        raise UnknownError(f"{head}: kernel {kernel.origin()} raised {type(e).__name__}: {e}", node.name) from e
    if built is None:
        raise InternalError(f"{head}: kernel {kernel.origin()} built None; a launcher is required", node.name)
    return built


def true_shapes(node: KernelNode, returned: Any) -> list[tuple[Value, tuple[int, ...]]]:
    """The outputs whose size only their kernel knows, with the shapes that its launcher returned.

    What a launcher without such outputs returns does not matter (NumPy functions return their `out`).
    """
    dynamic = [v for v in node.outputs if v.dynamic]
    if not dynamic:
        return []
    try:
        shapes = [tuple(int(d) for d in shape) for shape in returned]
    except TypeError:
        shapes = []
    if len(shapes) != len(dynamic):
        raise InternalError(
            f"{node.op} '{node.name}': its launcher returned {returned!r}; "
            f"a list of {len(dynamic)} true shapes is required",
            node.name,
        )
    return list(zip(dynamic, shapes, strict=True))


def random_launcher(node: KernelNode) -> Launcher:
    """A launcher for a random op on host arrays, in NumPy: a stateful one draws from the node's stream.

    Its numbers are those of every device: raw bits, integers, uniforms and shuffles to the bit.
    """
    op = registry.get(node.op)
    passed, attrs, stream = passed_inputs(node), node.attrs, node.stream

    def launch(*arrays: np.ndarray) -> None:
        given = dict(zip(passed, arrays, strict=False))
        inputs = [given[i] if i in given else node.const(i) for i in range(len(node.inputs))]
        outputs = arrays[len(passed) :]
        if op.stream is None or stream is None:
            assert op.reference is not None
            found = op.reference(attrs, *inputs)
        else:
            seeds = attrs["seed"], attrs["seed2"]
            first = stream.reserve(op.stream.blocks(attrs, [v.shape for v in node.inputs], node.outputs[0].shape))
            philox = Philox.seeded(*(seeds if any(seeds) else stream.seeds)).skip(first)
            found = op.stream.sample(attrs, philox, *inputs)
        for value, out in zip(found if isinstance(found, tuple) else (found,), outputs, strict=True):
            np.copyto(out, value, casting="unsafe")

    return launch
