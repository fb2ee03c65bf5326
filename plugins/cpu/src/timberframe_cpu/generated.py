"""Kernels of elementwise ops that have a source in the SDK's table, and none by hand.

Those of the table's own ops come with the build (csrc/elementwise/generate.py); others are compiled by the system's C
compiler, once and into a cache, when a node first needs them. Without a compiler the op's reference computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from timberframe_cpu.broadcast import CHEAP, COSTLY
from timberframe_cpu.kernels.binary import elementwise
from timberframe_cpu.loops import OPERANDS, includes, loop_source
from timberframe_cpu.native import built_isa, find, isa
from timberframe_sdk import KernelDef, KernelNode, NotFoundError, OpDef, logging
from timberframe_sdk.elementwise.expressions import literals, source_types
from timberframe_sdk.elementwise.sources import SOURCES, Source
from timberframe_sdk.native import Native
from timberframe_sdk.reference import reference_launcher

_GRAIN, _FUNCTION_GRAIN = CHEAP // 4, COSTLY // 8  # elements worth a thread; of ops that call functions of float64


def source_kernels(op: OpDef) -> list[KernelDef]:
    """Returns the CPU's kernel of an op that has a source; none for an op without one."""
    types = source_types(op)
    if types is None or len(op.inputs) > OPERANDS or op.outputs[0].is_list:
        return []
    result = op.outputs[0]
    own = [k for k, a in enumerate(op.inputs) if (a.type_attr, a.dtype) == (result.type_attr, result.dtype)]
    return [KernelDef(op.name, "CPU", build, types, inplace=tuple((0, k) for k in own))]


def build(node: KernelNode) -> Native | Callable[..., None]:
    """Returns the kernel that the build made, or one that is compiled now, or the reference."""
    operands = [v.dtype.name for v in node.inputs]
    built_in = f"{node.op}_{operands[-1]}"
    source = SOURCES[node.op]
    grain = _FUNCTION_GRAIN if source.needs_float64 else _GRAIN
    try:
        find(built_in, isa())
    except NotFoundError:
        address = _compiled(node, operands)
        return elementwise(node, "elementwise_loop", grain, more=(address, len(operands))) if address else _slow(node)
    return elementwise(node, built_in, grain, more=_attr_values(source, node))


def _attr_values(source: Source, node: KernelNode) -> list[float]:
    """Returns the attrs that a kernel of the build takes."""
    types = source.attr_types()
    return [int(node.attrs[a]) if t == "int64_t" else float(node.attrs[a]) for a, t in types.items()]


def _compiled(node: KernelNode, operands: Sequence[str]) -> int:
    """Address of the op's loop, compiled for this node's dtypes and attrs; 0, with a warning, where that fails."""
    import subprocess  # here, both: most programs compile nothing, and these take long to import

    from timberframe_cpu.compiled import FUNCTION, compiler, sources

    source = SOURCES[node.op]
    loop = loop_source(FUNCTION, source, operands, node.outputs[0].dtype.name, literals(node.attrs))
    if not loop or compiler() is None:
        return 0
    try:
        return sources.function(includes(source) + loop, built_isa())
    except subprocess.CalledProcessError as e:
        logging.warning("%s: its source does not compile: %s", node.op, e.stderr.decode(errors="replace").strip())
    except OSError as e:
        logging.warning("%s: its source was not compiled: %s", node.op, e)
    return 0


def _slow(node: KernelNode) -> Callable[..., None]:
    launch: Callable[..., Any] = reference_launcher(node)
    return launch
