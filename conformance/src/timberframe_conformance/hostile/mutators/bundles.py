"""Wrong content in TensorFlow's checkpoints: entries, blocks, handles, checksums."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from timberframe_conformance.hostile.checkpoints import bundle_rows
from timberframe_conformance.hostile.mutators.values import (
    DTYPES,
    SIZES,
    NothingToChangeError,
    change_bytes,
    change_integer,
    change_shape,
    parsed,
    pick,
)
from timberframe_conformance.hostile.tables import Row, Table
from timberframe_core.crc32c import crc32c, masked
from timberframe_core.graphdef.messages import BundleEntryProto, BundleHeaderProto

_Change = Callable[[random.Random, Table, bytes], None]


def _entry(rng: random.Random, table: Table, data: bytes) -> None:
    """Writes another field of an entry."""
    row = pick(rng, [r for r in table.rows if r.key])
    proto = parsed(BundleEntryProto, row.value)
    _ENTRY[rng.choice(list(_ENTRY))](rng, proto)
    if rng.random() < 0.5 and 0 <= proto.offset <= proto.offset + proto.size <= len(data):
        proto.crc32c = masked(crc32c(data[proto.offset : proto.offset + proto.size]))
    row.value = proto.SerializeToString()


def _set(field: str, values: Sequence[int], bits: int) -> Callable[[random.Random, Any], None]:
    def change(rng: random.Random, proto: Any) -> None:
        setattr(proto, field, change_integer(rng, rng.choice([getattr(proto, field), *values]), bits))

    return change


def _extent(rng: random.Random, proto: Any) -> None:
    part = proto.slices.add() if not len(proto.slices) or rng.random() < 0.3 else pick(rng, proto.slices)
    if not len(part.extent) or rng.random() < 0.3:
        part.extent.add(start=rng.choice(SIZES), length=rng.choice(SIZES))
    else:
        extent = pick(rng, part.extent)
        setattr(extent, rng.choice(["start", "length"]), rng.choice(SIZES))


def _dtype(rng: random.Random, proto: Any) -> None:
    proto.dtype = rng.choice(DTYPES)


_ENTRY: dict[str, Callable[[random.Random, Any], None]] = {
    "dtype": _dtype,
    "shape": lambda rng, proto: change_shape(rng, proto.shape),
    "shard": _set("shard_id", (0, 1, -1), 32),
    "offset": _set("offset", SIZES, 64),
    "size": _set("size", SIZES, 64),
    "slices": _extent,
}


def _header(rng: random.Random, table: Table, data: bytes) -> None:
    row = pick(rng, [r for r in table.rows if not r.key])
    header = parsed(BundleHeaderProto, row.value)
    header.num_shards = change_integer(rng, header.num_shards, 32)
    if rng.random() < 0.3:
        header.endianness = rng.choice([0, 1, 7])
    if rng.random() < 0.3:
        header.version.min_consumer = rng.choice([0, 1, 2, -1])
    row.value = header.SerializeToString()


def _keys(rng: random.Random, table: Table, data: bytes) -> None:
    row = pick(rng, table.rows)
    row.key = rng.choice([b"", b"\xff\xfe", b"\0", b"\0x\0\1\1\1", b"k" * 70_000, change_bytes(rng, row.key)])


def _values(rng: random.Random, table: Table, data: bytes) -> None:
    row = pick(rng, table.rows)
    row.value = change_bytes(rng, row.value)


def _rows(rng: random.Random, table: Table, data: bytes) -> None:
    kind = rng.randrange(4)
    if kind == 0:
        table.rows.remove(pick(rng, table.rows))
    elif kind == 1:
        table.rows.append(pick(rng, table.rows))
    elif kind == 2:
        rng.shuffle(table.rows)
    else:
        del table.rows[:]


def _lengths(rng: random.Random, table: Table, data: bytes) -> None:
    row: Row = pick(rng, table.rows)
    setattr(row, rng.choice(["shared", "fresh", "size"]), rng.choice([-1, 1, 5, 1000, *SIZES]))


def _blocks(rng: random.Random, table: Table, data: bytes) -> None:
    kind = rng.randrange(4)
    if kind == 0:
        table.restarts = rng.choice([0, 2, 1000, 2**30, 2**32 - 1])
    elif kind == 1:
        table.handle = rng.choice(SIZES), rng.choice(SIZES)
    elif kind == 2:
        table.index_handle = rng.choice(SIZES), rng.choice(SIZES)
    else:
        table.kind = rng.choice([0, 1, 2, 255])


def _compression(rng: random.Random, table: Table, data: bytes) -> None:
    """Writes a compressed block, and one in which a length or an offset is another."""
    table.compressed = True
    for _ in range(rng.randrange(4)):
        table.damage.append((rng.choice([0, 1, 2, rng.randrange(10**6)]), rng.choice([1, 2, 4, 0x40, 0x80, 0xFF])))


_CHANGES: Sequence[_Change] = (
    _entry, _entry, _entry, _entry, _header, _keys, _values, _rows, _lengths, _blocks, _compression,
)  # fmt: skip


def damaged_table(rng: random.Random) -> bytes:
    """Returns an index file with one to three things changed before its checksums were computed."""
    rows, data = bundle_rows()
    table = Table(rows)
    for _ in range(rng.choice([1, 1, 2, 3])):
        try:
            rng.choice(_CHANGES)(rng, table, data)
        except NothingToChangeError:
            continue
    return table.encode()
