"""slim's readers of data sets: records of files, Examples as items, queues of batches."""

from __future__ import annotations

import io
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import timberframe as tf
from timberframe.compat.programs import resolve

slim = tf.contrib.slim
decoder = slim.tfexample_decoder

PIXELS = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)


def png(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    return file.getvalue()


def example(**features: Any) -> bytes:
    """Returns a serialized Example; each feature is a list of bytes, ints or floats."""
    made = tf.train.Example()
    for key, values in features.items():
        feature = made.features.feature[key]
        kind = {bytes: feature.bytes_list, int: feature.int64_list, float: feature.float_list}[type(values[0])]
        kind.value.extend(values)
    return made.SerializeToString()


def decoded(session: tf.Session, handler: Any, features: dict[str, Any], **values: Any) -> Any:
    """Returns the item that a handler makes of an Example."""
    made = decoder.TFExampleDecoder(features, {"item": handler}).decode(tf.constant(example(**values)))
    return session.run(made[0])


NUMBERS = tf.VarLenFeature(tf.int64)


def test_features_become_tensors_of_their_shapes(session: tf.Session) -> None:
    found = decoded(session, decoder.Tensor("x"), {"x": NUMBERS}, x=[1, 2, 3])
    assert found.tolist() == [1, 2, 3]
    found = decoded(session, decoder.Tensor("x", shape=[2, 2]), {"x": NUMBERS}, x=[1, 2, 3, 4])
    assert found.tolist() == [[1, 2], [3, 4]]
    sizes = {"x": NUMBERS, "height": tf.FixedLenFeature([], tf.int64), "width": NUMBERS}
    handler = decoder.Tensor("x", shape_keys=["height", "width"])
    assert decoded(session, handler, sizes, x=[1, 2, 3], height=[3], width=[1]).tolist() == [[1], [2], [3]]
    fixed = {"x": tf.FixedLenFeature([2], tf.float32), "shape": NUMBERS}
    assert decoded(session, decoder.Tensor("x", "shape"), fixed, x=[1.0, 2.0], shape=[2, 1]).tolist() == [[1], [2]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="'x': shape_keys and shape are given"):
        decoder.Tensor("x", "shape", [1])


def test_boxes_are_rows(session: tf.Session) -> None:
    sides = {f"box/{side}": tf.VarLenFeature(tf.float32) for side in ("ymin", "xmin", "ymax", "xmax")}
    values = {key: [float(i), i + 0.5] for i, key in enumerate(sides)}
    found = decoded(session, decoder.BoundingBox(prefix="box/"), sides, **values)
    assert found.tolist() == [[0, 1, 2, 3], [0.5, 1.5, 2.5, 3.5]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="four are required"):
        decoder.BoundingBox(["a"])


def test_indices_and_values_become_a_sparse_tensor(session: tf.Session) -> None:
    features = {"ids": NUMBERS, "weights": tf.VarLenFeature(tf.float32)}
    values = {"ids": [1, 3], "weights": [0.5, 2.0]}
    found = decoded(session, decoder.SparseTensor("ids", "weights", shape=[5]), features, **values)
    assert (found.indices.tolist(), found.values.tolist(), found.dense_shape.tolist()) == ([[1], [3]], [0.5, 2], [5])
    dense = decoder.SparseTensor("ids", "weights", shape=[5], densify=True, default_value=-1.0)
    assert decoded(session, dense, features, **values).tolist() == [-1, 0.5, -1, 2, -1]


def test_functions_tables_and_backups_make_items(session: tf.Session) -> None:
    doubled = decoder.ItemHandlerCallback("x", lambda found: found["x"].values * 2)
    assert decoded(session, doubled, {"x": NUMBERS}, x=[1, 2]).tolist() == [2, 4]
    keys = tf.constant(["cat", "dog"])
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, tf.constant([7, 9])), -1)
    session.run(tf.tables_initializer())
    words = {"word": tf.FixedLenFeature([], tf.string)}
    assert decoded(session, decoder.LookupTensor("word", table), words, word=[b"dog"]) == 9
    both = decoder.BackupHandler(decoder.Tensor("x"), decoder.Tensor("y"))
    assert decoded(session, both, {"x": NUMBERS, "y": NUMBERS}, y=[5]).tolist() == [5]
    assert decoded(session, both, {"x": NUMBERS, "y": NUMBERS}, x=[4], y=[5]).tolist() == [4]
    with pytest.raises(tf.errors.InvalidTypeError, match="backup is str; an ItemHandler is required"):
        decoder.BackupHandler(both, "y")  # type: ignore[arg-type]  # the mistake


PICTURE = {"image/encoded": tf.FixedLenFeature([], tf.string), "image/format": tf.FixedLenFeature([], tf.string)}


def test_pictures_are_decoded_by_their_format(session: tf.Session) -> None:
    values = {"image/encoded": [png(PIXELS)], "image/format": [b"png"]}
    np.testing.assert_array_equal(decoded(session, decoder.Image(), PICTURE, **values), PIXELS)
    raw = {"image/encoded": [PIXELS.tobytes()], "image/format": [b"raw"]}
    np.testing.assert_array_equal(decoded(session, decoder.Image(shape=[2, 4, 3]), PICTURE, **raw), PIXELS)
    made = decoder.TFExampleDecoder(PICTURE, {"image": decoder.Image(channels=1)}).decode(tf.constant(example()))
    assert made[0].shape.as_list() == [None, None, 1]


