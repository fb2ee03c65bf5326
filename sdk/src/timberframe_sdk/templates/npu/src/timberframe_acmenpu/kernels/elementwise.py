"""Ops on elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import timberframe_sdk as sdk
from timberframe_acmenpu.kernels.declare import kernel

KERNELS: list[sdk.KernelDef] = []


@kernel(KERNELS, "AddV2")
def add(node: sdk.KernelNode) -> Callable[..., Any]:
    return lambda x, y, out: np.add(x, y, out=out)


@kernel(KERNELS, "Sub")
def subtract(node: sdk.KernelNode) -> Callable[..., Any]:
    return lambda x, y, out: np.subtract(x, y, out=out)


@kernel(KERNELS, "Mul")
def multiply(node: sdk.KernelNode) -> Callable[..., Any]:
    return lambda x, y, out: np.multiply(x, y, out=out)


@kernel(KERNELS, "Relu", inplace=((0, 0),))
def relu(node: sdk.KernelNode) -> Callable[..., Any]:
    zero = node.outputs[0].dtype.type(0)
    return lambda x, out: np.maximum(x, zero, out=out)


@kernel(KERNELS, "Relu6", inplace=((0, 0),))
def relu6(node: sdk.KernelNode) -> Callable[..., Any]:
    zero, six = node.outputs[0].dtype.type(0), node.outputs[0].dtype.type(6)
    return lambda x, out: np.minimum(np.maximum(x, zero), six, out=out)


@kernel(KERNELS, "Reshape")
def reshape(node: sdk.KernelNode) -> Callable[..., Any]:
    return lambda x, out: np.copyto(out, x.reshape(out.shape))
