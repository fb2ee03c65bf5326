"""Products of bfloat16 by AMX's matrix registers (csrc/conv/matrix_tiles.inc), whose instructions are emulated here."""

from __future__ import annotations

import ctypes
import platform
import subprocess
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import timberframe_sdk
from timberframe_cpu import native
from timberframe_cpu.compiled import compiler
from timberframe_sdk.native import Native, words

HERE = Path(__file__).parent
SOURCES = HERE.parent / "csrc"
F = np.float32

pytestmark = pytest.mark.skipif(
    compiler() is None or platform.machine() != "x86_64", reason="the instructions are those of x86-64; a C compiler"
)


class Entry(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("function", ctypes.c_void_p))


@pytest.fixture(scope="module")
def library(tmp_path_factory: Any) -> ctypes.CDLL:
    """conv/pairs.c for AMX, with what tests/emulation/amx.h has in place of the instructions."""
    found = compiler()
    assert found is not None
    path = tmp_path_factory.mktemp("emulated") / "pairs.so"
    include = Path(timberframe_sdk.__file__).parent / "include"
    flags = ["-std=gnu11", "-O1", "-shared", "-fPIC", "-ffp-contract=off", "-Wno-psabi", "-DTF_ISA=amx", "-DTF_ISA_AMX"]
    paths = [f"-I{SOURCES}", f"-I{include}", "-include", str(HERE / "emulation" / "amx.h")]
    command = [found[0], *flags, *paths, str(SOURCES / "conv" / "pairs.c"), "-o", str(path), "-lm"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(path))


def kernel(library: ctypes.CDLL, name: str, *parameters: Any) -> Native:
    table = (Entry * 100).in_dll(library, "tf_table_conv_pairs_amx")
    function = next(entry.function for entry in table if entry.name == name.encode())
    return Native(name, function, words(parameters))


def rounded(x: np.ndarray) -> np.ndarray:
    return x.astype(ml_dtypes.bfloat16).astype(np.float64)


def exact(x: np.ndarray, filter: np.ndarray, stride: int, pads: tuple[int, int], size: tuple[int, int]) -> Any:
    """Returns the convolution of what is left after rounding, in float64, and that of the magnitudes."""
    x, filter = rounded(x), rounded(filter)
    (top, left), (height, width) = pads, size
    padded = np.pad(x, ((0, 0), (top, 99), (left, 99), (0, 0)))
    groups = x.shape[-1] // filter.shape[2]
    sums = []
    for a, w in ((padded, filter), (abs(padded), abs(filter))):
        total = np.zeros((len(x), height, width, filter.shape[-1]))
        for i, j in np.ndindex(*filter.shape[:2]):
            tap = a[:, i : i + stride * height : stride, j : j + stride * width : stride]
            parts = zip(np.split(tap, groups, -1), np.split(w[i, j], groups, -1), strict=True)
            total += np.concatenate([x @ y for x, y in parts], -1)
        sums.append(total)
    return sums


@pytest.mark.parametrize(
    ("images", "filter", "stride"),
    [
        ((1, 12, 12, 64), (3, 3, 64, 64), 1),  # pixels evenly spaced, and others at the ends of lines
        ((1, 12, 12, 64), (3, 3, 64, 80), 1),  # a panel of one vector
        ((1, 9, 9, 20), (5, 5, 20, 33), 2),  # fewer pairs than a register's row has, and spare channels
        ((1, 24, 24, 24), (1, 1, 24, 72), 1),
        ((2, 7, 7, 128), (1, 1, 128, 48), 1),  # three vectors, the last tile repeating pixels
        ((20, 1, 1, 256), (1, 1, 256, 100), 1),  # a product of matrices
        ((3, 1, 1, 66), (1, 1, 66, 32), 1),  # too few pixels for a tile
        ((20, 3, 3, 128), (3, 3, 128, 64), 1),  # tap by tap: sums go on from memory
        ((1, 14, 14, 64), (3, 3, 16, 80), 1),  # four groups
        ((1, 20, 33, 10), (3, 3, 10, 24), 2),  # lines that are copied
        ((1, 17, 17, 48), (1, 7, 48, 48), 1),
    ],
)
def test_a_convolution_by_matrix_registers_has_the_sums_of_rounded_numbers(
    library: ctypes.CDLL, images: tuple[int, ...], filter: tuple[int, ...], stride: int
) -> None:
    random = np.random.default_rng(sum(images))
    x, w = (random.standard_normal(shape).astype(F) for shape in (images, filter))
    batch, height, width, channels = images
    groups, outside = channels // filter[2], filter[3] // (channels // filter[2])
    size = -(-height // stride), -(-width // stride)
    pads = [max(0, (n - 1) * stride + k - m) // 2 for n, k, m in zip(size, filter, (height, width), strict=False)]
    image_at, zeros_at = 4096, 0
    shape = [
        batch, height, width, *size, *filter[:2], stride, stride, 1, 1, *pads, groups, filter[2], outside, 0,
        image_at, 0, 0, 0, zeros_at,
    ]  # fmt: skip
    rows, padded = w.size // outside // 2 + 1, -(-outside // 16) * 16
    packed, y = np.empty((rows, padded), F), np.empty((batch, *size, filter[3]), F)
    native.call(kernel(library, "conv2d_pack_pairs_float", *shape), [w], [packed], np.empty(4 * w.size, np.uint8))
    before = ctypes.c_int64.in_dll(library, "emulated_products").value
    workspace = np.empty(image_at + 2 * x.size + 64, np.uint8)
    native.call(kernel(library, "conv2d_packed_pairs_float", *shape), [x, packed], [y], workspace)
    used = ctypes.c_int64.in_dll(library, "emulated_products").value > before
    assert used == (batch * size[0] * size[1] > 3)
    sums, magnitudes = exact(x, w, stride, (pads[0], pads[1]), size)
    terms = filter[0] * filter[1] * filter[2]
    assert np.all(abs(y - sums) <= (terms + 2) * 2.0**-24 * magnitudes)
    assert ctypes.c_int64.in_dll(library, "emulated_faults").value == 0
