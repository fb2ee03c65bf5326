"""`tf.quantize`, `tf.dequantize` and `tf.fake_quant_*`, which are in `tf.quantization` too, and what is there alone."""

from __future__ import annotations

from typing import Any, NamedTuple

from timberframe_core.dtypes import float32
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Tensor

__all__ = [
    "dequantize", "fake_quant_with_min_max_args", "fake_quant_with_min_max_args_gradient",
    "fake_quant_with_min_max_vars", "fake_quant_with_min_max_vars_gradient",
    "fake_quant_with_min_max_vars_per_channel", "fake_quant_with_min_max_vars_per_channel_gradient", "quantize",
    "quantize_v2",
]  # fmt: skip

NAMESPACES = {
    "quantization": (
        *(name for name in __all__ if name != "quantize_v2"), "quantize_and_dequantize", "quantize_and_dequantize_v2",
    )
}  # fmt: skip


class Quantized(NamedTuple):
    """What `quantize` gives: integers, and the range that all of them cover."""

    output: Tensor
    output_min: Tensor
    output_max: Tensor


def quantize(
    input: Any,
    min_range: Any,
    max_range: Any,
    T: Any,  # noqa: N803 - TensorFlow's name
    mode: str = "MIN_COMBINED",
    round_mode: str = "HALF_AWAY_FROM_ZERO",
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
    ensure_minimum_range: float = 0.01,
) -> Quantized:
    """Returns the integers that stand for the numbers of `input`, and the range that all integers of the dtype T cover.

    min_range, max_range: the ends of the range, or vectors with those of each slice along `axis`. The range is extended
    until it has 0 and is at least `ensure_minimum_range` of its larger end wide. mode: as in `dequantize`. round_mode:
    HALF_TO_EVEN with SCALED alone. narrow_range: SCALED leaves the smallest integer out. Numbers outside the range
    become its ends. InvalidArgumentError where max_range is below min_range.
    """
    attrs = {
        "T": T, "mode": mode, "round_mode": round_mode, "narrow_range": narrow_range,
        "axis": -1 if axis is None else axis, "ensure_minimum_range": ensure_minimum_range,
    }  # fmt: skip
    return Quantized(*apply_op("QuantizeV2", [input, min_range, max_range], attrs, name))


def quantize_v2(
    input: Any,
    min_range: Any,
    max_range: Any,
    T: Any,  # noqa: N803 - TensorFlow's name
    mode: str = "MIN_COMBINED",
    name: str | None = None,
    round_mode: str = "HALF_AWAY_FROM_ZERO",
    narrow_range: bool = False,
    axis: int | None = None,
    ensure_minimum_range: float = 0.01,
) -> Quantized:
    """Does as `quantize`, with another order of the arguments."""
    return quantize(input, min_range, max_range, T, mode, round_mode, name, narrow_range, axis, ensure_minimum_range)


def quantize_and_dequantize(
    input: Any,
    input_min: Any,
    input_max: Any,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
) -> Tensor:
    """Rounds the numbers of `input` to those that integers of `num_bits` bits stand for, evenly spaced with 0 exact.

    range_given: the range is input_min to input_max, scalars or a number for each slice along `axis`, and numbers
    outside become its ends; else it is that of the input. The gradient passes to all inputs.
    """
    attrs = _round_trip_attrs(signed_input, num_bits, range_given, round_mode, narrow_range, axis)
    result: Tensor = apply_op("QuantizeAndDequantizeV2", [input, input_min, input_max], attrs, name)
    return result


def quantize_and_dequantize_v2(
    input: Any,
    input_min: Any,
    input_max: Any,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
) -> Tensor:
    """Does as `quantize_and_dequantize`, but the gradient passes to the inputs within the range alone."""
    attrs = _round_trip_attrs(signed_input, num_bits, range_given, round_mode, narrow_range, axis)
    result: Tensor = apply_op("QuantizeAndDequantizeV4", [input, input_min, input_max], attrs, name)
    return result


