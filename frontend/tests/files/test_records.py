"""tf.python_io: TFRecord files."""

from __future__ import annotations

from pathlib import Path

import pytest

import timberframe as tf

RECORDS = [b"", b"one", b"\x00" * 1000]


@pytest.mark.parametrize("compression", ["", "ZLIB", "GZIP"])
def test_records_are_read_as_written(tmp_path: Path, compression: str) -> None:
    options = tf.python_io.TFRecordOptions(compression)
    path = tmp_path / "a.tfrecord"
    with tf.python_io.TFRecordWriter(path, options) as writer:
        for record in RECORDS:
            writer.write(record)
    assert list(tf.python_io.tf_record_iterator(path, options)) == RECORDS


def test_types_of_compression_may_be_numbers() -> None:
    kind = tf.python_io.TFRecordCompressionType
    assert tf.python_io.TFRecordOptions(kind.GZIP).compression_type == "GZIP"
    assert tf.python_io.TFRecordOptions.get_compression_type_string(None) == ""


def test_records_reach_the_file_with_flush(tmp_path: Path) -> None:
    writer = tf.python_io.TFRecordWriter(tmp_path / "a")
    writer.write("text")
    writer.flush()
    assert list(tf.python_io.tf_record_iterator(tmp_path / "a")) == [b"text"]
    writer.close()


def test_damage_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with tf.python_io.TFRecordWriter(path) as writer:
        writer.write(b"one")
        writer.write(b"two")
    path.write_bytes(path.read_bytes().replace(b"two", b"tow"))
    found = tf.python_io.tf_record_iterator(path)
    assert next(found) == b"one"
    with pytest.raises(tf.errors.DataLossError, match="damaged record"):
        next(found)


def test_a_closed_writer_refuses(tmp_path: Path) -> None:
    writer = tf.python_io.TFRecordWriter(tmp_path / "a")
    writer.close()
    with pytest.raises(tf.errors.FailedPreconditionError, match="is closed"):
        writer.write(b"")


def test_errors_say_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(tf.errors.NotFoundError, match="its folder must exist"):
        tf.python_io.TFRecordWriter(tmp_path / "no" / "a")
    with pytest.raises(tf.errors.NotFoundError, match="cannot be read"):
        next(tf.python_io.tf_record_iterator(tmp_path / "no"))
    with pytest.raises(tf.errors.InvalidArgumentError, match="compression_type is 'LZ4'"):
        tf.python_io.TFRecordOptions("LZ4")
