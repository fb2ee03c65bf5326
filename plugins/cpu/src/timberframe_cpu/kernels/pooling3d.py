"""Pooling over windows of volumes."""

from __future__ import annotations

from collections.abc import Sequence

from timberframe_cpu.native import native
from timberframe_sdk import KernelDef, KernelNode
from timberframe_sdk.native import Native
from timberframe_sdk.plans.pooling import windows


def _volumes(kernel: str, node: KernelNode, x: Sequence[int], y: Sequence[int]) -> Native:
    """Parameters: struct volume_shape of csrc/pool/pool3d.c; where channels come first, each is a volume with one."""
    w = windows(node, x, y)
    return native(
        f"{kernel}_{node.attrs['T'].name}", w.batch, w.inner, *w.size, *w.out, *w.window, *w.stride, *w.before
    )


def _max_pool(node: KernelNode) -> Native:
    return _volumes("max_pool3d", node, node.inputs[0].shape, node.outputs[0].shape)


def _avg_pool(node: KernelNode) -> Native:
    return _volumes("avg_pool3d", node, node.inputs[0].shape, node.outputs[0].shape)


def _max_pool_grad(node: KernelNode) -> Native:
    return _volumes("max_pool3d_grad", node, node.inputs[0].shape, node.inputs[1].shape)


def _max_pool_grad_grad(node: KernelNode) -> Native:
    return _volumes("max_pool3d_grad_grad", node, node.inputs[0].shape, node.inputs[1].shape)


def _avg_pool_grad(node: KernelNode) -> Native:
    return _volumes("avg_pool3d_grad", node, node.outputs[0].shape, node.inputs[1].shape)


_FLOATS = ("float32", "float16", "bfloat16")

KERNELS = [
    KernelDef("MaxPool3D", "CPU", _max_pool, {"T": _FLOATS}),
    *(KernelDef("MaxPool3DGrad", "CPU", _max_pool_grad, {"T": (t,), "TInput": (t,)}) for t in _FLOATS),
    KernelDef("MaxPool3DGradGrad", "CPU", _max_pool_grad_grad, {"T": _FLOATS}),
    KernelDef("AvgPool3D", "CPU", _avg_pool, {"T": (*_FLOATS, "float64")}),
    KernelDef("AvgPool3DGrad", "CPU", _avg_pool_grad, {"T": (*_FLOATS, "float64")}),
]
