"""Bincount, DenseBincount and StringNGrams: what their definitions say of good and of wrong calls."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from timberframe_core import errors
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.samples import Arg

OPS = ("Bincount", "DenseBincount", "StringNGrams")
NGRAMS = {"separator": "|", "ngram_widths": (2,), "left_pad": "<", "right_pad": ">", "pad_width": 0}


def call(name: str, *inputs: Any, **attrs: Any) -> Any:
    op = registry.get(name)
    defaults = {n: a.default for n, a in op.attrs.items() if not a.required}
    assert op.reference is not None
    return op.reference({**defaults, **attrs}, *inputs)


def ngrams(texts: list[bytes], splits: list[int], **attrs: Any) -> tuple[list[bytes], list[int]]:
    given = {**NGRAMS, "preserve_short_sequences": False, **attrs}
    made, ends = call("StringNGrams", np.array(texts, object), np.array(splits, np.int64), **given)
    return made.tolist(), ends.tolist()


@pytest.mark.parametrize("name", ["Bincount", "DenseBincount"])
def test_numbers_of_at_least_size_are_not_counted(name: str) -> None:
    got = call(name, np.array([1, 1, 5, 2], np.int32), np.int32(4), np.zeros(0, np.float32))
    assert (got.tolist(), got.dtype) == ([0, 2, 1, 0], np.float32)


@pytest.mark.parametrize("name", ["Bincount", "DenseBincount"])
def test_weights_of_equal_numbers_are_added(name: str) -> None:
    got = call(name, np.array([1, 0, 1], np.int32), np.int32(2), np.array([0.5, 2, 4]))
    assert got.tolist() == [2, 4.5]


def test_rows_of_a_matrix_are_counted_apart() -> None:
    numbers = np.array([[1, 1, 5, 2], [0, 3, 3, 9]], np.int64)
    got = call("DenseBincount", numbers, np.int64(4), np.arange(8).reshape(2, 4))
    assert got.tolist() == [[0, 1, 3, 0], [4, 0, 0, 11]]


def test_binary_counts_say_what_occurs() -> None:
    got = call("DenseBincount", np.array([1, 1, 0], np.int32), np.int32(3), np.zeros(0, np.int64), binary_output=True)
    assert got.tolist() == [1, 1, 0]


def test_ngrams_of_each_row_come_width_by_width() -> None:
    assert ngrams([b"a", b"b", b"c", b"d"], [0, 3, 4], ngram_widths=(2, 1)) == (
        [b"a|b", b"b|c", b"a", b"b", b"c", b"d"],
        [0, 5, 6],
    )


def test_rows_get_one_string_less_than_the_width_at_each_end() -> None:
    assert ngrams([b"a"], [0, 0, 1], ngram_widths=(3,), pad_width=-1) == (
        [b"<|<|>", b"<|>|>", b"<|<|a", b"<|a|>", b"a|>|>"],
        [0, 2, 5],
    )


def test_short_rows_are_joined_as_a_whole_where_asked_for() -> None:
    kept = ngrams([b"a", b"b"], [0, 0, 2], ngram_widths=(5,), pad_width=1, preserve_short_sequences=True)
    assert kept == ([b"<|a|b|>"], [0, 0, 1])
    assert ngrams([b"a", b"b"], [0, 0, 2], ngram_widths=(5,), pad_width=1) == ([], [0, 0, 0])


@pytest.mark.parametrize(
    ("name", "number"), [(name, i) for name in OPS for i in range(len(registry.get(name).errors()))]
)
def test_a_wrong_call_says_what_is_required(name: str, number: int) -> None:
    """Where the shapes do not say so before, the reference does."""
    from timberframe_core.graph.apply import apply_op
    from timberframe_core.graph.graph import Graph

    op = registry.get(name)
    sample = op.errors()[number]
    inputs = [_array(a, arg) for a, arg in zip(sample.inputs, op.inputs, strict=True)]

    def built_and_run() -> None:
        with Graph().as_default():
            apply_op(name, inputs, dict(sample.attrs))
        call(name, *inputs, **sample.attrs)

    with pytest.raises(errors.InvalidArgumentError, match=re.compile(sample.match, re.S)):
        built_and_run()


def _array(sample: Any, arg: Any) -> np.ndarray:
    assert isinstance(sample, Arg)
    dtype = arg.dtype.numpy if arg.dtype is not None else np.dtype(np.int64 if arg.type_attr != "T" else np.float32)
    if sample.values is not None:
        return np.asarray(sample.values, object if dtype.kind == "O" else dtype)
    return np.full(sample.shape, int(sample.low or 0), dtype)
