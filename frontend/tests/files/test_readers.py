"""Readers: records of the files that a queue names."""

from __future__ import annotations

import threading
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op

BRIEF = tf.RunOptions(timeout_in_ms=100)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Two text files of three and two lines."""
    (tmp_path / "a.txt").write_text("title\none\r\ntwo\n")
    (tmp_path / "b.txt").write_text("title\nthree")
    return [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]


def named(session: tf.Session, names: list[Any], close: bool = True) -> tf.FIFOQueue:
    """Returns a queue with these names of files."""
    queue = tf.FIFOQueue(10, [tf.string], shapes=[[]])
    session.run(queue.enqueue_many([names]))
    if close:
        session.run(queue.close())
    return queue


def all_of(session: tf.Session, reader: tf.ReaderBase, queue: tf.QueueBase) -> list[tuple[bytes, bytes]]:
    """Returns all pairs of key and value that a reader gives."""
    read, found = reader.read(queue), []
    with suppress(tf.errors.OutOfRangeError):
        while True:
            found.append(session.run(read))
    return found


def test_lines_come_file_after_file(session: tf.Session, files: list[str]) -> None:
    found = all_of(session, tf.TextLineReader(), named(session, files))
    assert [value for _, value in found] == [b"title", b"one", b"two", b"title", b"three"]


def test_header_lines_are_skipped_in_each_file_and_counted(session: tf.Session, files: list[str]) -> None:
    found = all_of(session, tf.TextLineReader(skip_header_lines=1), named(session, files))
    assert found[0] == (f"{files[0]}:2".encode(), b"one")
    assert len(found) == 3


def test_whole_files_are_records(session: tf.Session, files: list[str]) -> None:
    found = all_of(session, tf.WholeFileReader(), named(session, files[1:]))
    assert found == [(files[1].encode(), b"title\nthree")]


def test_identity_reader_gives_what_the_queue_has(session: tf.Session) -> None:
    assert all_of(session, tf.IdentityReader(), named(session, ["x"])) == [(b"x", b"x")]


@pytest.mark.parametrize("encoding", ["", "ZLIB"])
def test_records_of_fixed_length_leave_out_header_and_footer(
    session: tf.Session, tmp_path: Path, encoding: str
) -> None:
    path = tmp_path / "fixed"
    data = b"HEabcdefghF"
    path.write_bytes(zlib.compress(data) if encoding else data)
    reader = tf.FixedLengthRecordReader(3, header_bytes=2, footer_bytes=1, encoding=encoding)
    found = all_of(session, reader, named(session, [str(path)]))
    assert found == [(f"{path}:0".encode(), b"abc"), (f"{path}:1".encode(), b"def")]


def test_records_may_overlap(session: tf.Session, tmp_path: Path) -> None:
    (tmp_path / "fixed").write_bytes(b"abcd")
    found = all_of(session, tf.FixedLengthRecordReader(2, hop_bytes=1), named(session, [str(tmp_path / "fixed")]))
    assert [value for _, value in found] == [b"ab", b"bc", b"cd"]


@pytest.mark.parametrize("compression", ["", "ZLIB", "GZIP"])
def test_keys_of_tfrecords_say_where_they_begin(session: tf.Session, tmp_path: Path, compression: str) -> None:
    path, options = str(tmp_path / "records"), tf.python_io.TFRecordOptions(compression)
    with tf.python_io.TFRecordWriter(path, options) as writer:
        for record in (b"first", b"second"):
            writer.write(record)
    found = all_of(session, tf.TFRecordReader(options=options), named(session, [path]))
    assert found == [(f"{path}:0".encode(), b"first"), (f"{path}:21".encode(), b"second")]


def test_read_up_to_ends_with_the_file(session: tf.Session, files: list[str]) -> None:
    _, values = tf.TextLineReader().read_up_to(named(session, files), 4)
    assert [session.run(values).tolist() for _ in range(2)] == [[b"title", b"one", b"two"], [b"title", b"three"]]


def test_reader_counts_records_and_files(session: tf.Session, files: list[str]) -> None:
    reader = tf.TextLineReader()
    all_of(session, reader, named(session, files))
    assert session.run([reader.num_records_produced(), reader.num_work_units_completed()]) == [5, 2]


def test_reset_begins_again(session: tf.Session, files: list[str]) -> None:
    reader = tf.TextLineReader()
    read = reader.read(named(session, [*files, *files]))
    session.run(read)
    session.run(reader.reset())
    assert session.run(reader.num_records_produced()) == 0
    assert session.run(read)[0] == f"{files[1]}:1".encode()


def test_state_of_whole_files_goes_over_to_another_reader(session: tf.Session, files: list[str]) -> None:
    reader, other = tf.WholeFileReader(), tf.WholeFileReader()
    all_of(session, reader, named(session, files))
    session.run(other.restore_state(session.run(reader.serialize_state())))
    assert session.run([other.num_records_produced(), other.num_work_units_completed()]) == [2, 2]


def test_state_of_lines_cannot_be_saved(session: tf.Session) -> None:
    reader = tf.TextLineReader()
    assert not reader.supports_serialize
    with pytest.raises(tf.errors.UnimplementedError, match="is a TextLineReader"):
        session.run(reader.serialize_state())


@pytest.mark.parametrize("state", [b"nonsense", b"\x08", b"\x22\x7fshort", b"\x08\x01", b"\x10\x01"])
def test_damaged_state_is_refused(session: tf.Session, state: bytes) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="gets"):
        session.run(tf.WholeFileReader().restore_state(state))


def test_missing_file_is_an_error_and_the_next_one_is_read(session: tf.Session, files: list[str]) -> None:
    read = tf.WholeFileReader().read(named(session, ["/none/here", files[1]]))
    with pytest.raises(tf.errors.NotFoundError, match=r"'/none/here': No such file"):
        session.run(read)
    assert session.run(read)[1] == b"title\nthree"


def test_damaged_record_is_data_loss(session: tf.Session, tmp_path: Path) -> None:
    (tmp_path / "records").write_bytes(b"x" * 40)
    with pytest.raises(tf.errors.DataLossError, match="damaged record"):
        session.run(tf.TFRecordReader().read(named(session, [str(tmp_path / "records")])))


def test_queue_of_numbers_is_refused(session: tf.Session) -> None:
    queue = tf.FIFOQueue(1, [tf.int32], shapes=[[]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="one string, the name of a file, is required"):
        session.run(tf.IdentityReader().read(queue))


@pytest.mark.parametrize(
    ("op", "attrs", "said"),
    [
        ("FixedLengthRecordReaderV2", {"record_bytes": 0}, "record_bytes is 0"),
        ("FixedLengthRecordReaderV2", {"record_bytes": 1, "encoding": "GZIP"}, "encoding is 'GZIP'"),
        ("TFRecordReaderV2", {"compression_type": "LZ4"}, "compression_type is 'LZ4'"),
        ("TextLineReaderV2", {"skip_header_lines": -1}, "skip_header_lines is -1"),
    ],
)
def test_wrong_settings_are_refused(session: tf.Session, op: str, attrs: dict[str, Any], said: str) -> None:
    reader = tf.ReaderBase(apply_op(op, attrs=attrs))
    with pytest.raises(tf.errors.InvalidArgumentError, match=said):
        session.run(reader.read(named(session, ["x"])))


def test_waiting_for_a_file_ends_with_the_time_limit(session: tf.Session, files: list[str]) -> None:
    queue = named(session, [], close=False)
    read = tf.IdentityReader().read(queue)
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(read, options=BRIEF)
    session.run(queue.enqueue("x"))
    assert session.run(read)[1] == b"x"


def test_threads_that_wait_for_files_end_when_the_queue_is_closed(session: tf.Session) -> None:
    queue = named(session, [], close=False)
    read, close = tf.IdentityReader().read(queue), queue.close()
    session.run(queue.size())
    errors: list[BaseException] = []

    def work() -> None:
        try:
            session.run(read)
        except tf.errors.OutOfRangeError as e:
            errors.append(e)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    session.run(close)
    for thread in threads:
        thread.join(20)
    assert len(errors) == 3
