"""Runs one kernel by itself, without graph or session: for the tests of a kernel family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.signature import ArgDef, as_float
from timberframe_cpu.allocator import CpuAllocator
from timberframe_cpu.generated import source_kernels
from timberframe_cpu.kernels import all_kernels
from timberframe_cpu.native import call, using_isa
from timberframe_sdk import (
    DType,
    InferenceContext,
    InternalError,
    InvalidArgumentError,
    KernelNode,
    KernelRegistry,
    OpDef,
    OpError,
    RandomStream,
    StaticShape,
    UnknownError,
    Value,
    arg_ranges,
    as_dtype,
    check_size,
    is_static,
    resource,
)
from timberframe_sdk.native import Native
from timberframe_sdk.testing.guard import GuardedArray, fenced

_DEVICE: Any = SimpleNamespace(type="CPU", threads=1, matmul_precision="float32", allocator=CpuAllocator())
"""What nodes name as their device: builders of single kernels ask no more of it."""


@cache
def _registry() -> KernelRegistry:
    kernels = KernelRegistry()
    kernels.register(all_kernels())
    kernels.add_generator(source_kernels)
    return kernels


def run_op(
    op_name: str,
    attrs: Mapping[str, Any] | None = None,
    inputs: Sequence[Any] = (),
    isa: str | None = None,
    *,
    constants: Sequence[int] = (),
    threads: int = 1,
    name: str = "node",
    fence: str = "end",
) -> list[np.ndarray]:
    """Returns the outputs of one op on these inputs (arrays; lists of arrays for list inputs), by the CPU's kernel.

    A variable's value is given in the place of its handle; new values of variables come before the other outputs. Type
    and number attrs are taken from the inputs where `attrs` lacks them. isa: kernel variant, None for the best.
    constants: flat indices of inputs that the builder sees as constants, and may have prepared, besides the op's
    `shape` inputs. Raises what the shape function or the kernel reports, and InternalError when the kernel wrote
    outside its outputs or into an input. fence: the end of the inputs, ``start`` or ``end``, that lies at a page which
    nobody may read, so that a kernel that reads on ends the process; empty for none.
    """
    op = registry.get(op_name)
    full = infer_attrs(op, dict(attrs or {}), inputs)
    flat, shape_only = _flatten(op, inputs, full)
    planned = _planned(op, full, flat)
    node = _node(op, name, full, flat, shape_only | planned | set(constants))
    kernel = _registry().require(node)
    with using_isa(isa):
        launcher = kernel.build(node)
    for given in node.preparations:
        flat[given.input] = given.make(flat[given.input])
    data = [fenced(x, fence) for i, x in enumerate(flat) if i not in shape_only]
    outputs = [GuardedArray(v.dtype, v.shape) for v in node.outputs]
    workspace = GuardedArray(np.dtype(np.uint8), (node.workspace_bytes,)) if node.workspace_bytes else None
    before = [x.copy() for x in data]
    shapes = _launch(launcher, node, data, [o.array for o in outputs], workspace.array if workspace else None, threads)
    for i, guarded in enumerate([*outputs, *([workspace] if workspace else [])]):
        guarded.check(f"{op_name} '{name}': output {i}" if i < len(outputs) else f"{op_name} '{name}': workspace")
    for i, (x, old) in enumerate(zip(data, before, strict=True)):
        if x.tobytes() != old.tobytes():
            raise InternalError(f"{op_name} '{name}': data input {i} was written; kernels only read inputs", name)
    return [_true_part(o.array, shape) for o, shape in zip(outputs, shapes, strict=True)]


def _planned(op: OpDef, attrs: Mapping[str, Any], flat: Sequence[np.ndarray]) -> set[int]:
    ranges = arg_ranges(op.inputs, attrs)
    return {i for name in op.planned_inputs(attrs, flat) for i in ranges[name]}


def _launch(
    launcher: Any,
    node: KernelNode,
    inputs: list[np.ndarray],
    outputs: list[np.ndarray],
    workspace: np.ndarray | None,
    threads: int,
) -> Sequence[StaticShape]:
    if isinstance(launcher, Native):
        return call(launcher, inputs, outputs, workspace, threads, node.op, node.name)
    try:
        shapes = launcher(*inputs, *outputs, *([] if workspace is None else [workspace]))
    except OpError:
        raise
    except Exception as error:
        raise UnknownError(f"{node.op} '{node.name}': {type(error).__name__}: {error}", node.name) from error
    if shapes is None:
        return [o.shape for o in outputs]
    known = iter(shapes)
    return [next(known) if v.dynamic else o.shape for v, o in zip(node.outputs, outputs, strict=True)]


def _true_part(a: np.ndarray, shape: StaticShape) -> np.ndarray:
    size = int(np.prod(shape, dtype=np.int64))
    return a if a.shape == shape else a.reshape(-1)[:size].reshape(shape).copy()


def _node(op: OpDef, name: str, attrs: Mapping[str, Any], flat: list[np.ndarray], constants: set[int]) -> KernelNode:
    values = [x if i in constants else None for i, x in enumerate(flat)]
    ranges = arg_ranges(op.inputs, attrs)
    held = {i: flat[i] for n in (*op.reads, *op.updates) for i in ranges[n]}
    handles = [(as_dtype(x.dtype), x.shape) if i in held else None for i, x in enumerate(flat)]
    dtypes = [resource if i in held else as_dtype(x.dtype) for i, x in enumerate(flat)]
    known = [() if i in held else x.shape for i, x in enumerate(flat)]
    context = InferenceContext(op, name, attrs, known, values, dtypes, handles)
    shapes = list(op.shape(context))
    dynamic = [not is_static(s) for s in shapes]
    if any(dynamic):
        if op.bound is None:
            raise InternalError(
                f"{op.name} '{name}': output shapes {shapes}; they must be known, or have a bound", name
            )
        shapes = list(op.bound(context))
    ins = [
        Value(i, x.dtype, x.shape, "const" if i in constants else "input", x if i in constants else None)
        for i, x in enumerate(flat)
    ]
    new = [flat[i] for n in op.updates for i in ranges[n]]
    outs = [Value(-1 - i, x.dtype, x.shape) for i, x in enumerate(new)]
    outs += [
        Value(len(flat) + i, t.numpy, check_size([d or 0 for d in s or ()]), dynamic=is_dynamic)
        for i, (t, s, is_dynamic) in enumerate(zip(output_dtypes(op, attrs), shapes, dynamic, strict=True))
    ]
    node = KernelNode(op.name, name, attrs, ins, outs, device=_DEVICE)
    node.stream = None if op.stream is None else RandomStream()
    return node


def _arg_dtypes(arg: ArgDef, attrs: Mapping[str, Any]) -> list[DType]:
    if arg.type_list_attr:
        return list(attrs[arg.type_list_attr])
    dtype = arg.dtype or attrs[arg.type_attr or ""]
    return [dtype] * (attrs[arg.number_attr] if arg.number_attr else 1)


def output_dtypes(op: OpDef, attrs: Mapping[str, Any]) -> list[DType]:
    """Returns the dtypes of an op's outputs, lists flat."""
    return [t for arg in op.outputs for t in _arg_dtypes(arg, attrs)]


