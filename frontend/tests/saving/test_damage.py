"""Checkpoints with a changed byte or a missing end: an error, or the right values."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import timberframe as tf

STORED = Path(__file__).parent / "data"
STEP = 7  # testing every byte takes too long; 7 divides no size of a field


def damaged(path: Path) -> Iterator[str]:
    """Changes one position of the file after another, and restores it at the end."""
    raw = path.read_bytes()
    for i in range(0, len(raw), STEP):
        path.write_bytes(raw[:i])
        yield f"cut at {i}"
        path.write_bytes(raw[:i] + bytes([raw[i] ^ 1 << i % 8]) + raw[i + 1 :])
        yield f"byte {i}"
    path.write_bytes(raw)


def ours(folder: Path) -> str:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        tf.Variable([1.0, 2.0, 3.0], name="numbers")
        tf.Variable(["x", "yy"], name="words")
        session.run(tf.global_variables_initializer())
        return str(tf.train.Saver().save(session, str(folder / "m"), write_meta_graph=False))


def tensorflows(folder: Path) -> str:
    for path in STORED.glob("model.ckpt-7.*"):
        shutil.copy(path, folder)
    return str(folder / "model.ckpt-7")


@pytest.mark.parametrize("make", [ours, tensorflows])
def test_no_damage_gives_wrong_values(tmp_path: Path, make: object) -> None:
    assert callable(make)
    prefix = make(tmp_path)
    names = [name for name, _ in tf.train.list_variables(prefix)]
    values = {name: tf.train.load_variable(prefix, name) for name in names}
    found = 0
    for path in sorted(tmp_path.glob(f"{Path(prefix).name}.*")):
        for what in damaged(path):
            try:
                reader = tf.train.load_checkpoint(prefix)
                for name in names:
                    np.testing.assert_array_equal(reader.get_tensor(name), values[name], f"{path.name}, {what}")
            except tf.errors.DataLossError:
                found += 1
    assert found > 40
