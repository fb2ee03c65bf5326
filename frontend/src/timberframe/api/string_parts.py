"""Functions that change strings, take them apart, and make numbers of them; most are `tf.strings.*` too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from timberframe_core.dtypes import as_dtype, float32, int64, string
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.sparse_tensor import SparseTensor

__all__ = [
    "as_string", "decode_base64", "decode_compressed", "decode_csv", "decode_raw", "encode_base64", "regex_replace",
    "string_split", "string_strip", "string_to_number", "substr",
]  # fmt: skip

NAMESPACES = {
    "strings": (
        "as_string", "length", "lower", "ngrams", "regex_replace", "split", "strip", "substr", "to_number", "upper",
    ),
}  # fmt: skip


def _one(op: str, inputs: list[Any], attrs: dict[str, Any] | None, name: str | None) -> Tensor:
    result: Tensor = apply_op(op, inputs, attrs, name)
    return result


def lower(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """Returns the strings with small letters: of ASCII, or with encoding "utf-8" of all scripts."""
    return _one("StringLower", [input], {"encoding": encoding}, name)


def upper(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """Returns the strings with capital letters: of ASCII, or with encoding "utf-8" of all scripts."""
    return _one("StringUpper", [input], {"encoding": encoding}, name)


def string_strip(input: Any, name: str | None = None) -> Tensor:
    """Returns the strings without white space at both ends."""
    return _one("StringStrip", [input], None, name)


strip = string_strip


def length(input: Any, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """Returns the number of bytes of each string, or with unit "UTF8_CHAR" of characters, as int32."""
    return _one("StringLength", [input], {"unit": unit}, name)


def substr(input: Any, pos: Any, len: Any, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """Returns the part of each string that begins at pos, from the end if it is negative,
    and has at most `len` bytes.
    """
    return _one("Substr", [input, pos, len], {"unit": unit}, name)


def regex_replace(
    input: Any, pattern: Any, rewrite: Any, replace_global: bool = True, name: str | None = None
) -> Tensor:
    """Returns the strings with what matches a regular expression, all or the first, replaced;
    "\\\\1" is the first group.
    """
    attrs: dict[str, Any] = {"replace_global": replace_global}
    if isinstance(pattern, str) and isinstance(rewrite, str):
        return _one("StaticRegexReplace", [input], {"pattern": pattern, "rewrite": rewrite, **attrs}, name)
    return _one("RegexReplace", [input, pattern, rewrite], attrs, name)


def as_string(
    input: Any, precision: int = -1, scientific: bool = False, shortest: bool = False, width: int = -1, fill: str = "",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Returns numbers as strings, as C's printf writes them: with %f, or %e if scientific, or %g if shortest."""
    attrs = {
        "precision": precision, "scientific": scientific, "shortest": shortest, "width": width, "fill": fill
    }  # fmt: skip
    return _one("AsString", [input], attrs, name)


def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Tensor:
    """Returns the strings in base 64 with the letters of URLs; pad: filled with = to a multiple of 4."""
    return _one("EncodeBase64", [input], {"pad": pad}, name)


def decode_base64(input: Any, name: str | None = None) -> Tensor:
    """Returns the bytes of strings in base 64 with the letters of URLs."""
    return _one("DecodeBase64", [input], None, name)


def string_to_number(
    string_tensor: Any = None, out_type: Any = float32, name: str | None = None, input: Any = None
) -> Tensor:
    """Returns the numbers that strings are; running it raises InvalidArgumentError for one that is none."""
    given = string_tensor if input is None else input
    return _one("StringToNumber", [given], {"out_type": as_dtype(out_type)}, name)


to_number = string_to_number


def string_split(
    source: Any = None, sep: Any = None, skip_empty: bool = True, delimiter: Any = None,
    result_type: str = "SparseTensor", name: str | None = None,
) -> SparseTensor:  # fmt: skip
    """Returns the parts of each string of a vector between any of the letters of `delimiter`
    (or sep; a space for None).

    Returns a SparseTensor with a row for each string. skip_empty: without empty parts. An empty delimiter gives bytes.
    """
    if result_type != "SparseTensor":
        raise InvalidArgumentError(f"tf.string_split: result_type is {result_type!r}; 'SparseTensor' is required")
    letters = " " if sep is None and delimiter is None else sep if delimiter is None else delimiter
    made = apply_op("StringSplit", [source, letters], {"skip_empty": skip_empty}, name)
    return SparseTensor(*made)


