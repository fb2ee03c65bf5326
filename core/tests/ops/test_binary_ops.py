"""Shape functions, host values and references of binary, comparison, selection and cast ops."""

from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core import dtypes
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import UNKNOWN, InferenceContext, evaluate


def infer(op: str, shapes: list[Any], values: list[Any] | None = None, dtype: str = "int32", **attrs: Any) -> Any:
    """Context of one op whose inputs have these shapes, and host values where given."""
    values = values or [None] * len(shapes)
    kinds = [dtypes.as_dtype(dtype)] * len(shapes)
    return InferenceContext(registry.get(op), "n", {"T": kinds[0], **attrs}, shapes, values, kinds)


def shape(op: str, *shapes: Any, **attrs: Any) -> Any:
    context = infer(op, list(shapes), **attrs)
    return context.op.shape(context)[0]


def value(op: str, *values: Any, dtype: str = "int32", **attrs: Any) -> Any:
    partly = [any(x is UNKNOWN for x in np.ravel(np.array(v, object))) for v in values]
    arrays = [np.array(v, object if p else dtype) for v, p in zip(values, partly, strict=True)]
    context = infer(op, [a.shape for a in arrays], arrays, dtype, **attrs)
    assert context.op.value is not None
    return context.op.value(context)[0]


def test_operands_broadcast_with_unknown_sizes() -> None:
    assert shape("AddV2", (None, 3), (5, 1)) == (5, 3)


def test_unknown_rank_gives_unknown_rank() -> None:
    assert shape("Mul", None, (2,)) is None


def test_shapes_that_do_not_broadcast_are_named() -> None:
    with pytest.raises(InvalidArgumentError, match=r"AddV2 'n': shapes \(2,\) and \(3,\) do not broadcast; sizes"):
        shape("AddV2", (2,), (3,))


def test_equality_of_mismatched_shapes_is_one_answer_when_asked_for() -> None:
    assert shape("Equal", (2,), (3,), incompatible_shape_error=False) == ()


def test_select_wants_one_condition_for_each_row() -> None:
    assert shape("Select", (2,), (2, 5), (2, 5)) == (2, 5)
    with pytest.raises(InvalidArgumentError, match="one element for each row"):
        shape("Select", (3,), (2, 5), (2, 5))


def test_select_v2_broadcasts_all_three() -> None:
    assert shape("SelectV2", (4, 1), (3,), ()) == (4, 3)


def test_clip_bounds_are_scalars_or_have_the_shape() -> None:
    assert shape("ClipByValue", (None, 3), (), (2, 3)) == (2, 3)
    with pytest.raises(InvalidArgumentError, match="must be equal"):
        shape("ClipByValue", (4,), (1,), ())


def test_add_n_merges_what_is_known() -> None:
    assert shape("AddN", (None, 3), (2, None), N=2) == (2, 3)


def test_bitcast_adds_and_takes_the_last_dimension() -> None:
    assert shape("Bitcast", (7,), dtype="float32", type=dtypes.uint8) == (7, 4)
    assert shape("Bitcast", (7, 4), dtype="uint8", type=dtypes.float32) == (7,)


def test_shape_arithmetic_keeps_what_is_known() -> None:
    assert list(value("Mul", [UNKNOWN, 3], [2, 5])) == [UNKNOWN, 15]
    assert list(value("Maximum", [4, UNKNOWN], 7)) == [7, UNKNOWN]


@pytest.mark.parametrize(
    ("op", "expected"),
    [("FloorDiv", -4), ("TruncateDiv", -3), ("Div", -3), ("FloorMod", 1), ("TruncateMod", -1), ("Sub", -9)],
)
def test_host_values_follow_the_sign_rules(op: str, expected: int) -> None:
    assert value(op, [-7], [2]).tolist() == [expected]
    assert value(op, [UNKNOWN, -7], [2, 2])[1] == expected


def test_division_by_zero_on_the_host_is_left_to_the_kernel() -> None:
    assert value("FloorDiv", [4], [0]) is None
    assert value("FloorDiv", [UNKNOWN, 4], [1, 0]) is None


def test_cast_of_integers_keeps_unknown_elements() -> None:
    out = value("Cast", [UNKNOWN, 3], dtype="int64", SrcT=dtypes.int64, DstT=dtypes.int32)
    assert list(out) == [UNKNOWN, 3]


def test_broadcast_args_knows_sizes_next_to_unknown_ones() -> None:
    assert list(value("BroadcastArgs", [UNKNOWN, 1, 4], [5, UNKNOWN])) == [UNKNOWN, 5, 4]


def test_broadcast_args_names_the_shapes() -> None:
    with pytest.raises(InvalidArgumentError, match=r"\(2, 3\) and \(3, 2, 5\) do not broadcast"):
        value("BroadcastArgs", [2, 3], [3, 2, 5])


def reference(op: str, *inputs: Any, dtype: str = "float32", **attrs: Any) -> Any:
    function = registry.get(op).reference
    assert function is not None
    with np.errstate(all="ignore"):
        return function({"T": dtypes.as_dtype(dtype), **attrs}, *(np.array(x, dtype) for x in inputs))


def test_least_integer_over_minus_one_wraps_around() -> None:
    assert reference("TruncateDiv", [-128], [-1], dtype="int8").tolist() == [-128]


def test_float_floor_mod_takes_the_divisors_sign() -> None:
    assert reference("FloorMod", [5.0, -5.0, 5.0, -5.0], [3.0, 3.0, -3.0, -3.0]).tolist() == [2.0, 1.0, -1.0, -2.0]


def test_float64_to_bfloat16_rounds_once() -> None:
    x = np.array([1 + 2**-8 + 2**-40])
    (out,) = evaluate(registry.get("Cast"), {"SrcT": dtypes.float64, "DstT": dtypes.bfloat16}, [x])
    assert float(out[0]) == 1 + 2**-7


def test_clip_ignores_bounds_that_are_nan() -> None:
    out = reference("ClipByValue", [1.0, 5.0, np.nan], [np.nan, 0.0, 0.0], [1.0, np.nan, 1.0])
    np.testing.assert_array_equal(out, [1.0, 5.0, np.nan])


@pytest.mark.parametrize("op", ["AddV2", "Pow", "Equal", "SelectV2", "Cast", "LeftShift", "FloorDiv", "AddN"])
def test_samples_can_be_listed(op: str) -> None:
    assert len(list(registry.get(op).samples())) > 5


def test_an_empty_dividend_has_an_empty_remainder_whatever_the_divisor() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.int32, [None])
        y = tf.reshape(tf.ones([1]), tf.concat([x % tf.constant([0]), [1]], 0))
        assert session.run(y, {x: []}).shape == (1,)