def _round_trip_attrs(
    signed_input: bool, num_bits: int, range_given: bool, round_mode: str, narrow_range: bool, axis: int | None
) -> dict[str, Any]:
    return {
        "signed_input": signed_input, "num_bits": num_bits, "range_given": range_given, "round_mode": round_mode,
        "narrow_range": narrow_range, "axis": -1 if axis is None else axis,
    }  # fmt: skip


def dequantize(
    input: Any,
    min_range: Any,
    max_range: Any,
    mode: str = "MIN_COMBINED",
    name: str | None = None,
    axis: int | None = None,
    narrow_range: bool = False,
    dtype: Any = float32,
) -> Tensor:
    """Returns the floating numbers that quantized integers represent; their whole range
    represents min_range to max_range.

    mode: MIN_COMBINED; MIN_FIRST, where the range is moved so that 0 is exact; SCALED, where 0 is 0 and only the end of
    the range with the larger magnitude is exact; narrow_range omits the smallest integer. axis: the dimension whose
    slices have a range of their own. dtype: float32, or bfloat16 with MIN_COMBINED.
    """
    attrs = {"mode": mode, "narrow_range": narrow_range, "axis": -1 if axis is None else axis, "dtype": dtype}
    result: Tensor = apply_op("Dequantize", [input, min_range, max_range], attrs, name)
    return result


def fake_quant_with_min_max_args(
    inputs: Any,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Returns the inputs, clamped to a range and rounded to the numbers that 2^num_bits integers
    stand for, evenly spaced.

    inputs: float32. The range is moved so that it has 0. num_bits: 2 to 16. narrow_range: with one integer less. The
    gradient is 1 in the range and 0 elsewhere.
    """
    attrs = {"min": min, "max": max, "num_bits": num_bits, "narrow_range": narrow_range}
    result: Tensor = apply_op("FakeQuantWithMinMaxArgs", [inputs], attrs, name)
    return result


def fake_quant_with_min_max_args_gradient(
    gradients: Any,
    inputs: Any,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Returns the gradient of `fake_quant_with_min_max_args` by its inputs: gradients where these are in the range."""
    attrs = {"min": min, "max": max, "num_bits": num_bits, "narrow_range": narrow_range}
    result: Tensor = apply_op("FakeQuantWithMinMaxArgsGradient", [gradients, inputs], attrs, name)
    return result


def fake_quant_with_min_max_vars(
    inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False, name: str | None = None
) -> Tensor:
    """`fake_quant_with_min_max_args` with scalar tensors min and max, which get gradients, too.

    Theirs are the sums of the gradients where inputs are below the range, and above it. Where both are 0 so is the
    result.
    """
    result: Tensor = _by_tensors("FakeQuantWithMinMaxVars", [inputs, min, max], num_bits, narrow_range, name)
    return result


def fake_quant_with_min_max_vars_gradient(
    gradients: Any, inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Returns the gradients of `fake_quant_with_min_max_vars` by inputs, min and max."""
    given = [gradients, inputs, min, max]
    return _by_tensors("FakeQuantWithMinMaxVarsGradient", given, num_bits, narrow_range, name)


def fake_quant_with_min_max_vars_per_channel(
    inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False, name: str | None = None
) -> Tensor:
    """`fake_quant_with_min_max_vars` with a range for each entry of the last axis: min and max are vectors."""
    result: Tensor = _by_tensors("FakeQuantWithMinMaxVarsPerChannel", [inputs, min, max], num_bits, narrow_range, name)
    return result


def fake_quant_with_min_max_vars_per_channel_gradient(
    gradients: Any, inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Returns the gradients of `fake_quant_with_min_max_vars_per_channel` by inputs, min and max."""
    given = [gradients, inputs, min, max]
    return _by_tensors("FakeQuantWithMinMaxVarsPerChannelGradient", given, num_bits, narrow_range, name)


def _by_tensors(op: str, inputs: list[Any], num_bits: int, narrow_range: bool, name: str | None) -> Any:
    return apply_op(op, inputs, {"num_bits": num_bits, "narrow_range": narrow_range}, name)
