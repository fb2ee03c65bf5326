"""Kernels in NumPy: what samples do not reach."""

from __future__ import annotations

import numpy as np
import pytest

from timberframe_core.errors import UnimplementedError
from timberframe_cpu.testing import run_op


def test_truth_values_are_subtracted_as_numbers_modulo_two() -> None:
    x, v = np.array([True, False, True]), np.array([True, True])
    assert run_op("InplaceSub", {}, [x, np.int32([0, 1]), v])[0].tolist() == [False, True, True]


def test_strings_are_added_to_rows_and_not_subtracted() -> None:
    inputs = [np.array([b"a", b"b"], object), np.int32([1, 1]), np.array([b"c", b"d"], object)]
    assert run_op("InplaceAdd", {}, inputs)[0].tolist() == [b"a", b"bcd"]
    with pytest.raises(UnimplementedError, match="T is string"):
        run_op("InplaceSub", {}, inputs)


def test_distances_of_words() -> None:
    def sparse(*words: str) -> list[np.ndarray]:
        at = [(i, j) for i, word in enumerate(words) for j in range(len(word))]
        letters = np.array([c.encode() for word in words for c in word], object)
        return [np.array(at, np.int64).reshape(-1, 2), letters, np.array([len(words), 7], np.int64)]

    inputs = [*sparse("kitten", "", "same"), *sparse("sitting", "abc", "same")]
    assert run_op("EditDistance", {"normalize": False}, inputs)[0].tolist() == [3, 3, 0]


def test_a_picture_of_one_size_stays_as_it_is() -> None:
    image = np.random.default_rng(3).uniform(size=(2, 5, 7, 3)).astype(np.float32)
    for op in ("ResizeArea", "ResizeBicubic"):
        np.testing.assert_allclose(run_op(op, {}, [image, np.int32([5, 7])])[0], image, rtol=1e-6)


@pytest.mark.parametrize("op", ["ResizeArea", "ResizeBicubic"])
def test_not_a_number_stays_where_it_has_weight(op: str) -> None:
    image = np.ones((1, 8, 8, 1), np.float32)
    image[0, 0, 0, 0] = np.nan
    (resized,) = run_op(op, {}, [image, np.int32([16, 16])])
    assert np.isnan(resized[0, 0, 0, 0])
    np.testing.assert_allclose(resized[0, 8:, 8:], 1, rtol=1e-6)


def test_cubic_weights_of_a_position_add_up_to_one_in_float64() -> None:
    grads = np.float32([[[[1], [2], [4]]]])
    (spread,) = run_op("ResizeBicubicGrad", {}, [grads, np.zeros((1, 2, 2, 1))])
    assert spread.sum() == pytest.approx(7, rel=1e-14)


def test_a_hue_turned_by_a_third_exchanges_channels() -> None:
    image = np.random.default_rng(3).uniform(size=(9, 3)).astype(np.float32)
    (turned,) = run_op("AdjustHue", {}, [image, np.float32(1 / 3)])
    np.testing.assert_allclose(turned, np.roll(image, 1, -1), atol=1e-6)
