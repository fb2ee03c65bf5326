"""What is computed for many elements at once, or in a shorter way, equals what is computed one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe.pipelines.batched import Batched
from timberframe_core.runtime.small_functions import SmallFunction

from .conftest import Elements, taken

Dataset = tf.data.Dataset


def example(k: int, **more: Any) -> bytes:
    """Returns an Example whose numbers have as many bytes as k asks for."""
    feature = {
        "f": tf.train.Feature(float_list=tf.train.FloatList(value=[k, k + 0.5])),
        "i": tf.train.Feature(int64_list=tf.train.Int64List(value=[k * 1000, -k, k])),
        "s": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"x" * (k % 3)])),
        **more,
    }
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


def parse(text: Any) -> Any:
    features = {
        "f": tf.FixedLenFeature([2], tf.float32),
        "i": tf.FixedLenFeature([3], tf.int64),
        "s": tf.FixedLenFeature([], tf.string),
        "absent": tf.FixedLenFeature([2], tf.int64, [7, 8]),
    }
    return tf.parse_single_example(text, features)


NUMBERS = np.arange(40, dtype=np.float32)

FUNCTIONS = {
    "arithmetic": (NUMBERS, lambda x: tf.where(x > 3, x * 2 + 1, tf.exp(-x))),
    "constants of lower rank": (NUMBERS.reshape(20, 2), lambda x: x * tf.constant([1.0, 2.0]) + 1),
    "a constant of higher rank": (NUMBERS, lambda x: x * tf.constant([1.0, 2.0])),
    "rows of one": (NUMBERS.reshape(20, 1, 2), lambda x: x + tf.ones([3, 1])),
    "a part that is constant": (NUMBERS, lambda x: (x, tf.constant(3))),
    "stacked": (NUMBERS, lambda x: tf.stack([x, x * 2], axis=-1)),
    "stacked rows": (NUMBERS.reshape(20, 2), lambda x: tf.stack([x, x * 2], axis=1)),
    "one-hot": (np.arange(40) % 7, lambda x: tf.one_hot(x, 5)),
    "one-hot in front": (np.arange(40).reshape(20, 2) % 7, lambda x: tf.one_hot(x, 5, axis=0)),
    "division that may fail": (np.arange(40), lambda x: 100 // (x - 7)),
    "text": ([f"{k},{k / 8}, a b" for k in range(40)], lambda s: tf.decode_csv(s, [[0], [0.0], [""]])),
    "quoted text": ([f'{k},"{k},""x"""' for k in range(40)], lambda s: tf.decode_csv(s, [[0], [""]])),
    "text with a bad line": (["1,2", "3", "4,5", "6,7", "8,9"] * 4, lambda s: tf.decode_csv(s, [[0], [0]])),
    "missing fields": (["1,2", ",5", "6,", "8,9"] * 5, lambda s: tf.decode_csv(s, [[-1.0], [-2.0]])),
    "numbers": ([f"{k}.5" for k in range(40)], lambda s: tf.string_to_number(s) + 1),
    "raw": ([bytes([k, 0, k, 1]) for k in range(40)], lambda s: tf.decode_raw(s, tf.int16)),
    "raw of several lengths": ([bytes(k % 3) for k in range(40)], lambda s: tf.shape(tf.decode_raw(s, tf.int8))[0]),
    "Examples": ([example(k) for k in range(40)], parse),
    "an Example that lacks a feature": ([example(k) for k in range(20)] + [b""] + [example(3)] * 9, parse),
    "an Example with more features": (
        [example(k) if k % 5 else example(k, more=tf.train.Feature()) for k in range(40)], parse,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_blocks_of_elements_equal_single_ones(session: tf.Session, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given, function = FUNCTIONS[name]
    following = Dataset.from_tensor_slices(given).map(function).batch(7).make_one_shot_iterator().get_next()
    fast = taken(session, following)
    monkeypatch.setattr(Batched, "of", lambda captured, context: None)
    with tf.Session() as other:
        assert taken(other, following) == fast != []


@pytest.mark.parametrize("name", ["arithmetic", "constants of lower rank", "stacked", "one-hot", "text", "Examples"])
def test_functions_are_called_for_blocks(elements: Elements, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    columns = Batched.columns

    def noted(self: Any, block: Any) -> Any:
        made = columns(self, block)
        sizes.append(0 if made is None else block.count)
        return made

    monkeypatch.setattr(Batched, "columns", noted)
    given, function = FUNCTIONS[name]
    elements(Dataset.from_tensor_slices(given).map(function).batch(10))
    assert sizes[0] == 10


def test_filters_of_blocks_equal_those_of_single_elements(session: tf.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = Dataset.range(1000).filter(lambda x: tf.equal(x * x % 7, 2)).map(lambda x: x + 1)
    following = chosen.shuffle(9, seed=1).batch(7).make_one_shot_iterator().get_next()
    fast = taken(session, following)
    monkeypatch.setattr(Batched, "of", lambda captured, context: None)
    with tf.Session() as other:
        assert taken(other, following) == fast


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.fill([x % 5], x),
        lambda x: tf.range(x, x * 2, 3),
        lambda x: tf.string_split([tf.as_string(x * 7)], "1").values,
        lambda x: tf.concat([tf.ones([x], tf.int32), tf.zeros([x + 1], tf.int32)], 0),
        lambda x: tf.fill([x - 2], x),
    ],
    ids=["fill", "range", "split", "concat", "an error"],
)
def test_small_functions_give_what_planned_ones_give(
    session: tf.Session, function: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    following = Dataset.range(6).map(function).make_one_shot_iterator().get_next()
    short = taken(session, following)
    monkeypatch.setattr(SmallFunction, "of", lambda plan: None)
    with tf.Session() as other:
        assert taken(other, following) == short


def test_an_error_of_a_small_function_is_worded_as_any(session: tf.Session) -> None:
    following = Dataset.range(-3, 3).map(lambda x: tf.fill([x], x)).make_one_shot_iterator().get_next()
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Fill 'Fill'.*-3.*test_fast_ways.py"):
        session.run(following)


def test_records_of_several_lengths(elements: Elements, tmp_path: Path) -> None:
    values = [bytes([k % 251]) * (k * 37 % 90) for k in range(500)] + [b"same"] * 40 + [b"y" * 5000, b""]
    with tf.python_io.TFRecordWriter(str(tmp_path / "x")) as writer:
        for value in values:
            writer.write(value)
    assert elements(tf.data.TFRecordDataset(str(tmp_path / "x")), 1000) == values


@pytest.mark.parametrize("wrong", [0, 9, 39])
def test_a_damaged_record_among_equal_ones_is_found(elements: Elements, tmp_path: Path, wrong: int) -> None:
    name = tmp_path / "x"
    with tf.python_io.TFRecordWriter(str(name)) as writer:
        for k in range(40):
            writer.write(bytes([k]) * 20)
    data = bytearray(name.read_bytes())
    data[wrong * 36 + 20] ^= 1
    name.write_bytes(data)
    assert elements(tf.data.TFRecordDataset(str(name))) == [*(bytes([k]) * 20 for k in range(wrong)), "DataLossError"]
