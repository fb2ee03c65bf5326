"""ReadFile, WriteFile and MatchingFiles."""

from __future__ import annotations

import glob
import os
from pathlib import Path

import numpy as np

from timberframe_core.errors import NotFoundError, OpError, PermissionDeniedError, UnknownError
from timberframe_core.plugin.host_ops import HostCall, host_op


def _path(call: HostCall) -> Path:
    given = call.inputs[0]
    if given.ndim:
        raise call.error(f"filename has shape {given.shape}; a scalar is required")
    return Path(os.fsdecode(given.item()))


def _failed(call: HostCall, path: Path, error: OSError) -> OpError:
    kind: type[OpError] = UnknownError
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        kind = NotFoundError
    elif isinstance(error, PermissionError):
        kind = PermissionDeniedError
    return call.error(f"'{path}': {error.strerror}; a file that can be opened is required", kind)


@host_op("ReadFile")
def _read(call: HostCall) -> list[np.ndarray]:
    path = _path(call)
    try:
        return [np.array(path.read_bytes(), object)]
    except OSError as e:
        raise _failed(call, path, e) from None


@host_op("WriteFile")
def _write(call: HostCall) -> list[np.ndarray]:
    path = _path(call)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(call.inputs[1].item())
    except OSError as e:
        raise _failed(call, path, e) from None
    return []


@host_op("MatchingFiles")
def _match(call: HostCall) -> list[np.ndarray]:
    patterns = call.inputs[0].ravel().tolist()
    found = sorted({os.fsencode(f) for p in patterns for f in glob.glob(os.fsdecode(p))})
    names = np.empty(len(found), object)
    names[:] = found
    return [names]
