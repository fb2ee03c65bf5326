"""Tensors of the device: a dtype and a shape of NumPy's, in a part of a buffer that torch allocated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from timberframe_sdk import Allocator, Buffer
from timberframe_torch import lazy as torch

POISON = 0x7F
"""Bytes between the elements of a view, so that a kernel that ignores strides gives what no one can miss."""


class TorchAllocator(Allocator):
    """Allocates bytes by torch on one device, where torch keeps what is given back for what comes next."""

    def __init__(self, device: Any, limit: int | None) -> None:
        super().__init__(limit)
        self.device = device

    def raw(self, nbytes: int) -> Any:
        """Returns a tensor of bytes; MemoryError where the device has no room."""
        try:
            return torch.empty(max(nbytes, 1), dtype=torch.uint8, device=self.device)
        except (torch.OutOfMemoryError, RuntimeError) as e:
            raise MemoryError(str(e).strip().splitlines()[0]) from e


@dataclass(frozen=True)
class Layout:
    """Where the elements of a view lie. strides, offset: in elements. span: elements from its first to its last."""

    strides: tuple[int, ...]
    offset: int
    span: int


@dataclass(eq=False)
class TorchArray:
    """A tensor. first, nbytes: of its bytes in the buffer, with those between its elements. layout: None if dense."""

    buffer: Buffer
    first: int
    nbytes: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    layout: Layout | None
    tensor: Any

    @property
    def whole(self) -> Any:
        """Its bytes, as a tensor of one dimension."""
        return self.buffer.handle.narrow(0, self.first, self.nbytes)


def torch_dtype(dtype: np.dtype[Any]) -> Any:
    """Returns torch's dtype for one of NumPy's."""
    return getattr(torch, dtype.name)


def array_in(
    buffer: Buffer, first: int, dtype: np.dtype[Any], shape: tuple[int, ...], layout: Layout | None = None
) -> TorchArray:
    """Returns the tensor whose bytes begin at `first` in a buffer."""
    count = math.prod(shape) if layout is None else layout.offset + layout.span
    nbytes = count * dtype.itemsize
    if not math.prod(shape):
        tensor = torch.empty(shape, dtype=torch_dtype(dtype), device=buffer.handle.device)
        return TorchArray(buffer, first, 0, dtype, shape, None, tensor)
    flat = buffer.handle.narrow(0, first, nbytes).view(torch_dtype(dtype))
    if layout is None:
        tensor = flat.view(shape)
    else:
        tensor = flat.as_strided(shape, layout.strides, flat.storage_offset() + layout.offset)
    return TorchArray(buffer, first, nbytes, dtype, shape, layout, tensor)


def layout_of(x: np.ndarray) -> Layout | None:
    """Returns how the elements of a host array lie; None where they lie in order, or as no tensor of torch can.

    Strides of torch are not negative, and are numbers of elements. An array that is part of another one begins where it
    does there.
    """
    if x.size == 0 or x.ndim == 0 or any(s < 0 or s % x.itemsize for s in x.strides):
        return None
    strides = tuple(s // x.itemsize for s in x.strides)
    whole = x.base
    before = x.ctypes.data - whole.ctypes.data if isinstance(whole, np.ndarray) else 0
    offset = before // x.itemsize if before > 0 and before % x.itemsize == 0 and before < x.nbytes else 0
    if x.flags.c_contiguous and not offset:
        return None
    return Layout(strides, offset, 1 + sum((d - 1) * s for d, s in zip(x.shape, strides, strict=True)))


def view_of(shape: Sequence[int]) -> Layout | None:
    """Returns a layout with gaps and an offset, which no kernel may take for dense; None without elements."""
    if not math.prod(shape):
        return None
    strides, step = [], 2
    for d in reversed(shape):
        strides.append(step)
        step *= d + 1
    found = tuple(reversed(strides))
    return Layout(found, 3, 1 + sum((d - 1) * s for d, s in zip(shape, found, strict=True)))


def host_bytes(x: np.ndarray, layout: Layout | None) -> np.ndarray:
    """Returns the bytes of a host array, in order or as a layout has them, with poison where there is no element."""
    if layout is None:
        return np.array(x, order="C").reshape(-1).view(np.uint8)
    found = np.full((layout.offset + layout.span) * x.itemsize, POISON, np.uint8)
    inside = found.view(x.dtype)[layout.offset :]
    strides = [s * x.itemsize for s in layout.strides]
    np.lib.stride_tricks.as_strided(inside, x.shape, strides)[...] = x
    return found


def from_bytes(found: np.ndarray, dtype: np.dtype[Any], shape: tuple[int, ...], layout: Layout | None) -> np.ndarray:
    """Returns the host array whose bytes `host_bytes` gave."""
    if layout is None:
        return found.view(dtype).reshape(shape)
    inside = found.view(dtype)[layout.offset :]
    return np.array(np.lib.stride_tricks.as_strided(inside, shape, [s * dtype.itemsize for s in layout.strides]))
