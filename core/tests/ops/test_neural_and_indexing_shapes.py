"""Shapes and errors of neural and indexing ops, with everything known and with little known."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from timberframe_core.dtypes import as_dtype
from timberframe_core.errors import InvalidArgumentError, UnimplementedError
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import InferenceContext
from timberframe_core.shapes import Shape

CONV: dict[str, Any] = {"strides": (1, 2, 2, 1), "padding": "SAME"}


def _shapes(
    op: str, shapes: Sequence[Shape], attrs: Mapping[str, Any] | None = None, values: Mapping[int, Any] | None = None
) -> list[Shape]:
    definition = registry.get(op)
    full = {a.name: a.default for a in definition.attrs.values() if not a.required} | dict(attrs or {})
    known = [None if i not in (values or {}) else np.array((values or {})[i]) for i in range(len(shapes))]
    types = [as_dtype("float32")] * len(shapes)
    return list(definition.shape(InferenceContext(definition, "node", full, shapes, known, types)))


def test_convolution_keeps_unknown_sizes() -> None:
    assert _shapes("Conv2D", [(None, 7, None, 3), (3, 3, 3, 8)], CONV) == [(None, 4, None, 8)]


def test_convolution_of_unknown_ranks_has_rank_four() -> None:
    assert _shapes("Conv2D", [None, None], CONV) == [(None, None, None, None)]


def test_channels_first_moves_the_spatial_sizes() -> None:
    attrs = {"strides": (1, 1, 2, 2), "padding": "VALID", "data_format": "NCHW"}
    assert _shapes("Conv2D", [(2, 3, 9, 9), (3, 3, 3, 8)], attrs) == [(2, 8, 4, 4)]


def test_depthwise_channels_are_multiplied() -> None:
    assert _shapes("DepthwiseConv2dNative", [(1, 4, 4, 3), (3, 3, 3, 2)], CONV) == [(1, 2, 2, 6)]


def test_window_larger_than_the_image_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="must not be larger than the padded input"):
        _shapes("Conv2D", [(1, 2, 2, 1), (3, 3, 1, 1)], CONV | {"padding": "VALID"})


def test_stride_over_the_batch_is_not_implemented() -> None:
    with pytest.raises(UnimplementedError, match="MaxPool 'node'"):
        _shapes("MaxPool", [(4, 4, 4, 1)], {"ksize": (1, 1, 1, 1), "strides": (2, 1, 1, 1), "padding": "SAME"})


def test_channels_that_no_group_fits_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="input has 5 channels; the filter takes 2"):
        _shapes("Conv2D", [(1, 4, 4, 5), (1, 1, 2, 2)], CONV)


def test_output_channels_that_no_group_fits_are_refused() -> None:
    words = "input has 3 channels; the filter takes 1, so its 4 output channels are for 3 groups"
    with pytest.raises(InvalidArgumentError, match=words):
        _shapes("Conv2D", [(1, 4, 4, 3), (1, 1, 1, 4)], CONV)


def test_batch_norm_learns_channels_from_its_parameters() -> None:
    attrs = {"U": as_dtype("float32")}
    shapes = _shapes("FusedBatchNormV3", [None, (8,), (8,), (0,), (0,)], attrs)
    assert shapes == [(None, None, None, 8), (8,), (8,), (8,), (8,), (0,)]


def test_gather_with_unknown_axis_has_a_known_rank() -> None:
    assert _shapes("GatherV2", [(2, 3), (4, 5), ()]) == [(None, None, None)]


def test_gather_with_batch_shares_leading_sizes() -> None:
    shapes = _shapes("GatherV2", [(None, 5, 7), (2, 3), ()], {"batch_dims": 1}, {2: 2})
    assert shapes == [(2, 5, 3)]


def test_gather_value_serves_shape_arithmetic() -> None:
    definition = registry.get("GatherV2")
    values = [np.array([5, 6, 7]), np.array([2, 0]), np.array(0)]
    attrs = {a.name: a.default for a in definition.attrs.values() if not a.required}
    context = InferenceContext(definition, "node", attrs, [(3,), (2,), ()], values, [as_dtype("int32")] * 3)
    assert definition.value is not None
    (value,) = definition.value(context)
    assert value is not None
    assert value.tolist() == [7, 5]


def test_scatter_needs_one_slice_for_each_tuple() -> None:
    with pytest.raises(InvalidArgumentError, match=r"has shape \(3,\); with indices \(2, 1\) it must be \(2,\)"):
        _shapes("ScatterNd", [(2, 1), (3,), (1,)], values={2: [4]})


def test_one_hot_without_depth_has_an_unknown_size() -> None:
    assert _shapes("OneHot", [(2, 3), (), (), ()], {"axis": 0}) == [(None, 2, 3)]


def test_where_has_a_column_for_each_dimension() -> None:
    assert _shapes("Where", [(2, None, 4)]) == [(None, 3)]


def test_where_of_a_scalar_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="rank must be 1 to 8"):
        _shapes("Where", [()])


def test_top_k_of_more_than_there_is_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="k is 4 for rows of 3; it must not be above their size"):
        _shapes("TopKV2", [(2, 3), ()], values={1: 4})


def test_stitch_is_as_long_as_its_highest_index_says() -> None:
    assert _shapes("DynamicStitch", [(2,), (1,), (2, 5), (1, 5)], {"N": 2}, {0: [0, 6], 1: [2]}) == [(7, 5)]


def test_cross_entropy_broadcasts_labels() -> None:
    assert _shapes("SoftmaxCrossEntropyWithLogits", [(4, 7), (1, 7)]) == [(4,), (4, 7)]


@pytest.mark.parametrize(
    ("kernel", "stride", "dilation"), [(3, 1, 1), (3, 2, 1), (2, 2, 1), (5, 3, 1), (3, 2, 2), (3, 1, 2)]
)
def test_terms_of_an_input_gradient_are_the_most_that_an_element_adds_up(
    kernel: int, stride: int, dilation: int
) -> None:
    """With ones everywhere an element of the gradient is the number of its products."""
    for op, spatial in (("Conv2D", 2), ("Conv3D", 3)):
        gradient = registry.get(f"{op}BackpropInput" + ("V2" if spatial == 3 else ""))
        size = stride * 5 + dilation * (kernel - 1) + 1
        shape = (1, *(size,) * spatial, 2)
        attrs: dict[str, Any] = {
            "strides": (1, *(stride,) * spatial, 1), "dilations": (1, *(dilation,) * spatial, 1), "padding": "VALID",
            "explicit_paddings": (), "data_format": "NHWC" if spatial == 2 else "NDHWC",
        }  # fmt: skip
        filter, grad = np.ones((*(kernel,) * spatial, 2, 3)), np.ones((1, *(6,) * spatial, 3))
        inputs = np.array(shape), filter, grad
        assert gradient.accuracy.terms(attrs, *inputs) == np.max(gradient.reference(attrs, *inputs))
