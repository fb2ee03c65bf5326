"""DLPack capsules: tensors in a device's own memory, shared with other libraries without a copy.

The structures are those of the DLPack standard (dlpack.h, DLManagedTensor), which every consumer still takes.
"""

from __future__ import annotations

import ctypes
import gc
import math
import sys
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.shapes import format_shape

HOST = (1, 0)
"""kDLCPU."""

_FRESH, _USED = b"dltensor", b"used_dltensor"
_KINDS = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_BFLOAT = 4
_CODES = {code: kind for kind, code in _KINDS.items()}


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _DLManagedTensor(ctypes.Structure):
    _fields_ = (("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", _DELETER))


_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_char_p)
_valid = ctypes.pythonapi.PyCapsule_IsValid
_valid.restype, _valid.argtypes = ctypes.c_int, (ctypes.c_void_p, ctypes.c_char_p)
_rename = ctypes.pythonapi.PyCapsule_SetName
_rename.restype, _rename.argtypes = ctypes.c_int, (ctypes.c_void_p, ctypes.c_char_p)

_exported: dict[int, tuple[Any, ...]] = {}


def _delete(address: int) -> None:
    """Drops a tensor that its consumer is done with."""
    _exported.pop(address, None)


def _drop_unclaimed(phase: str, _: Any) -> None:
    """Drops the tensors of capsules that nobody holds and whose tensor nobody took, at each collection of garbage.

    A capsule's own destructor cannot do it: a consumer may drop the capsule with its exception pending, which a
    function of Python would lose.
    """
    if phase == "stop":
        for where, entry in list(_exported.items()):
            if _is_dropped(entry) and _valid(id(entry[-1]), _FRESH):
                _exported.pop(where, None)


def _is_dropped(entry: tuple[Any, ...]) -> bool:
    """Returns whether nobody but the entry has its capsule.

    The only place that asks Python for a count of references, as capsules take no weak ones. It suits builds that
    borrow references or have no global lock, too: who has a capsule owns one, and nobody can get it from an entry.
    """
    return sys.getrefcount(entry[-1]) <= 2  # the entry's, and the argument's


_deleter = _DELETER(_delete)
gc.callbacks.append(_drop_unclaimed)


class DLPackView:
    """What `to_dlpack` gives for device memory: hands out capsules that keep `owner` alive.

    address: of the first byte, in the device's terms. The tensor is dense and row-major.
    """

    def __init__(
        self, device: tuple[int, int], address: int, dtype: np.dtype[Any], shape: tuple[int, ...], owner: Any
    ) -> None:
        self.device, self.address, self.dtype, self.shape, self.owner = device, address, dtype, shape, owner

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **_: Any) -> Any:
        """Returns a capsule of the unversioned kind.

        What a run gives is complete, so there is no stream to wait for.
        """
        rank = len(self.shape)
        shape = (ctypes.c_int64 * rank)(*self.shape)
        code, bits = _encode(self.dtype)
        tensor = _DLTensor(self.address, *self.device, rank, code, bits, 1, shape, None, 0)
        managed = _DLManagedTensor(tensor, None, _deleter)
        where = ctypes.addressof(managed)
        capsule = _new(where, _FRESH, None)
        _exported[where] = managed, shape, self.owner, capsule
        return capsule


class _Borrowed:
    """Keeps a tensor that was taken out of a capsule; tells its owner when it is done with."""

    def __init__(self, managed: _DLManagedTensor) -> None:
        self._managed = managed

    def __del__(self) -> None:
        if self._managed.deleter:
            self._managed.deleter(ctypes.addressof(self._managed))


@dataclass(frozen=True)
class DLPackTensor:
    """A tensor that was taken in. It may be used for as long as `owner` lives."""

    address: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    owner: Any


def take_in(x: Any, stream: int | None = None) -> DLPackTensor:
    """Returns the tensor of an object with `__dlpack__`, whose `__dlpack_device__` the caller has compared.

    stream: the one that the standard has the giver wait for, on kinds of devices that have streams.
    InvalidArgumentError unless it is dense, row-major and of a dtype that NumPy or ml_dtypes has.
    """
    capsule = x.__dlpack__() if stream is None else x.__dlpack__(stream=stream)
    where = _pointer(id(capsule), _FRESH)
    managed = ctypes.cast(where, ctypes.POINTER(_DLManagedTensor)).contents
    _rename(id(capsule), _USED)
    owner = _Borrowed(managed)
    tensor = managed.tensor
    shape = tuple(tensor.shape[: tensor.ndim])
    if tensor.strides and not _is_dense(shape, tensor.strides[: tensor.ndim]):
        raise InvalidArgumentError(
            f"a DLPack tensor of shape {format_shape(shape)} has strides {tensor.strides[: tensor.ndim]}; "
            "it must be dense and row-major, make a contiguous copy of it"
        )
    dtype = _decode(tensor.code, tensor.bits, tensor.lanes)
    return DLPackTensor((tensor.data or 0) + tensor.byte_offset, dtype, shape, owner)


class _HostMemory:
    """Bytes of a borrowed tensor, for NumPy."""

    def __init__(self, tensor: DLPackTensor) -> None:
        nbytes = math.prod(tensor.shape) * tensor.dtype.itemsize
        self.owner = tensor.owner
        self.__array_interface__ = {
            "version": 3, "data": (tensor.address, True), "shape": (nbytes,), "typestr": "|u1",
        }  # fmt: skip


def host_view(x: Any) -> np.ndarray:
    """Returns the array of an object with `__dlpack__` in the host's memory, which stays alive with the view.

    Raises what the object and `take_in` raise.
    """
    try:
        return np.from_dlpack(x)
    except (BufferError, RuntimeError, TypeError):  # NumPy knows no bfloat16
        tensor = take_in(x)
        return np.asarray(_HostMemory(tensor)).view(tensor.dtype).reshape(tensor.shape)


def _is_dense(shape: tuple[int, ...], strides: list[int]) -> bool:
    wanted = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    return 0 in shape or all(d == 1 or s == w for d, s, w in zip(shape, strides, wanted, strict=True))


def _encode(dtype: np.dtype[Any]) -> tuple[int, int]:
    if dtype == ml_dtypes.bfloat16:
        return _BFLOAT, 16
    if dtype.kind not in _KINDS or dtype.isbuiltin != 1:
        raise InvalidArgumentError(f"dtype {dtype} cannot be given out through DLPack; numbers and bool can")
    return _KINDS[dtype.kind], dtype.itemsize * 8


def _decode(code: int, bits: int, lanes: int) -> np.dtype[Any]:
    if (code, bits, lanes) == (_BFLOAT, 16, 1):
        bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return bfloat16
    try:
        if lanes != 1 or bits % 8:
            raise TypeError
        return np.dtype("bool" if _CODES[code] == "b" else f"{_CODES[code]}{bits // 8}")
    except (KeyError, TypeError):
        raise InvalidArgumentError(
            f"a DLPack tensor has type code {code} of {bits} bits and {lanes} lanes; numbers and bool are known"
        ) from None
