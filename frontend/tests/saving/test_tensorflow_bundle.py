"""Reading TensorFlow's checkpoints. data/model.ckpt-7 was written by TensorFlow 2.21's tf.compat.v1.train.Saver."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf

STORED = Path(__file__).parent / "data" / "model.ckpt-7"
VALUES: dict[str, Any] = {
    "bool": np.array([True, False]),
    "int8": np.array([-3, 4], np.int8),
    "uint16": np.array([1, 65535], np.uint16),
    "int64": np.array(2**40),
    "float16": np.array([0.5], np.float16),
    "bfloat16": np.array([1.5, -2.0], tf.bfloat16.numpy),
    "float32": np.arange(6, dtype=np.float32).reshape(2, 3),
    "scope/float64": np.array([np.pi]),
    "complex64": np.array([[1 + 2j]], np.complex64),
    "complex128": np.array(3 - 4j),
    "empty": np.zeros((0, 3), np.float32),
    "string": np.array([[b"a", b""], ["\u00fc".encode(), b"x" * 300]], object),
    "text": np.array(b"one", object),
}


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the checkpoint, to be damaged."""
    for path in STORED.parent.glob(f"{STORED.name}.*"):
        shutil.copy(path, tmp_path)
    return tmp_path / STORED.name


@pytest.mark.parametrize("name", VALUES)
def test_every_dtype_is_read(name: str) -> None:
    found = tf.train.load_variable(str(STORED), name)
    assert found.dtype == VALUES[name].dtype
    np.testing.assert_array_equal(found, VALUES[name])


def test_names_shapes_and_dtypes_are_listed() -> None:
    reader = tf.train.NewCheckpointReader(str(STORED))
    assert reader.get_variable_to_shape_map()["float32"] == [2, 3]
    assert reader.get_variable_to_dtype_map()["bfloat16"] is tf.bfloat16
    assert reader.has_tensor("text")
    assert not reader.has_tensor("other")
    assert ("scope/float64", [1]) in tf.train.list_variables(str(STORED))
    assert b"float32 (float32) [2, 3]\n" in reader.debug_string()


def test_saver_restores_it(session: tf.Session) -> None:
    variables = {name: tf.Variable(value, name=name) for name, value in VALUES.items()}
    tf.train.Saver().restore(session, str(STORED))
    for name, found in session.run(variables).items():
        np.testing.assert_array_equal(found, VALUES[name])


def test_missing_name_error_lists_existing_names() -> None:
    with pytest.raises(tf.errors.NotFoundError, match=r"has no tensor 'other'; it has bfloat16, bool.* and 4 more"):
        tf.train.load_variable(str(STORED), "other")


def test_partitioned_variable_is_joined() -> None:
    expected = np.arange(8, dtype=np.float32).reshape(4, 2)
    np.testing.assert_array_equal(tf.train.load_variable(str(STORED), "sliced"), expected)


def cut(suffix: str, count: int) -> Callable[[Path], None]:
    def damage(prefix: Path) -> None:
        path = Path(f"{prefix}{suffix}")
        path.write_bytes(path.read_bytes()[:count])

    return damage


def flip(suffix: str, position: int) -> Callable[[Path], None]:
    def damage(prefix: Path) -> None:
        path = Path(f"{prefix}{suffix}")
        raw = bytearray(path.read_bytes())
        raw[position] ^= 1
        path.write_bytes(raw)

    return damage


DATA = ".data-00000-of-00001"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut(".index", -1), "index file: .* bytes without the mark at the end of a table"),
        (cut(".index", 0), "index file: 0 bytes without the mark at the end"),
        (flip(".index", 20), "index file: the block at 0 has a wrong checksum"),
        (cut(DATA, 3), "run past the end of the data file"),
        (flip(DATA, 0), "its checksum is wrong"),
        (lambda prefix: Path(f"{prefix}{DATA}").unlink(), "its data file .* is missing"),
    ],
)
def test_damage_is_an_error_and_changes_nothing(
    session: tf.Session, copied: Path, damage: Callable[[Path], None], message: str
) -> None:
    variables = {name: tf.Variable(value, name=name) for name, value in VALUES.items()}
    v = variables["float32"]
    session.run(v.initializer)
    damage(copied)
    with pytest.raises(tf.errors.DataLossError, match=rf"{message}.*restore another"):
        tf.train.Saver().restore(session, str(copied))
    np.testing.assert_array_equal(session.run(v), VALUES["float32"])
    assert session.run(tf.report_uninitialized_variables()).size == len(VALUES) - 1
