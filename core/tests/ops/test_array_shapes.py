"""Shape inference of the array ops where sizes or values are known in part."""

from typing import Any

import numpy as np
import pytest

from timberframe_core.dtypes import float32, int32
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.host_values import host_array
from timberframe_core.ops.definition.opdef import UNKNOWN, InferenceContext
from timberframe_core.shapes import Shape


def infer(op: str, *inputs: Any, **attrs: Any) -> list[Shape]:
    """Output shapes for inputs given as shapes (tuples or None), or as values (arrays; lists with None for unknown)."""
    shapes: list[Shape] = []
    values: list[np.ndarray | None] = []
    for given in inputs:
        value = (
            host_array(given, int32) if isinstance(given, list) else given if isinstance(given, np.ndarray) else None
        )
        shapes.append(given if value is None else value.shape)
        values.append(value)
    definition = registry.get(op)
    defaults = {a.name: a.default for a in definition.attrs.values() if not a.required}
    dtypes = [float32] * len(inputs)
    return list(definition.shape(InferenceContext(definition, "node", defaults | attrs, shapes, values, dtypes)))


SCALAR_AXIS = np.array(1)


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "expected"),
    [
        ("Reshape", ((2, 3), [None, 3]), {}, (2, 3)),
        ("Reshape", ((None, 4), [-1, 2]), {}, (None, 2)),
        ("Reshape", ((0, None), [-1, 5]), {}, (0, 5)),
        ("Reshape", (None, [3, -1]), {}, (3, None)),
        ("Reshape", ((6,), (2,)), {}, (None, None)),
        ("Reshape", ((6,), (None,)), {}, None),
        ("ExpandDims", ((2, 3), ()), {}, (None, None, None)),
        ("ExpandDims", ((2, None), SCALAR_AXIS), {}, (2, 1, None)),
        ("Squeeze", ((1, None, 3),), {}, None),
        ("Squeeze", ((1, None, 3),), {"squeeze_dims": (1,)}, (1, 3)),
        ("Transpose", ((2, None), (2,)), {}, (None, None)),
        ("Transpose", ((2, 5, 7), [2, None, 0]), {}, (7, None, 2)),
        ("Transpose", (None, (3,)), {}, (None, None, None)),
        ("ConcatV2", ((None, 3), (2, None), SCALAR_AXIS), {}, (2, None)),
        ("ConcatV2", ((None, 3), (2, 4), SCALAR_AXIS), {}, (2, 7)),
        ("ConcatV2", ((2, 3), (2, 4), ()), {}, (None, None)),
        ("Split", (SCALAR_AXIS, (None, 6)), {"num_split": 3}, (None, 2)),
        ("Pack", ((None, 3), (2, None)), {"axis": 1}, (2, 2, 3)),
        ("Unpack", ((None, 3),), {"num": 2, "axis": 0}, (3,)),
        ("Slice", ((5, 6), [None, 1], [2, -1]), {}, (2, 5)),
        ("Slice", (None, (2,), [2, 3]), {}, (2, 3)),
        ("StridedSlice", ((5, 6), [None, 1], [None, 4], [1, 1]), {}, (None, 3)),
        ("StridedSlice", ((5, 6), [None], [None], [1]), {"shrink_axis_mask": 1}, (6,)),
        ("StridedSlice", ((5, 6), [None], [None], [1]), {"begin_mask": 1, "end_mask": 1}, (5, 6)),
        ("StridedSlice", ((5, 6), (None,), (None,), (None,)), {}, None),
        ("Pad", ((2, None), [None] * 4), {}, None),
        ("Tile", ((2, None), [3, 2]), {}, (6, None)),
        ("Tile", (None, (2,)), {}, (None, None)),
        ("BroadcastTo", ((None, 3), [None, 3]), {}, (None, 3)),
        ("Fill", ([None, 3], ()), {}, (None, 3)),
    ],
)  # fmt: skip
def test_what_is_known_is_inferred(op: str, inputs: Any, attrs: Any, expected: Shape) -> None:
    if op == "Pad":
        inputs, expected = (inputs[0], np.array([[1, UNKNOWN], [0, 2]], object)), (None, None)
    assert infer(op, *inputs, **attrs)[0] == expected


def test_sizes_of_a_stack_stay_known_next_to_unknown_ones() -> None:
    pack = registry.get("Pack")
    context = InferenceContext(pack, "n", {"axis": 0}, [(), ()], [None, np.array(3)], [int32, int32])
    assert pack.value is not None
    [value] = pack.value(context)
    assert value is not None
    assert value[0] is UNKNOWN
    assert value[1] == 3


def test_shape_gives_unknown_elements() -> None:
    shape = registry.get("Shape")
    context = InferenceContext(shape, "n", {"out_type": int32}, [(None, 4)], [None], [float32])
    assert shape.value is not None
    [value] = shape.value(context)
    assert value is not None
    assert value.tolist() == [UNKNOWN, 4]


def test_slice_up_to_the_end_plans_by_its_begin() -> None:
    plan = registry.get("Slice").planned_inputs
    assert plan({}, [None, None, np.array([1, -1])]) == ("size", "begin")
    assert plan({}, [None, None, np.array([1, 2])]) == ("size",)


def test_single_index_plans_without_its_value() -> None:
    attrs = {"shrink_axis_mask": 1, "ellipsis_mask": 0, "new_axis_mask": 0, "begin_mask": 2, "end_mask": 2}
    plan = registry.get("StridedSlice").planned_inputs
    assert plan(attrs, [None, None, None, np.array([1, 1])]) == ("strides",)
    assert plan(attrs | {"end_mask": 0}, [None, None, None, np.array([1, 1])]) == ("strides", "end")
