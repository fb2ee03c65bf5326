"""Kernels of csrc/linalg/diagonal.c: diagonals and bands of matrices."""

from __future__ import annotations

import math
from collections.abc import Callable

from timberframe_cpu.native import native
from timberframe_sdk import NUMERIC, KernelDef, KernelNode
from timberframe_sdk.native import Native
from timberframe_sdk.plans.diagonals import DIAGONAL_TYPES, diagonals

_ALL = {"T": (*(t.name for t in NUMERIC), "bool")}


def _diagonals(prefix: str) -> Callable[[KernelNode], Native]:
    def build(node: KernelNode) -> Native:
        padded = len(node.inputs) > 1 and prefix != "matrix_set_diag"
        return native(f"{prefix}_{node.outputs[0].dtype.itemsize}", *diagonals(node), padded)

    return build


def _band_part(node: KernelNode) -> Native:
    from timberframe_ops.array.band import BAND_TOO_WIDE

    shape = node.inputs[0].shape
    name = f"matrix_band_part_{node.inputs[0].dtype.itemsize}"
    return native(name, math.prod(shape[:-1]), *shape[-2:], reasons=BAND_TOO_WIDE)


KERNELS = [
    *(KernelDef(f"MatrixDiagPart{v}", "CPU", _diagonals("matrix_diag_part"), _ALL) for v in ("", "V2", "V3")),
    *(KernelDef(f"MatrixDiag{v}", "CPU", _diagonals("matrix_diag"), _ALL) for v in ("", "V2", "V3")),
    *(
        KernelDef(f"MatrixSetDiag{v}", "CPU", _diagonals("matrix_set_diag"), _ALL, inplace=((0, 0),))
        for v in ("", "V2", "V3")
    ),
    KernelDef("MatrixBandPart", "CPU", _band_part, _ALL, inplace=((0, 0),)),
    KernelDef("Diag", "CPU", _diagonals("matrix_diag"), {"T": DIAGONAL_TYPES}),
    KernelDef("DiagPart", "CPU", _diagonals("matrix_diag_part"), {"T": DIAGONAL_TYPES}),
]
