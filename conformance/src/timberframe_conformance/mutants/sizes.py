"""Mutants that count elements in 32 bits, which only tensors of more than 2^31 elements show.

They look at what the device passed them, without copies, since each tensor takes gigabytes.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from timberframe_conformance.mutants.base import Call, mutant

_UINT8 = ("uint8",)


def _signed(count: int) -> int:
    """Returns a count as an int of C holds it."""
    return ctypes.c_int32(count).value


@mutant("reads-in-int", "Max", "counts with an int in the loop over elements", _UINT8, suites=("soak",),
        only=("/huge-signed",), also=frozenset(), soak=True)  # fmt: skip
def _(c: Call) -> Any:
    x = c.passed[0].reshape(-1)
    return np.asarray(x[: max(_signed(x.size), 1)].max())


@mutant("positions-in-int", "GatherV2", "computes where rows begin in an int", {"Tparams": _UINT8}, suites=("soak",),
        only=("/huge-signed",), also=frozenset(), soak=True)  # fmt: skip
def _(c: Call) -> Any:
    x, positions = c.passed[0], c.passed[1]
    return x[[_signed(int(k)) % max(len(x), 1) for k in positions.reshape(-1)]].reshape(positions.shape)


@mutant("writes-in-int", "AddV2", "counts with an int in the loop over elements", _UINT8, suites=("soak",),
        only=("/huge-signed",), also=frozenset(), soak=True)  # fmt: skip
def _(c: Call) -> Any:
    x, y, out = *c.passed[:2], c.outputs[0]
    if _signed(out.size) > 0:
        np.add(x, y, out=out)
    return None
