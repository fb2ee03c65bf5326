"""Backends with known bugs: each puts a wrong kernel in the place of one of the CPU's, in torch's own dispatcher."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

Kernel = Callable[..., Any]


@dataclass(frozen=True)
class Mutant:
    """A bug of a backend. kernel: takes the place of torch's for `name`. op: Timberframe's that shows it.

    suite: the one whose cases find it. says: a pattern of what the message of a failure must say, so that the cause is
    plain.
    """

    title: str
    name: str
    op: str
    kernel: Kernel
    says: str
    suite: str = "forward"


def memory(x: Any, first: int) -> Any:
    """Returns the elements of a tensor as a kernel finds them that takes them for dense, from an offset on."""
    flat = np.frombuffer(bytes(x.untyped_storage()), np.dtype(str(x.dtype).removeprefix("torch.")))
    found = flat[first : first + x.numel()]
    return torch.from_numpy(np.resize(found, x.numel()).copy()).reshape(x.shape) if x.numel() else torch.empty(x.shape)


def numpy_of(*tensors: Any) -> list[np.ndarray]:
    """Returns the tensors as arrays, which NumPy computes with: no kernel of torch has a part in it."""
    return [t.detach().numpy() for t in tensors]


def result(x: Any) -> Any:
    """Returns a new tensor of an array."""
    return torch.from_numpy(np.array(x))


def relu_ignores_strides(x: Any) -> Any:
    """It reads elements one after the other, whatever the strides."""
    return result(np.maximum(memory(x, x.storage_offset()).numpy(), 0))


def tanh_ignores_offset(x: Any) -> Any:
    """It begins at the first element of the storage, in the order of the strides."""
    return result(np.tanh(x.as_strided(x.shape, x.stride(), 0).numpy().astype(np.float64)).astype(np.float32))


def cat_drops_last(tensors: Any, dim: int = 0) -> Any:
    """The last tensor's elements are those of the first."""
    arrays = numpy_of(*tensors)
    last = np.resize(arrays[0], arrays[-1].shape) if len(arrays) > 1 else arrays[-1]
    return result(np.concatenate([*arrays[:-1], last], dim))


def index_select_clamps(x: Any, dim: int, index: Any) -> Any:
    """Indices outside are those of the first or last slice."""
    array, indices = numpy_of(x, index)
    return result(np.take(array, indices, dim, mode="clip"))


def sub_exchanges(x: Any, y: Any, *, alpha: float = 1) -> Any:
    """y - x."""
    a, b = numpy_of(x, y)
    return result((b - a).astype(a.dtype))


def mean_divides_by_all(x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """It divides by the number of all elements, not by that of those it has added."""
    (a,) = numpy_of(x)
    return result((a.sum(tuple(dim), keepdims=keepdim) / max(a.size, 1)).astype(a.dtype))


def amax_loses_nan(x: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """NaN is less than every number."""
    (a,) = numpy_of(x)
    return result(np.fmax.reduce(a, tuple(dim), keepdims=keepdim))


def mm_drops_last(a: Any, b: Any) -> Any:
    """The last products of a sum of an odd number are left out."""
    x, y = numpy_of(a, b)
    inner = x.shape[1] - x.shape[1] % 2 if x.shape[1] > 1 else x.shape[1]
    return result((x[:, :inner] @ y[:inner]).astype(x.dtype))


def softmax_of_first_axis(x: Any, dim: int, half_to_float: bool) -> Any:
    """It takes another axis than it is told."""
    (a,) = numpy_of(x)
    with np.errstate(all="ignore"):
        e = np.exp(a - a.max(axis=0, keepdims=True, initial=-np.inf))
        return result(e / e.sum(axis=0, keepdims=True))


def exp_in_half(x: Any) -> Any:
    """It computes in half the precision."""
    (a,) = numpy_of(x)
    with np.errstate(all="ignore"):
        return result(np.exp(a.astype(np.float16)).astype(a.dtype))


def average_counts_padding(
    x: Any, kernel_size: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: Any = None,
) -> Any:  # fmt: skip
    """Padding counts as zeros in the mean."""
    (a,) = numpy_of(x)
    (kh, kw), (sh, sw), (ph, pw) = kernel_size, stride or kernel_size, padding
    wide = np.pad(a, [(0, 0), (0, 0), (ph, ph), (pw, pw)])
    windows = np.lib.stride_tricks.sliding_window_view(wide, (kh, kw), (2, 3))[:, :, ::sh, ::sw]
    return result((windows.sum(axis=(4, 5)) / (divisor_override or kh * kw)).astype(a.dtype))


MUTANTS = (
    Mutant(
        "relu-ignores-strides", "relu", "Relu", relu_ignores_strides,
        r"inputs lie strided in memory, and where the same ones lie in order the result is right: strides are not",
    ),
    Mutant(
        "tanh-ignores-offset", "tanh", "Tanh", tanh_ignores_offset,
        r"inputs lie offset in memory, .* is right: the place of the first element is not heeded",
    ),
    Mutant("cat-drops-last", "cat", "ConcatV2", cat_drops_last, r"only indices of dimension 1, 18 of 19 differ"),
    Mutant(
        "gather-clamps-indices", "index_select", "GatherV2", index_select_clamps,
        r"raised nothing; it must raise InvalidArgumentError with a message matching 'index", "errors",
    ),
    Mutant("sub-exchanges", "sub.Tensor", "Sub", sub_exchanges, "inputs 0 and 1 exchanged"),
    Mutant("mean-divides-by-all", "mean.dim", "Mean", mean_divides_by_all, r"times"),
    Mutant("max-loses-nan", "amax", "Max", amax_loses_nan, "-inf in place of NaN, which is passed over"),
    Mutant("mm-drops-last", "mm", "MatMul", mm_drops_last, r"without the last 1 of \d+ of input 0 along dimension"),
    Mutant("softmax-first-axis", "_softmax", "Softmax", softmax_of_first_axis, r"along dimension 0 in place of 1"),
    Mutant("exp-in-half", "exp", "Exp", exp_in_half, r"float16"),
    Mutant("average-counts-padding", "avg_pool2d", "AvgPool", average_counts_padding, "padding that counts as zeros"),
)  # fmt: skip


@contextlib.contextmanager
def in_place(mutant: Mutant) -> Iterator[None]:
    """Makes torch use the mutant's kernel within the block."""
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl(mutant.name, mutant.kernel, "CPU", allow_override=True)
        yield
