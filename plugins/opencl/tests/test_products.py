"""Matrix products and convolutions on devices with less room than those at hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import timberframe as tf
from timberframe_accelerator import Limits, product
from timberframe_accelerator.kernels import convolution


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of 128 work-items, 12 KiB of shared memory."""
    found, limits = product.tiles_for, Limits(max_group_size=128, shared_bytes=12 * 1024)
    for module in (product, convolution):
        monkeypatch.setattr(module, "tiles_for", lambda _, *rest: found(limits, *rest))


def small_integers(*shape: int) -> np.ndarray:
    """float32 numbers whose sums of products are exact in any order."""
    return np.random.default_rng(3).integers(-4, 5, shape).astype(np.float32)


@pytest.mark.parametrize("swapped", [False, True])
def test_small_groups_multiply_exactly(
    on_device: Callable[..., list[np.ndarray]], little_room: None, swapped: bool
) -> None:
    x, y = small_integers(70, 90), small_integers(90, 35)
    given = (x.T.copy(), y.T.copy()) if swapped else (x, y)
    (found,) = on_device(lambda a, b: [tf.matmul(a, b, swapped, swapped)], *given)
    assert np.array_equal(found, x @ y)


def test_small_groups_convolve_exactly(on_device: Callable[..., list[np.ndarray]], little_room: None) -> None:
    x, filter = small_integers(2, 9, 8, 16), small_integers(3, 3, 16, 20)
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    taps = [padded[:, i : i + 9, j : j + 8] @ filter[i, j] for i in range(3) for j in range(3)]
    (found,) = on_device(lambda x, w: [tf.nn.conv2d(x, w, (1, 1, 1, 1), "SAME")], x, filter)
    assert np.array_equal(found, sum(taps))