def split(
    input: Any = None, sep: Any = None, maxsplit: int = -1, result_type: str = "SparseTensor", source: Any = None,
    name: str | None = None,
) -> SparseTensor:  # fmt: skip
    """Returns the parts of each string of a vector, as Python's str.split gives them; white
    space for None or empty `sep`.

    Returns a SparseTensor with a row for each string.
    """
    if result_type != "SparseTensor":
        raise InvalidArgumentError(f"tf.strings.split: result_type is {result_type!r}; 'SparseTensor' is required")
    given = convert_to_tensor(source if input is None else input, string)
    if given.shape.ndims == 0:
        given = apply_op("ExpandDims", [given, 0])
    made = apply_op("StringSplitV2", [given, sep or ""], {"maxsplit": maxsplit}, name)
    return SparseTensor(*made)


def decode_compressed(bytes: Any, compression_type: str = "", name: str | None = None) -> Tensor:
    """Returns the strings decompressed; compression_type: "ZLIB", "GZIP", or "" for none.

    Running it raises DataLossError for strings that are not of this format, or end too early.
    """
    result: Tensor = apply_op("DecodeCompressed", [bytes], {"compression_type": compression_type}, name)
    return result


def decode_raw(
    input_bytes: Any = None,
    out_type: Any = None,
    little_endian: bool = True,
    name: str | None = None,
    bytes: Any = None,
) -> Tensor:
    """Returns the numbers whose bytes strings are, along a new last dimension; all strings must have as many bytes.

    out_type: a dtype of numbers or bools. little_endian: the order of the bytes of each number. The result is [*shape
    of input_bytes, numbers]. bytes is another name of input_bytes.
    """
    if out_type is None:
        raise InvalidArgumentError("tf.decode_raw: out_type is None; a dtype is required")
    given = input_bytes if bytes is None else bytes
    return _one("DecodeRaw", [given], {"out_type": as_dtype(out_type), "little_endian": little_endian}, name)


def decode_csv(
    records: Any, record_defaults: Sequence[Any], field_delim: str = ",", use_quote_delim: bool = True,
    name: str | None = None, na_value: str = "", select_cols: Sequence[int] | None = None,
) -> list[Tensor]:  # fmt: skip
    """Returns the columns of records whose fields stand between delimiters: a tensor for each, of the records' shape.

    record_defaults: for each column a list with the value of fields that are empty or na_value, or a dtype or an empty
    tensor where a field is required. select_cols: the columns to take, in order; all if None.
    """
    defaults = [_default(d) for d in record_defaults]
    attrs = {
        "OUT_TYPE": [d.dtype for d in defaults], "field_delim": field_delim, "use_quote_delim": use_quote_delim,
        "na_value": na_value, "select_cols": list(select_cols or []),
    }  # fmt: skip
    made = apply_op("DecodeCSV", [records, defaults], attrs, name)
    return list(made) if isinstance(made, list | tuple) else [made]


def _default(given: Any) -> Tensor:
    try:
        dtype = as_dtype(given)
    except (InvalidArgumentError, TypeError, ValueError):
        return convert_to_tensor(given)
    empty: list[Any] = []
    return convert_to_tensor(empty, dtype)


def ngrams(
    data: Any, ngram_width: int | Sequence[int], separator: str = " ", pad_values: str | Sequence[str] | None = None,
    padding_width: int | None = None, preserve_short_sequences: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Returns the strings along the last dimension joined with as many neighbours as ngram_width says, width by width.

    pad_values: what is added at both ends, or at the begin and at the end, as often as padding_width says: one time
    less than the width where it is None. preserve_short_sequences: what is too short is joined as a whole.
    """
    texts = convert_to_tensor(data, string, "data")
    rank = texts.shape.ndims
    if not rank:
        raise InvalidArgumentError(f"tf.strings.ngrams: data has rank {rank}; a known rank of at least 1 is required")
    if padding_width is not None and (pad_values is None or padding_width < 1):
        raise InvalidArgumentError(
            f"tf.strings.ngrams: padding_width is {padding_width}, pad_values {pad_values!r}; at least 1 is required, "
            "and values to add"
        )
    left, right = ("", "") if pad_values is None else (pad_values,) * 2 if isinstance(pad_values, str) else pad_values
    widths = [ngram_width] if isinstance(ngram_width, int) else list(ngram_width)
    attrs = {
        "separator": separator, "ngram_widths": widths, "left_pad": left, "right_pad": right,
        "pad_width": 0 if pad_values is None else -1 if padding_width is None else padding_width,
        "preserve_short_sequences": preserve_short_sequences,
    }  # fmt: skip
    sizes = apply_op("Shape", [texts], {"out_type": int64})
    length, rows = sizes[-1], apply_op("Prod", [sizes[:-1], [0]])
    splits = apply_op("Range", [convert_to_tensor(0, int64), rows + 1, convert_to_tensor(1, int64)]) * length
    found, _ = apply_op("StringNGrams", [apply_op("Reshape", [texts, [-1]]), splits], attrs, name)
    whole = apply_op("ConcatV2", [[sizes[:-1], convert_to_tensor([-1], int64)], 0])
    result: Tensor = apply_op("Reshape", [found, whole])
    return result
