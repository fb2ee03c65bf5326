"""Moving and pooling that the conformance suite does not try: many pieces, indices found at run time or outside."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op
from timberframe_opencl.device import OpenCLDevice
from timberframe_sdk.execution.last_used import LastUsed


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def test_pieces_of_different_sizes_are_joined_and_taken_apart_again(on_device: Callable[..., list[np.ndarray]]) -> None:
    pieces = [numbers(5, 1 + k % 3, 40) for k in range(19)]
    sizes = [p.shape[1] for p in pieces]
    whole, *parts = on_device(lambda *x: [y := tf.concat(list(x), 1), *tf.split(y, sizes, 1)], *pieces)
    np.testing.assert_array_equal(whole, np.concatenate(pieces, 1))
    for part, piece in zip(parts, pieces, strict=True):
        np.testing.assert_array_equal(part, piece)


@pytest.mark.parametrize("order", [(0, 2, 3, 1), (0, 3, 1, 2), (2, 1, 0, 3), (3, 0, 2, 1)])
def test_transposes_of_sizes_that_no_tile_divides(
    on_device: Callable[..., list[np.ndarray]], order: tuple[int, ...]
) -> None:
    x = numbers(3, 37, 41, 5)
    (y,) = on_device(lambda a: [tf.transpose(a, order)], x)
    np.testing.assert_array_equal(y, x.transpose(order))


@pytest.fixture
def last_group_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels number their groups backwards: drivers run them in any order, most of them from the first one on."""
    build = OpenCLDevice.build
    reverse = "#define get_group_id(d) (get_num_groups(d) - 1 - get_group_id(d))\n"
    monkeypatch.setattr(OpenCLDevice, "build", lambda self, source, name: build(self, reverse + source, name))
    with tf.Session(graph=tf.Graph()) as session:
        devices = [d for d in session.list_devices() if isinstance(d, OpenCLDevice)]
    for device in devices:
        monkeypatch.setattr(device, "_functions", LastUsed(8))


@pytest.mark.usefixtures("last_group_first")
@pytest.mark.parametrize("shape", [(70, 100), (100, 70), (2, 33, 65)])
def test_tiles_of_a_transpose_are_written_in_any_order(
    on_device: Callable[..., list[np.ndarray]], shape: tuple[int, ...]
) -> None:
    x = numbers(*shape)
    (y,) = on_device(lambda a: [tf.linalg.matrix_transpose(a)], x)
    np.testing.assert_array_equal(y, x.swapaxes(-1, -2))


def test_a_slice_that_begins_where_the_device_finds_it(on_device: Callable[..., list[np.ndarray]]) -> None:
    x = numbers(9, 70)
    (y,) = on_device(lambda a, i: [tf.slice(a, i * 2, [4, 33])], x, np.array([2, 5], np.int32))
    np.testing.assert_array_equal(y, x[4:8, 10:43])


def test_a_slice_that_begins_outside_is_named(on_device: Callable[..., list[np.ndarray]]) -> None:
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"begin\[1\] is 40; with this size it must lie in \[0, 37\]"
    ):
        on_device(lambda a, i: [tf.slice(a, i * 2, [4, 33])], numbers(9, 70), np.array([2, 20], np.int32))


@pytest.mark.parametrize("index", [2, -4])
def test_a_row_whose_index_the_device_finds(on_device: Callable[..., list[np.ndarray]], index: int) -> None:
    x = numbers(9, 70)
    (y,) = on_device(lambda a, i: [a[i + i, 3:9]], x, np.array(index))
    np.testing.assert_array_equal(y, x[2 * index, 3:9])


@pytest.mark.parametrize("index", [5, -5])
def test_a_row_outside_is_named(on_device: Callable[..., list[np.ndarray]], index: int) -> None:
    match = rf"index {2 * index} of dimension 0 is outside its size 9; it must lie in \[-9, 9\)"
    with pytest.raises(tf.errors.InvalidArgumentError, match=match):
        on_device(lambda a, i: [a[i + i, 3:9]], numbers(9, 70), np.array(index))


def test_a_span_of_another_size_than_planned_is_named(on_device: Callable[..., list[np.ndarray]]) -> None:
    def gradient(end: tf.Tensor, dy: tf.Tensor) -> list[tf.Tensor]:
        inputs = [np.array([5, 7]), np.array([0, 1]), end + end, np.array([1, 1]), dy]
        return [apply_op("StridedSliceGrad", inputs)]

    with pytest.raises(
        tf.errors.InvalidArgumentError, match="begin and end select 5 elements of dimension 1; the 3 that were planned"
    ):
        on_device(gradient, np.array([1, 3]), numbers(2, 3))


def test_a_gradient_goes_to_indices_outside_of_their_windows(on_device: Callable[..., list[np.ndarray]]) -> None:
    window = {"ksize": (1, 2, 2, 1), "strides": (1, 2, 2, 1), "padding": "VALID"}
    x, gradient = numbers(2, 4, 4, 3), numbers(2, 2, 2, 3)
    places = np.random.default_rng(3).integers(0, 48, gradient.shape)
    (y,) = on_device(lambda *a: [apply_op("MaxPoolGradWithArgmax", list(a), window)], x, gradient, places)
    expected = np.zeros((2, 48), np.float32)
    for image in range(2):
        np.add.at(expected[image], places[image].ravel(), gradient[image].ravel())
    np.testing.assert_allclose(y.reshape(2, 48), expected, rtol=1e-6, atol=1e-6)
