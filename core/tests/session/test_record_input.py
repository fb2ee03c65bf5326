"""RecordInput: records of TFRecord files, round after round."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import timberframe as tf
from timberframe_core.crc32c import crc32c, masked


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        yield session


def encoded(records: list[bytes]) -> bytes:
    parts = []
    for record in records:
        length = struct.pack("<Q", len(record))
        parts += [length, struct.pack("<I", masked(crc32c(length))), record, struct.pack("<I", masked(crc32c(record)))]
    return b"".join(parts)


def write(folder: Path, files: int = 3, each: int = 4) -> set[bytes]:
    for i in range(files):
        (folder / f"part-{i}").write_bytes(encoded([f"{i}.{k}".encode() for k in range(each)]))
    return {f"{i}.{k}".encode() for i in range(files) for k in range(each)}


def read(session: tf.Session, folder: Path, batches: int, **attrs: Any) -> list[bytes]:
    records = tf.raw_ops.RecordInput(file_pattern=str(folder / "part-*"), **attrs)
    return [x for _ in range(batches) for x in session.run(records).tolist()]


def test_each_record_comes_once_in_a_round(session: tf.Session, tmp_path: Path) -> None:
    records = write(tmp_path)
    assert set(read(session, tmp_path, 2, batch_size=6)) == records


def test_rounds_follow_each_other_across_batches(session: tf.Session, tmp_path: Path) -> None:
    records = write(tmp_path)
    assert Counter(read(session, tmp_path, 5, batch_size=12)) == dict.fromkeys(records, 5)


def test_rounds_have_different_orders(session: tf.Session, tmp_path: Path) -> None:
    write(tmp_path)
    found = read(session, tmp_path, 2, batch_size=12)
    assert found[:12] != found[12:]


def test_equal_seeds_give_equal_orders(session: tf.Session, tmp_path: Path) -> None:
    write(tmp_path)
    first, second, other = (read(session, tmp_path, 1, batch_size=12, file_random_seed=s) for s in (1, 1, 2))
    assert first == second != other


def test_buffer_of_one_keeps_the_order_of_a_file(session: tf.Session, tmp_path: Path) -> None:
    write(tmp_path, files=1)
    assert read(session, tmp_path, 1, batch_size=4, file_buffer_size=1) == [b"0.0", b"0.1", b"0.2", b"0.3"]


@pytest.mark.parametrize(("compression", "compress"), [("GZIP", gzip.compress), ("ZLIB", zlib.compress)])
def test_compressed_files(session: tf.Session, tmp_path: Path, compression: str, compress: Any) -> None:
    (tmp_path / "part-0").write_bytes(compress(encoded([b"x" * 100_000, b"y"])))
    found = read(session, tmp_path, 1, batch_size=2, compression_type=compression)
    assert sorted(map(len, found)) == [1, 100_000]


def test_pattern_without_files_is_not_found(session: tf.Session, tmp_path: Path) -> None:
    with pytest.raises(tf.errors.NotFoundError, match=r"RecordInput 'RecordInput': no file matches file_pattern"):
        read(session, tmp_path, 1)


def test_files_that_come_later_are_read(session: tf.Session, tmp_path: Path) -> None:
    records = tf.raw_ops.RecordInput(file_pattern=str(tmp_path / "part-*"), batch_size=12)
    with pytest.raises(tf.errors.NotFoundError):
        session.run(records)
    wanted = write(tmp_path)
    assert set(session.run(records).tolist()) == wanted


def test_files_without_records_are_not_found(session: tf.Session, tmp_path: Path) -> None:
    (tmp_path / "part-0").write_bytes(b"")
    with pytest.raises(tf.errors.NotFoundError, match="have no record; one at least is required"):
        read(session, tmp_path, 1)


@pytest.mark.parametrize("at", [0, 9, 13, -1])
def test_damaged_record_is_data_loss(session: tf.Session, tmp_path: Path, at: int) -> None:
    data = bytearray(encoded([b"record"]))
    data[at] ^= 1
    (tmp_path / "part-0").write_bytes(bytes(data))
    with pytest.raises(tf.errors.DataLossError, match="has a damaged record"):
        read(session, tmp_path, 1, batch_size=1)


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
@pytest.mark.parametrize("length", [1 << 40, (1 << 64) - 1])
def test_record_longer_than_its_file_is_data_loss(
    session: tf.Session, tmp_path: Path, length: int, compression: str
) -> None:
    number = struct.pack("<Q", length)
    data = number + struct.pack("<I", masked(crc32c(number))) + b"abc"
    compress = {"": bytes, "GZIP": gzip.compress, "ZLIB": zlib.compress}[compression]
    (tmp_path / "part-0").write_bytes(compress(data))
    with pytest.raises(tf.errors.DataLossError, match="has a damaged record"):
        read(session, tmp_path, 1, batch_size=1, compression_type=compression)


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_file_of_another_compression_is_data_loss(session: tf.Session, tmp_path: Path, compression: str) -> None:
    write(tmp_path)
    with pytest.raises(tf.errors.DataLossError, match=f"it must be compressed by {compression}"):
        read(session, tmp_path, 1, compression_type=compression)
