"""Kernels that move, join, pad and make tensors: held against the references, and what samples do not reach."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from timberframe_core.dtypes import DType, as_dtype
from timberframe_core.errors import InvalidArgumentError, UnimplementedError
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.ops.definition.samples import Arg, Sample
from timberframe_core.plugin.contracts import KernelNode, Value
from timberframe_cpu.kernels import constants, movement
from timberframe_cpu.moves import MAX_RANK, move
from timberframe_cpu.native import call, native
from timberframe_cpu.testing import run_op
from timberframe_sdk.native import Native
from timberframe_sdk.plans.moves import dense

_ELSEWHERE = ("Assert", "Range", "LinSpace", "ResourceStridedSliceAssign")
OPS = sorted(
    {
        kernel.op
        for family in (constants, movement)
        for kernel in family.KERNELS
        if registry.get(kernel.op).reference is not None and kernel.op not in _ELSEWHERE
    }
)
DTYPES = ("uint8", "float16", "float32", "float64", "complex128", "string")


def _array(arg: Arg, dtype: DType, random: np.random.Generator) -> np.ndarray:
    if arg.values is not None:
        return np.asarray(arg.values).astype(dtype.numpy)
    numbers = random.integers(0, 100, arg.shape)
    if dtype.name == "string":
        return np.array([b"%d" % n for n in numbers.flat], object).reshape(arg.shape)
    return np.asarray(numbers).astype(dtype.numpy)


def _trial(op: OpDef, sample: Sample, turn: int) -> tuple[dict[str, Any], list[Any]]:
    """Attrs and inputs of a sample, in one dtype of those that it may have."""
    random, attrs, inputs = np.random.default_rng(turn), dict(sample.attrs), []
    for attr in op.attrs.values():
        if attr.kind == "type" and attr.name not in attrs:
            allowed = sample.types.get(attr.name) or attr.allowed or DTYPES
            attrs[attr.name] = as_dtype(allowed[turn % len(allowed)])
    for arg, given in zip(op.inputs, sample.inputs, strict=True):
        items = [given] if isinstance(given, Arg) else given
        fixed = arg.dtype or attrs.get(arg.type_attr or "")
        arrays = [_array(x, as_dtype(x.dtype or fixed), random) for x in items]
        inputs.append(arrays if arg.is_list else arrays[0])
    return attrs, inputs


def _flat(inputs: list[Any]) -> Iterator[np.ndarray]:
    for given in inputs:
        yield from given if isinstance(given, list) else [given]


@pytest.mark.parametrize("name", OPS)
def test_kernel_gives_what_the_reference_gives(name: str) -> None:
    op = registry.get(name)
    assert op.reference is not None
    for turn, sample in enumerate(op.samples()):
        if sample.implementation_defined:
            continue
        attrs, inputs = _trial(op, sample, turn)
        got = run_op(name, attrs, inputs, threads=1 + turn % 2)
        full = attrs | {a.name: a.default for a in op.attrs.values() if not a.required and a.name not in attrs}
        counts = {a.number_attr: len(x) for a, x in zip(op.inputs, inputs, strict=True) if a.number_attr}
        expected = op.reference(full | counts, *_flat(inputs))
        for g, e in zip(got, expected if isinstance(expected, tuple) else (expected,), strict=True):
            np.testing.assert_array_equal(g, e, err_msg=f"{sample}", strict=True)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("shape", [(300, 500), (513, 511), (3, 70_001), (70_001, 3)])
def test_transpose_of_each_element_size(dtype: str, shape: tuple[int, int]) -> None:
    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    [y] = run_op("Transpose", {}, [x, np.array([1, 0])], threads=2)
    np.testing.assert_array_equal(y, x.T)


def test_large_rows_are_shared_by_threads() -> None:
    x = np.arange(2 * 300_001, dtype=np.float32).reshape(2, 300_001)
    [y] = run_op("ConcatV2", {}, [[x, x], np.array(1)], threads=4)
    np.testing.assert_array_equal(y, np.concatenate([x, x], 1))


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_from_beyond_the_caches_are_whole(threads: int) -> None:
    x = np.arange(2 * 2_100_003, dtype=np.uint16).reshape(2, -1).view(np.uint8)
    [joined] = run_op("ConcatV2", {}, [[x, x[:, ::-1].copy()], np.array(1)], threads=threads)
    np.testing.assert_array_equal(joined, np.concatenate([x, x[:, ::-1]], 1))


def test_unaligned_feed_is_moved() -> None:
    x = np.zeros(4 * 35 + 1, np.uint8)[1:].view(np.float32).reshape(5, 7)
    x[...] = np.arange(35).reshape(5, 7)
    [y] = run_op("Transpose", {}, [x, np.array([1, 0])])
    np.testing.assert_array_equal(y, x.T)


def test_strings_may_stand_beside_numbers() -> None:
    x, y = np.arange(3, dtype=np.float32), np.array([b"a", b"bc"], object)
    got = run_op("IdentityN", {}, [[x, y]])
    assert [g.tolist() for g in got] == [[0, 1, 2], [b"a", b"bc"]]


def test_dimensions_that_merge_do_not_count() -> None:
    shape = (2,) * 8
    words = move(dense(shape, 4), dense(shape, 4), 4)
    assert words[4] == 1


def test_box_that_does_not_merge_names_the_limit() -> None:
    view = dense((2,) * 18, 1)
    with pytest.raises(UnimplementedError, match="18 dimensions that do not merge; at most 16 are possible"):
        move(view.permuted(range(17, -1, -1)), view, 1)


def test_index_that_is_no_constant_is_read_at_launch() -> None:
    x, start, stop, step = np.arange(12).reshape(3, 4), np.array([-1]), np.array([0]), np.array([1])
    [y] = run_op("StridedSlice", {"shrink_axis_mask": 1}, [x, start, stop, step])
    np.testing.assert_array_equal(y, x[-1])


def test_index_outside_is_named_at_launch() -> None:
    x, start, stop, step = np.arange(12).reshape(3, 4), np.array([3]), np.array([0]), np.array([1])
    with pytest.raises(
        InvalidArgumentError, match=r"index 3 of dimension 0 is outside its size 3; it must lie in \[-3, 3\)"
    ):
        run_op("StridedSlice", {"shrink_axis_mask": 1}, [x, start, stop, step])


@pytest.mark.parametrize(("first", "last", "step"), [(1, 3, 1), (-1, -5, -2), (5, 0, -1), (0, 9, 2)])
def test_range_read_at_launch_selects_the_same(first: int, last: int, step: int) -> None:
    x = np.arange(20, dtype=np.float32).reshape(4, 5)
    whole, y = x[first:last:step], np.empty_like(x[first:last:step])
    call(_late_slice(x, y, step), [x, np.array([first]), np.array([last])], [y])
    np.testing.assert_array_equal(y, whole)


def test_range_that_is_not_the_planned_one_is_refused() -> None:
    x, y = np.arange(4, dtype=np.float32), np.empty(2, np.float32)
    kernel = _late_slice(x, y, 1)
    with pytest.raises(InvalidArgumentError, match="begin and end select 3 elements of dimension 0; the 2 that"):
        call(kernel, [x, np.array([0]), np.array([3])], [y])


def _late_slice(x: np.ndarray, y: np.ndarray, step: int) -> Native:
    """Returns a StridedSlice of the first dimension whose begin and end are not known when it is planned."""
    attrs = dict.fromkeys((f"{k}_mask" for k in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")), 0)
    bound = np.dtype(np.int64)
    inputs = [Value(0, x.dtype, x.shape, "input"), *(Value(i, bound, (1,), "input") for i in (1, 2))]
    inputs.append(Value(3, bound, (1,), "const", np.array([step])))
    device: Any = None
    node = KernelNode("StridedSlice", "node", attrs, inputs, [Value(4, y.dtype, y.shape)], device)
    kernel = movement.strided_slice(node)
    assert isinstance(kernel, Native)
    return kernel


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64"])
def test_range_follows_the_reference(dtype: str) -> None:
    arguments = [np.array(v, dtype) for v in (3, 70, 2)]
    [y] = run_op("Range", {}, arguments)
    np.testing.assert_array_equal(y, np.arange(3, 70, 2).astype(dtype), strict=True)


def test_linspace_ends_at_stop() -> None:
    [y] = run_op("LinSpace", {}, [np.float32(0.1), np.float32(0.7), np.array(11)])
    assert y[-1] == np.float32(0.7)


def test_check_numerics_counts_what_is_not_finite() -> None:
    x = np.ones(70_000, np.float32)
    x[[5, 60_000]], x[7] = np.nan, -np.inf
    with pytest.raises(InvalidArgumentError, match=r"layer: the tensor has 2 NaN, 0 \+Inf and 1 -Inf values"):
        run_op("CheckNumericsV2", {"message": "layer"}, [x])


def test_assert_shows_its_data() -> None:
    data = [np.arange(5), np.array([b"too", b"large"], object)]
    with pytest.raises(InvalidArgumentError, match=r"assertion failed: \[0 1\.\.\.\] \[too large\]; the condition"):
        run_op("Assert", {"summarize": 2}, [np.array(False), data])


@pytest.mark.parametrize("kind", [0, 3], ids=["rows", "transpose"])
def test_box_of_the_most_dimensions_may_be_cut_into_tiles(kind):
    x = np.random.default_rng(0).integers(0, 256, (2, 2, 300_000), np.uint8)
    expected = x if kind == 0 else np.ascontiguousarray(x.transpose(0, 2, 1))
    if kind == 0:
        inner = [(2, 300_000, 300_000), (300_000, 1, 1)]
    else:
        inner = [(300_000, 1, 2), (2, 300_000, 1)]
    dims = [(2, 600_000, 600_000), *[(1, 0, 0)] * (MAX_RANK - 3), *inner]
    y = np.empty_like(expected)
    words = [0, 0, 1, kind, len(dims), 0, 0, *[n for dim in dims for n in dim]]
    call(native("move", 1, 0, 0, *words), [x], [y], threads=2)
    np.testing.assert_array_equal(y, expected)
