"""Nodes that save and restore slices of tensors, as graphs with partitioned variables have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op

WHOLE = np.arange(24, dtype=np.float32).reshape(4, 6)
TEXTS = np.array([["a", "", "bcd"], ["ef", "g", "h"]], object)


def save(path: Path, tensors: list[tuple[str, str, Any]]) -> None:
    names, slices, values = zip(*tensors, strict=True)
    with tf.Graph().as_default(), tf.Session() as session:
        session.run(apply_op("SaveV2", [str(path), list(names), list(slices), list(values)]))


def restore(path: Path, tensors: list[tuple[str, str]], dtype: tf.DType = tf.float32) -> list[np.ndarray]:
    names, slices = zip(*tensors, strict=True)
    with tf.Graph().as_default(), tf.Session() as session:
        attrs = {"dtypes": [dtype] * len(tensors)}
        found: list[np.ndarray] = session.run(apply_op("RestoreV2", [str(path), list(names), list(slices)], attrs))
        return found


def test_a_tensor_saved_in_slices_is_whole(tmp_path: Path) -> None:
    save(tmp_path / "m", [("v", "4 6 0,2:-", WHOLE[:2]), ("w", "", WHOLE), ("v", "4 6 2,2:-", WHOLE[2:])])
    np.testing.assert_array_equal(tf.train.load_variable(str(tmp_path / "m"), "v"), WHOLE)


def test_slices_of_a_tensor_saved_whole(tmp_path: Path) -> None:
    save(tmp_path / "m", [("v", "", WHOLE)])
    rows, block = restore(tmp_path / "m", [("v", "4 6 1,2:-"), ("v", "4 6 0,4:2,3")])
    np.testing.assert_array_equal(rows, WHOLE[1:3])
    np.testing.assert_array_equal(block, WHOLE[:, 2:5])


def test_slices_of_a_tensor_saved_in_other_slices(tmp_path: Path) -> None:
    save(tmp_path / "m", [("v", "4 6 -:0,1", WHOLE[:, :1]), ("v", "4 6 -:1,5", WHOLE[:, 1:])])
    (rows,) = restore(tmp_path / "m", [("v", "4 6 1,2:-")])
    np.testing.assert_array_equal(rows, WHOLE[1:3])


def test_slices_of_strings(tmp_path: Path) -> None:
    save(tmp_path / "m", [("v", "2 3 0,1:-", TEXTS[:1]), ("v", "2 3 1,1:-", TEXTS[1:])])
    first, column = restore(tmp_path / "m", [("v", "2 3 0,1:-"), ("v", "2 3 -:2,1")], tf.string)
    assert first.tolist() == [[b"a", b"", b"bcd"]]
    assert column.tolist() == [[b"bcd"], [b"h"]]


def test_slices_in_several_files_are_merged(tmp_path: Path) -> None:
    parts = [tmp_path / "parts" / str(i) for i in range(2)]
    for i, part in enumerate(parts):
        save(part, [("v", f"4 6 {2 * i},2:-", WHOLE[2 * i : 2 * i + 2])])
    with tf.Graph().as_default(), tf.Session() as session:
        session.run(apply_op("MergeV2Checkpoints", [[str(part) for part in parts], str(tmp_path / "m")]))
    np.testing.assert_array_equal(tf.train.load_variable(str(tmp_path / "m"), "v"), WHOLE)


def test_a_slice_without_the_rest_is_restored(tmp_path: Path) -> None:
    save(tmp_path / "m", [("v", "4 6 0,2:-", WHOLE[:2])])
    (rows,) = restore(tmp_path / "m", [("v", "4 6 0,2:-")])
    np.testing.assert_array_equal(rows, WHOLE[:2])


def test_a_whole_of_which_slices_are_missing_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "m", [("v", "4 6 0,2:-", WHOLE[:2])])
    with pytest.raises(tf.errors.DataLossError, match=r"its slices do not make up its shape \[4, 6\]"):
        restore(tmp_path / "m", [("v", "")])


@pytest.mark.parametrize("text", ["0,2:-", "4 6 ", "4 6 0:1", "4 x 0,2:-", "4 6 0,2:-:", "4  6 0,2:-", "4 6 0,-2:-"])
def test_slices_that_are_none_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"slice '{text}'; sizes of the whole .* are required"):
        save(tmp_path / "m", [("v", text, WHOLE[:2])])


@pytest.mark.parametrize("text", ["4 6 3,2:-", "4 6 0,2"])
def test_slices_outside_the_whole_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=rf"slice '{text}'; it must lie in the shape \[4, 6\]"):
        save(tmp_path / "m", [("v", text, WHOLE[:2])])


def test_a_tensor_of_another_shape_than_its_slice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"'4 6 0,3:-' has shape \[2, 6\]; it must be \[3, 6\]"):
        save(tmp_path / "m", [("v", "4 6 0,3:-", WHOLE[:2])])


def test_slices_of_tensors_of_several_shapes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="all must be slices of one tensor"):
        save(tmp_path / "m", [("v", "4 6 0,2:-", WHOLE[:2]), ("v", "5 6 2,2:-", WHOLE[2:])])


def test_slices_with_common_elements_are_refused(tmp_path: Path) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="two have elements in common"):
        save(tmp_path / "m", [("v", "4 6 0,2:-", WHOLE[:2]), ("v", "4 6 1,2:-", WHOLE[1:3])])


def test_one_name_for_two_tensors_is_refused(tmp_path: Path) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="tensor_names has 'v' twice"):
        save(tmp_path / "m", [("v", "", WHOLE), ("v", "", WHOLE)])
