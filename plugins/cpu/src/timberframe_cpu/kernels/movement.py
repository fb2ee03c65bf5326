"""Kernels that move elements: copies, transposes, slices, joins, borders, blocks, and tensors of one element."""

from __future__ import annotations

from timberframe_cpu.moves import plan
from timberframe_cpu.native import native
from timberframe_cpu.strings import copies, with_strings
from timberframe_sdk import NUMERIC, KernelDef, KernelNode, Launcher
from timberframe_sdk.native import Native
from timberframe_sdk.plans.moves import COPIES, PLANS, dense, itemsize, literal
from timberframe_sdk.plans.moves.mirror import mirrored_dimensions
from timberframe_sdk.plans.moves.slices import (
    Selection,
    slice_limits,
    slice_move,
    strided_slice_grad_move,
    strided_slice_move,
)


def copy(node: KernelNode) -> Native | Launcher:
    """Returns what copies: the output has the input's bytes."""
    if node.outputs[0].dtype.hasobject:
        return copies(node)
    return native("copy", node.outputs[0].nbytes)


def copy_each(node: KernelNode) -> Native | Launcher:
    """Returns what copies: each output has the bytes of the input at its index."""
    if any(v.dtype.hasobject for v in node.outputs):
        return copies(node)
    return plan([[(dense((x.nbytes,), 1, i), dense((x.nbytes,), 1, i)) for i, x in enumerate(node.outputs)]], 1)


@with_strings
def moved(node: KernelNode) -> Native:
    """What the op's plan says; a transpose may also conjugate."""
    kernel = "move"
    if node.op == "ConjugateTranspose" and node.outputs[0].dtype.kind == "c":
        kernel = f"move_conjugate_{node.outputs[0].dtype.name}"
    return plan(PLANS[node.op](node), itemsize(node), literal(node), kernel)


@with_strings
def slice_block(node: KernelNode) -> Native:
    """Which block is decided at each launch: begin is read then, and checked."""
    from timberframe_core.ops.base.array.slicing import BEGIN_OUTSIDE

    limits = [x for pair in slice_limits(node) for x in pair]
    moves = plan([[slice_move(node)]], itemsize(node)).parameters
    return native("slice", len(limits) // 2, *limits, *moves, reasons=(BEGIN_OUTSIDE,))


def _words(selections: list[Selection]) -> list[int]:
    return [x for selection in selections for x in selection]


def _selection_errors() -> tuple[str, str]:
    from timberframe_core.ops.base.array.strided_slice import COUNTS_DIFFER, INDEX_OUTSIDE

    return INDEX_OUTSIDE, COUNTS_DIFFER


@with_strings
def strided_slice(node: KernelNode) -> Native:
    """A move where begin and end are constants; else they are read at each launch, and held against the plan."""
    part, whole, late = strided_slice_move(node)
    move = plan([[(part, whole)]], itemsize(node))
    if not late:
        return move
    return native("strided_slice", len(late), *_words(late), *move.parameters, reasons=_selection_errors())


@with_strings
def strided_slice_grad(node: KernelNode) -> Native:
    """Zeros, then a move into them."""
    whole, part, late = strided_slice_grad_move(node)
    words = *_words(late), *plan([[(whole, part)]], itemsize(node)).parameters
    return native("strided_slice_grad", node.outputs[0].nbytes, len(late), *words, reasons=_selection_errors())


def mirror_pad_grad(node: KernelNode) -> Native:
    """Parameters: see csrc/movement/mirror.c."""
    dtype = str(node.inputs[0].dtype).removeprefix("u")  # wrapping sums are the same for unsigned integers
    reflect, unit, dimensions = mirrored_dimensions(node)
    words = [x for dimension in dimensions for x in dimension]
    return native(f"mirror_pad_grad_{dtype}", len(dimensions), reflect, unit, *words)


KERNELS: list[KernelDef] = [
    *(KernelDef(op, "CPU", copy, inplace=((0, 0),)) for op in (*COPIES, "PlaceholderWithDefault")),
    *(KernelDef(op, "CPU", moved) for op in PLANS),
    KernelDef("Snapshot", "CPU", copy),
    KernelDef("DeepCopy", "CPU", copy),
    KernelDef("IdentityN", "CPU", copy_each),
    KernelDef("Slice", "CPU", slice_block),
    KernelDef("StridedSlice", "CPU", strided_slice),
    KernelDef("StridedSliceGrad", "CPU", strided_slice_grad),
    KernelDef("MirrorPadGrad", "CPU", mirror_pad_grad, {"T": tuple(t.name for t in NUMERIC)}),
]
