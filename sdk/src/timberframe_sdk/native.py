"""Native kernels as Python sees them: a C function, its parameters, and words for the reasons that it may fail for."""

from __future__ import annotations

import ctypes
import math
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from timberframe_core.errors import CODES, InternalError, NotFoundError, OpError
from timberframe_core.shapes import MAX_RANK, row_major_strides

# The C structs of timberframe/kernel.h.
TENSOR = np.dtype(
    [
        ("struct_size", np.uint32),
        ("dtype", np.int32),
        ("data", np.int64),
        ("size", np.int64),
        ("rank", np.int32),
        ("reserved", np.int32),
        ("shape", np.int64, (MAX_RANK,)),
        ("strides", np.int64, (MAX_RANK,)),
    ]
)


@dataclass(frozen=True, slots=True)
class Native:
    """What the builder of a native kernel returns.

    function: address of a C function of type tf_kernel. parameters: its int64 words. reasons: `reasons[i - 1]` is the
    message for reason i of tf_fail, a str.format template in which {0} to {3} are the details, and {0:double} is the
    double whose bits a detail has. owner: what must live for as long as the kernel may run, such as the library that
    has the function, or what `parameters` point to.
    """

    name: str
    function: int
    parameters: tuple[int, ...] = ()
    reasons: tuple[str, ...] = ()
    owner: Any = None


ABI_MAJOR = 2
"""The TF_ABI_MAJOR of timberframe/kernel.h that this Timberframe runs."""


def check_abi(major: int, name: str) -> None:
    """InternalError where native code was compiled against a header with another TF_ABI_MAJOR."""
    if major != ABI_MAJOR:
        raise InternalError(
            f"{name}: was compiled for version {major} of timberframe/kernel.h; version {ABI_MAJOR} is required: "
            "compile it again with the header of the installed timberframe-sdk"
        )


class NativeLibrary:
    """A shared library of native kernels, loaded and checked: one of its sources must have TF_KERNEL_LIBRARY.

    Raises NotFoundError for a file that does not load, InternalError for one that was compiled against another
    TF_ABI_MAJOR.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        try:
            self._library = ctypes.CDLL(self.path)
        except OSError as e:
            raise NotFoundError(f"library {self.path}: does not load: {e}") from e
        try:
            major = self._library.tf_abi_major
        except AttributeError:
            raise InternalError(
                f"library {self.path}: has no tf_abi_major; one of its sources must have TF_KERNEL_LIBRARY"
            ) from None
        check_abi(major(), f"library {self.path}")

    def kernel(self, name: str, parameters: Sequence[Any] = (), reasons: Sequence[str] = ()) -> Native:
        """Returns the kernel of this name; parameters: ints, bools and floats, see `words`.

        NotFoundError if there is none.
        """
        try:
            function = getattr(self._library, name)
        except AttributeError:
            raise NotFoundError(f"library {self.path}: has no function {name}") from None
        address = ctypes.cast(function, ctypes.c_void_p).value
        return Native(name, address or 0, words(parameters), tuple(reasons), self)


def words(parameters: Sequence[Any]) -> tuple[int, ...]:
    """Returns the int64 words of a kernel's parameters: integers and bools as they are,
    floats as the bits of a double.
    """
    return tuple([p if type(p) is int and -(2**63) <= p < 2**63 else _word(p) for p in parameters])


def _word(p: Any) -> int:
    if isinstance(p, float | np.floating):
        return int(struct.unpack("<q", struct.pack("<d", p))[0])
    value = int(p)
    return value - 2**64 if value >= 2**63 else value


def tensor_row(number: int, data: int, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Returns one dense tensor as a row of a TENSOR array: dtype number, address, shape.

    A rank that the struct has no room for is shown as one dimension of all elements.
    """
    if len(shape) > MAX_RANK:
        shape = (math.prod(shape),)
    padding = (0,) * (MAX_RANK - len(shape))
    strides = row_major_strides(shape)
    size = 1
    for d in shape:
        size *= d
    return (TENSOR.itemsize, number, data, size, len(shape), 0, shape + padding, strides + padding)


class _Detail(int):
    """A detail of an error, which its format may take for the bits of a double."""

    def __format__(self, spec: str) -> str:
        if spec != "double":
            return super().__format__(spec)
        return str(struct.unpack("<d", struct.pack("<q", self))[0])


def worded(template: str, details: Sequence[int]) -> str:
    """Returns the message of one of a kernel's reasons, with its details."""
    return template.format(*map(_Detail, details))


def failure(
    op: str, node: str, code: int, reason: int, details: Sequence[int], reasons: Sequence[str], context: str = ""
) -> OpError:
    """Returns the exception for what a native kernel returned; `context` (device, line of the
    program) follows the words.
    """
    if 0 < reason <= len(reasons):
        text = worded(reasons[reason - 1], details)
    else:
        text = f"the kernel returned code {code}, reason {reason}, details {list(details)}; it has no words for that"
    return CODES.get(code, InternalError)(f"{op} '{node}': {text}{context}", node)
