"""Functions on strings, which are `tf.strings.*` too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe.api.reduction import renamed
from timberframe_core.dtypes import string
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor

__all__ = [
    "reduce_join", "string_join", "string_to_hash_bucket", "string_to_hash_bucket_fast", "string_to_hash_bucket_strong",
]  # fmt: skip

NAMESPACES = {
    "strings": (
        "join", "reduce_join", "regex_full_match", "to_hash_bucket", "to_hash_bucket_fast", "to_hash_bucket_strong",
        "unicode_script", "unicode_transcode",
    )
}  # fmt: skip


def string_join(inputs: Sequence[Any], separator: str = "", name: str | None = None) -> Tensor:
    """Returns the strings of several tensors joined element by element, with a separator between them.

    All must have one shape, but for scalars, which are repeated.
    """
    result: Tensor = apply_op("StringJoin", [list(inputs)], {"separator": separator}, name)
    return result


join = string_join


def reduce_join(
    inputs: Any,
    axis: Any = None,
    keep_dims: bool | None = None,
    separator: str = "",
    name: str | None = None,
    reduction_indices: Any = None,
    keepdims: bool | None = None,
) -> Tensor:
    """Returns the strings joined along the axes, the first axis varying fastest; row by row for None.

    keepdims keeps these dimensions with size 1.
    """
    x = convert_to_tensor(inputs, string, name="inputs")
    axes, shape = renamed("axis", axis, "reduction_indices", reduction_indices), x.static_shape
    if axes is None and shape is not None:
        axes = np.arange(len(shape) - 1, -1, -1, dtype=np.int32)
    elif axes is None:
        rank = apply_op("Rank", [x])
        axes = apply_op("Range", [apply_op("Sub", [rank, 1]), -1, -1])
    keep = bool(renamed("keepdims", keepdims, "keep_dims", keep_dims))
    result: Tensor = apply_op("ReduceJoin", [x, axes], {"keep_dims": keep, "separator": separator}, name)
    return result


def regex_full_match(input: Any, pattern: Any, name: str | None = None) -> Tensor:
    """Returns whether the whole of each string matches a regular expression."""
    known = isinstance(pattern, str | bytes)
    result: Tensor = (
        apply_op("StaticRegexFullMatch", [input], {"pattern": pattern}, name)
        if known
        else apply_op("RegexFullMatch", [input, pattern], None, name)
    )
    return result


def string_to_hash_bucket_fast(input: Any, num_buckets: int, name: str | None = None) -> Tensor:
    """For each string a number in [0, num_buckets), by FarmHash's fingerprint, as TensorFlow's."""
    result: Tensor = apply_op("StringToHashBucketFast", [input], {"num_buckets": num_buckets}, name)
    return result


def string_to_hash_bucket(
    string_tensor: Any = None, num_buckets: int | None = None, name: str | None = None, input: Any = None
) -> Tensor:
    """For each string a number in [0, num_buckets), by MurmurHash, as TensorFlow's. input: the first, newly named."""
    given = string_tensor if input is None else input
    result: Tensor = apply_op("StringToHashBucket", [given], {"num_buckets": num_buckets}, name)
    return result


def string_to_hash_bucket_strong(input: Any, num_buckets: int, key: Sequence[int], name: str | None = None) -> Tensor:
    """For each string a number in [0, num_buckets), by SipHash with a key of two integers, as TensorFlow's."""
    attrs = {"num_buckets": num_buckets, "key": list(key)}
    result: Tensor = apply_op("StringToHashBucketStrong", [input], attrs, name)
    return result


to_hash_bucket = string_to_hash_bucket
to_hash_bucket_fast = string_to_hash_bucket_fast
to_hash_bucket_strong = string_to_hash_bucket_strong


def unicode_script(input: Any, name: str | None = None) -> Tensor:
    """Returns the script of each code point (int32), by the number that the library ICU has for it: 25 for Latin.

    -1 for numbers that are no code points. The table is that of TensorFlow 2.21; characters that Unicode did not have
    when an older TensorFlow was made had script 103, unknown, there.
    """
    result: Tensor = apply_op("UnicodeScript", [input], None, name)
    return result


def unicode_transcode(
    input: Any,
    input_encoding: str,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Tensor:
    """Returns the strings in another encoding.

    input_encoding: one that Python knows, such as "UTF-8", "ISO-8859-1" or "Shift_JIS"; "UTF-16" and "UTF-32" without a
    byte order mark are big-endian. output_encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE". errors: with "strict", what is
    not of the encoding raises InvalidArgumentError when it is run; "replace" puts the code point replacement_char in
    its place, "ignore" leaves it out. replace_control_characters: the characters below U+0020 are errors, too.
    """
    attrs = {
        "input_encoding": input_encoding,
        "output_encoding": output_encoding,
        "errors": errors,
        "replacement_char": replacement_char,
        "replace_control_characters": replace_control_characters,
    }
    result: Tensor = apply_op("UnicodeTranscode", [input], attrs, name)
    return result