def test_a_feature_with_several_pictures(session: tf.Session) -> None:
    features = {**PICTURE, "image/encoded": tf.FixedLenSequenceFeature([], tf.string, allow_missing=True)}
    values = {"image/encoded": [png(PIXELS), png(PIXELS + 1)], "image/format": [b"png"]}
    found = decoded(session, decoder.Image(repeated=True), features, **values)
    np.testing.assert_array_equal(found, [PIXELS, PIXELS + 1])


@pytest.fixture
def dataset(tmp_path: Path) -> Any:
    """Six labels in two files."""
    for part in range(2):
        with tf.python_io.TFRecordWriter(str(tmp_path / f"part-{part}")) as writer:
            for label in range(3):
                writer.write(example(label=[3 * part + label]))
    made = decoder.TFExampleDecoder({"label": tf.FixedLenFeature([], tf.int64)}, {"label": decoder.Tensor("label")})
    return slim.dataset.Dataset(
        str(tmp_path / "part-*"), tf.TFRecordReader, made, 6, {"label": "a number"}, num_classes=6
    )  # fmt: skip


def labels(session: tf.Session, label: Any) -> list[int]:
    """Returns all values until the readers have come to the end."""
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coordinator)
    found: list[int] = []
    with suppress(tf.errors.OutOfRangeError):
        while True:
            found.append(int(session.run(label)))
    coordinator.request_stop()
    coordinator.join(threads)
    return found


def test_a_data_set_is_read_in_order(session: tf.Session, dataset: Any) -> None:
    provider = slim.dataset_data_provider.DatasetDataProvider(dataset, shuffle=False, num_epochs=2)
    assert provider.list_items() == ["label", "record_key"]
    assert (provider.num_samples(), dataset.num_classes) == (6, 6)
    (label,) = provider.get(["label"])
    assert labels(session, label) == [*range(6), *range(6)]


def test_several_readers_shuffle_a_data_set(session: tf.Session, dataset: Any) -> None:
    provider = slim.dataset_data_provider.DatasetDataProvider(
        dataset, num_readers=2, num_epochs=1, common_queue_capacity=8, common_queue_min=2, seed=1
    )
    assert sorted(labels(session, provider.get(["label"])[0])) == list(range(6))


def test_items_that_are_not_there(session: tf.Session, dataset: Any) -> None:
    provider = slim.dataset_data_provider.DatasetDataProvider(dataset)
    with pytest.raises(tf.errors.InvalidArgumentError, match="no item 'image'; it must be one of label, record_key"):
        provider.get(["image"])
    with pytest.raises(tf.errors.InvalidArgumentError, match="record_key 'label' is an item"):
        slim.dataset_data_provider.DatasetDataProvider(dataset, record_key="label")
    with pytest.raises(tf.errors.InvalidArgumentError, match="matches no file"):
        slim.parallel_reader.get_data_files("/none/*")


def test_readers_count_what_they_have_read(session: tf.Session, dataset: Any) -> None:
    with pytest.raises(tf.errors.InvalidTypeError, match="has components int32; two strings are required"):
        slim.parallel_reader.ParallelReader(dataset.reader, tf.FIFOQueue(9, [tf.int32]))
    queue = tf.FIFOQueue(9, [tf.string, tf.string])
    readers = slim.parallel_reader.ParallelReader(dataset.reader, queue, num_readers=2)
    files = tf.train.string_input_producer(slim.parallel_reader.get_data_files([dataset.data_sources]), num_epochs=1)
    _, record = readers.read(files)
    assert (readers.num_readers, readers.common_queue) == (2, queue)
    (label,) = dataset.decoder.decode(record)
    assert sorted(labels(session, label)) == list(range(6))
    assert session.run([readers.num_records_produced(), readers.num_work_units_completed()]) == [6, 2]


def test_a_single_pass(session: tf.Session, dataset: Any) -> None:
    _, record = slim.parallel_reader.single_pass_read(dataset.data_sources, dataset.reader)
    (label,) = dataset.decoder.decode(record, ["label"])
    assert labels(session, label) == list(range(6))


@pytest.mark.parametrize("named", [True, False])
def test_a_queue_of_batches(session: tf.Session, dataset: Any, named: bool) -> None:
    provider = slim.dataset_data_provider.DatasetDataProvider(dataset, shuffle=False, num_epochs=1)
    (label,) = provider.get(["label"])
    queue = slim.prefetch_queue.prefetch_queue({"label": label} if named else [label], capacity=2)
    taken = queue.dequeue()
    assert labels(session, taken["label"] if named else taken) == list(range(6))


def test_programs_import_the_modules_by_their_paths() -> None:
    for name in ("dataset", "dataset_data_provider", "parallel_reader", "prefetch_queue", "tfexample_decoder"):
        assert resolve(f"contrib.slim.python.slim.data.{name}") is getattr(slim, name)
