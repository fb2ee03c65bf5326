"""Case generation: values, layouts, choice, ids."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

from timberframe_conformance.case import generator
from timberframe_conformance.cases.layouts import LAYOUTS, arrange
from timberframe_conformance.cases.pairwise import extend
from timberframe_conformance.cases.shapes import elementwise_shapes
from timberframe_conformance.cases.trials import fits, samples_of, trials
from timberframe_conformance.cases.types import TESTABLE, combinations, is_expected
from timberframe_conformance.cases.values import make_array
from timberframe_conformance.keyword import KeywordError, compile_keyword
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.samples import Arg, ErrorSample


def found(op: str, *dtypes: str) -> list[Any]:
    groups = {k: v for k, v in combinations(registry.get(op)).items() if not dtypes or k in dtypes}
    return list(trials(registry.get(op), groups))


def test_same_id_gives_same_values() -> None:
    trial = found("AddV2", "float32")[5]
    first, second = trial.arrays("some/id"), trial.arrays("some/id")
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(first, second, strict=True))
    assert not np.array_equal(trial.arrays("other/id")[0], first[0])


def test_ids_are_unique() -> None:
    ids = [(t.types, t.detail) for t in found("Sum")]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("dtype", TESTABLE)
def test_values_have_dtype_and_shape(dtype: str) -> None:
    x = make_array(Arg((3, 5)), dtype, generator("x"), special=True)
    assert x.shape == (3, 5)
    assert dtype == "string" or x.dtype.name == dtype


def test_special_values_are_sprinkled() -> None:
    x = make_array(Arg((1000,)), "float32", generator("x"), special=True)
    assert np.isnan(x).any()
    assert np.isinf(x).any()
    assert ((x != 0) & (np.abs(x) < np.finfo(np.float32).tiny)).any()
    assert ((x == 0) & np.signbit(x)).any()


def test_limits_of_integers_are_sprinkled() -> None:
    x = make_array(Arg((1000,)), "int8", generator("x"), special=True)
    assert {-128, 127} <= set(x.tolist())


def test_range_of_a_sample_is_kept() -> None:
    x = make_array(Arg((100,), low=1, high=3), "uint8", generator("x"))
    assert x.min() >= 1
    assert x.max() <= 3


def test_a_range_beyond_a_narrow_format_ends_at_its_largest_number() -> None:
    x = make_array(Arg((100,), low=1, high=1e30), "float16", generator("x")).astype(np.float64)
    assert np.isfinite(x).all()
    assert x.max() > 6e4
    assert np.unique(x).size > 50
    assert np.unique(make_array(Arg((100,), low=1e6, high=1e38), "float16", generator("x"))) == [np.float16(65504)]


@pytest.mark.parametrize("dtype", ["bfloat16", "float64", "int8", "complex64"])
def test_whole_values_are_whole_and_some_are_equal(dtype: str) -> None:
    made = make_array(Arg((200,), low=0, high=3, whole=True), dtype, np.random.default_rng(0)).astype(complex)
    assert set(np.unique(made.real)) == {0, 1, 2, 3}
    assert (made.imag == np.round(made.imag)).all()


def test_distinct_values_differ() -> None:
    for dtype in ("int8", "float16", "bfloat16", "float32"):
        x = make_array(Arg((5, 7), distinct=True), dtype, generator("x"))
        assert np.unique(x.astype(np.float64)).size == 35


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout_keeps_values(layout: str) -> None:
    for shape in ((), (0,), (7,), (3, 5)):
        x = make_array(Arg(shape), "float64", generator("x"))
        assert np.array_equal(arrange(x, layout), x)


def test_layouts_are_what_they_say() -> None:
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    assert arrange(x, "reversed").strides[0] < 0
    assert not arrange(x, "strided").flags.c_contiguous
    assert not arrange(x, "readonly").flags.writeable
    assert not arrange(x, "misaligned").flags.aligned
    assert arrange(x, "fortran").flags.f_contiguous


def test_columns_meet_in_pairs() -> None:
    rows = list(itertools.product("abcd", "efg"))
    table = extend(rows, (0, 1))
    assert {(r[0], r[2]) for r in table} == set(itertools.product("abcd", (0, 1)))
    assert {(r[1], r[2]) for r in table} == set(itertools.product("efg", (0, 1)))


def test_every_sample_and_every_dtype_is_tried() -> None:
    op = registry.get("MatMul")
    pairs = {(t.types, t.number) for t in found("MatMul")}
    combined = [types for group in combinations(op).values() for types in group]
    wanted = {(t, k) for t in combined for k, s in enumerate(samples_of(op)) if fits(op, s, t)}
    dtypes = {"float32", "float64", "int32"}
    assert {(t, k) for t, k in pairs if t[0][1] in dtypes} == {(t, k) for t, k in wanted if t[0][1] in dtypes}
    assert {k for _, k in pairs} == {k for _, k in wanted}
    assert {t for t, _ in pairs} == {t for t, _ in wanted}


def test_elementwise_ops_get_the_common_shapes() -> None:
    shapes = {s[0] for s in elementwise_shapes(registry.get("Neg"), {})}
    assert {(), (0,), (70001,)} <= shapes
    assert ((3, 1), (1, 5)) in elementwise_shapes(registry.get("AddV2"), {})
    assert not elementwise_shapes(registry.get("MatMul"), {"transpose_a": False, "transpose_b": False})


def test_expected_dtypes_are_tensorflows() -> None:
    assert is_expected("Tanh", {"T": "float32"})
    assert not is_expected("Tanh", {"T": "int32"})
    assert is_expected("Vendor>Op", {"T": "float32"}) is None


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("sum", True),
        ("Sum and float32", True),
        ("sum and not float32", False),
        ("max or #2", True),
        ("not (max or float64) and keep_dims=true", True),
        ("float32 and 3x5#1", False),
    ],
)
def test_keyword_matches_ids(expression: str, expected: bool) -> None:
    assert compile_keyword(expression)("forward/Sum/float32/keep_dims=True-3x5#2") is expected


@pytest.mark.parametrize("expression", ["and", "sum and", "(sum", "sum )", "not"])
def test_broken_keyword_is_refused(expression: str) -> None:
    with pytest.raises(KeywordError, match="unexpected"):
        compile_keyword(expression)


def test_a_wrong_call_among_the_samples_is_named() -> None:
    op = dataclasses.replace(registry.get("Neg"), samples=lambda: [ErrorSample([Arg((2,))], "message")])
    with pytest.raises(InvalidArgumentError, match=r"op Neg: samples gives ErrorSample\(.*go into errors"):
        samples_of(op)
