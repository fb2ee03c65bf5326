"""Ops that take strings apart: TensorFlow's string_ops and parsing_ops."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import DType
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, MissingGradient, NotDifferentiable, define_op
from timberframe_core.ops.definition.rows import same_on_rows
from timberframe_core.shapes import Shape, broadcast
from timberframe_core.wording import with_article

_STRINGS = NotDifferentiable("strings have no derivative")

_PARTS = ("indices: int64", "values: string", "shape: int64")


def _sparse(rows: Sequence[Sequence[bytes]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns rows of different length as a sparse matrix."""
    indices = [(i, j) for i, row in enumerate(rows) for j in range(len(row))]
    flat = [x for row in rows for x in row]
    values = np.empty(len(flat), object)
    values[:] = flat
    widest = max((len(row) for row in rows), default=0)
    return np.array(indices, np.int64).reshape(-1, 2), values, np.array([len(rows), widest], np.int64)


def _sparse_shape(c: InferenceContext) -> Sequence[Shape]:
    c.require_rank(0, 1)
    return [(None, 2), (None,), (2,)]


def _split_by_letters(attrs: Attrs, texts: np.ndarray, delimiter: np.ndarray) -> tuple[np.ndarray, ...]:
    """At each byte of the delimiter, or for an empty one into bytes."""
    letters = bytes(delimiter.item())

    def parts(text: bytes) -> list[bytes]:
        if not letters:
            return [text[i : i + 1] for i in range(len(text))]
        for letter in letters[1:]:
            text = text.replace(bytes([letter]), letters[:1])
        found = text.split(letters[:1]) if text else []
        return [x for x in found if x] if attrs["skip_empty"] else found

    return _sparse([parts(x) for x in texts.tolist()])


define_op(
    "StringSplit",
    inputs=("input: string", "delimiter: string"),
    outputs=_PARTS,
    attrs=("skip_empty: bool = true",),
    doc="The parts of each string of a vector between any bytes of the delimiter, or its bytes for an empty one, as a "
    "sparse matrix; skip_empty: without empty parts.",
    shape=_sparse_shape,
    reference=_split_by_letters,
    gradient=_STRINGS,
    on_host=True,
)


def _split_by_word(attrs: Attrs, texts: np.ndarray, separator: np.ndarray) -> tuple[np.ndarray, ...]:
    word, most = bytes(separator.item()), attrs["maxsplit"]
    return _sparse([x.split(word or None, most) for x in texts.tolist()])


define_op(
    "StringSplitV2",
    inputs=("input: string", "sep: string"),
    outputs=_PARTS,
    attrs=("maxsplit: int = -1",),
    doc="The parts of each string of a vector as Python's split gives them, as a sparse matrix; an empty separator is "
    "white space.",
    shape=_sparse_shape,
    reference=_split_by_word,
    gradient=_STRINGS,
    on_host=True,
)


def _substring_shape(c: InferenceContext) -> Sequence[Shape]:
    return [broadcast(c.shapes[0], c.shapes[1])]