def infer_attrs(op: OpDef, attrs: dict[str, Any], inputs: Sequence[Any]) -> dict[str, Any]:
    """Returns all attrs of an op: those given, those of the inputs, and defaults.

    InvalidArgumentError for a wrong one.
    """
    for arg, given in zip(op.inputs, inputs, strict=True):
        many = [np.asarray(x) for x in (given if arg.is_list else [given])]
        if arg.number_attr:
            attrs.setdefault(arg.number_attr, len(many))
        if arg.type_list_attr:
            attrs.setdefault(arg.type_list_attr, tuple(as_dtype(x.dtype) for x in many))
        if arg.type_attr and many:
            attrs.setdefault(arg.type_attr, as_dtype(many[0].dtype))
    for attr in op.attrs.values():
        if attr.name not in attrs and attr.required:
            raise InvalidArgumentError(f"{op.name}: attr {attr.name} is missing; it has no default")
        attrs.setdefault(attr.name, attr.default)
        if attr.kind == "type":
            attrs[attr.name] = as_dtype(attrs[attr.name])
        elif attr.kind == "float":
            attrs[attr.name] = as_float(attrs[attr.name])
        elif attr.kind == "list(type)":
            attrs[attr.name] = tuple(as_dtype(t) for t in attrs[attr.name])
        wrong = attr.check(attrs[attr.name])
        if wrong:
            raise InvalidArgumentError(f"{op.name}: {wrong}")
    return attrs


def _flatten(op: OpDef, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[list[np.ndarray], set[int]]:
    flat: list[np.ndarray] = []
    shape_only: set[int] = set()
    for arg, given in zip(op.inputs, inputs, strict=True):
        dtypes = _arg_dtypes(arg, attrs)
        for x, dtype in zip(given if arg.is_list else [given], dtypes, strict=True):
            if op.input_role(arg) == "shape":
                shape_only.add(len(flat))
            held = dtype is resource  # in its place the variable's value, of any dtype
            flat.append(np.array(x, None if held else dtype.numpy, order="C", copy=None))
    return flat, shape_only