def _substrings(attrs: Attrs, texts: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    texts, starts, lengths = np.broadcast_arrays(texts, starts, lengths)
    made = np.empty(texts.shape, object)
    for at in np.ndindex(texts.shape):
        text: Any = texts[at]
        start, length = int(starts[at]), int(lengths[at])
        whole = text if attrs["unit"] == "BYTE" else text.decode(errors="replace")
        if not -len(whole) <= start <= len(whole):
            raise InvalidArgumentError(f"pos is {start} for a string of length {len(whole)}; it must lie inside")
        start = start + len(whole) if start < 0 else start
        part = whole[start : start + max(length, 0)]
        made[at] = part if isinstance(part, bytes) else part.encode()
    return made


define_op(
    "Substr",
    inputs=("input: string", "pos: T", "len: T"),
    outputs=("output: string",),
    attrs=("T: {int32, int64}", "unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'"),
    doc="The part of each string that begins at pos, from the end if it is negative, and has at most len bytes, or "
    "characters of UTF-8.",
    shape=_substring_shape,
    reference=_substrings,
    gradient=_STRINGS,
    on_host=True,
)


def _columns_shape(c: InferenceContext) -> Sequence[Shape]:
    return [c.shapes[0]] * len(c.attrs["OUT_TYPE"])


def _columns(attrs: Attrs, records: np.ndarray, *defaults: np.ndarray) -> tuple[np.ndarray, ...]:
    delimiter, chosen = attrs["field_delim"], attrs["select_cols"] or range(len(defaults))
    if len(delimiter) != 1:
        raise InvalidArgumentError(f"field_delim is {delimiter!r}; one character is required")
    if len(chosen) != len(defaults):
        raise InvalidArgumentError(
            f"select_cols has {len(chosen)} columns for {len(defaults)} defaults; each needs one"
        )
    rows = []
    for record in records.reshape(-1).tolist():
        fields = _fields(record, delimiter, attrs["use_quote_delim"])
        if (not attrs["select_cols"] and len(fields) != len(defaults)) or max(chosen, default=-1) >= len(fields):
            raise InvalidArgumentError(f"a record has {len(fields)} fields; {len(defaults)} are required")
        rows.append([fields[i] for i in chosen] if attrs["select_cols"] else fields)
    missing = attrs["na_value"].encode()
    return tuple(
        _column([row[i] for row in rows], dtype, defaults[i], i, missing).reshape(records.shape)
        for i, dtype in enumerate(attrs["OUT_TYPE"])
    )


def _fields(record: bytes, delimiter: str, quotes: bool) -> list[bytes]:
    """Returns the fields of a record; quotes: one may stand between quotation marks."""
    letter = delimiter.encode("latin-1", "replace")
    if not quotes:
        return record.split(letter)
    if b'"' not in record and b"\n" not in record and b"\r" not in record:
        return record.split(letter)
    fields, at = [], 0
    while True:
        if record[at : at + 1] == b'"':
            field, at = _quoted(record, at)
        else:
            end = record.find(letter, at)
            end = len(record) if end < 0 else end
            field, at = record[at:end], end
            if b'"' in field or b"\n" in field or b"\r" in field:
                raise InvalidArgumentError(
                    f"a field is {field!r}; one with quotation marks or line breaks must stand within quotation marks"
                )
        fields.append(field)
        if at == len(record):
            return fields
        if record[at : at + 1] != letter:
            raise InvalidArgumentError(
                f"after the field {field!r}, which ends with a quotation mark, comes {record[at : at + 1]!r}; a "
                "delimiter, or the end of the record, is required"
            )
        at += 1


def _quoted(record: bytes, at: int) -> tuple[bytes, int]:
    """Returns the field between quotation marks that begins at a position, in which two
    stand for one; where it ends.
    """
    parts = []
    while True:
        end = record.find(b'"', at + 1)
        if end < 0:
            raise InvalidArgumentError(
                f"a field begins with {record[at : at + 20]!r}; its quotation mark must be closed"
            )
        parts.append(record[at + 1 : end])
        if record[end + 1 : end + 2] != b'"':
            return b'"'.join(parts), end + 1
        at = end + 1


def _number(field: bytes, kind: type[int] | type[float]) -> int | float:
    """Returns a number as C reads it; ValueError for what only Python takes, such as `1_000`."""
    if b"_" in field or not field.isascii():
        raise ValueError(field)
    return kind(field)


def _column(fields: list[bytes], dtype: DType, default: np.ndarray, index: int, missing: bytes) -> np.ndarray:
    kind = dtype.numpy
    if kind.kind == "f" and b"" not in fields and missing not in fields:
        with contextlib.suppress(ValueError):  # which is worded below
            return np.array([_number(x, float) for x in fields]).astype(kind)
    values: list[object] = []
    for field in fields:
        if field in (b"", missing):
            if not default.size:
                raise InvalidArgumentError(f"field {index} is missing and has no default; one is required")
            values.append(default.reshape(-1)[0])
            continue
        try:
            values.append(field if kind.kind == "O" else _number(field, int if kind.kind == "i" else float))
        except ValueError:
            raise InvalidArgumentError(f"field {index} is {field!r}; {with_article(kind.name)} is required") from None
    made = np.empty(len(values), kind)
    try:
        made[:] = values
    except OverflowError:
        limits = np.iinfo(kind)
        wrong = next(x for x in values if isinstance(x, int) and not limits.min <= x <= limits.max)
        raise InvalidArgumentError(f"field {index} is {wrong}; {with_article(kind.name)} is required") from None
    return made


define_op(
    "DecodeCSV",
    inputs=("records: string", "record_defaults: OUT_TYPE"),
    outputs=("output: OUT_TYPE",),
    attrs=(
        "OUT_TYPE: list({float, double, int32, int64, string}) >= 1",
        "field_delim: string = ','",
        "use_quote_delim: bool = true",
        "na_value: string = ''",
        "select_cols: list(int) = []",
    ),
    doc="The columns of records whose fields stand between delimiters (RFC 4180). Fields that are empty or na_value "
    "take the column's default, which must be given where it is needed.",
    shape=_columns_shape,
    reference=_columns,
    gradient=MissingGradient("by the values that stand for missing fields"),
    on_host=True,
    on_rows=same_on_rows("records"),
)
