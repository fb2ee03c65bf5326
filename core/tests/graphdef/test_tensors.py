"""TensorProto to ndarray and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core import dtypes
from timberframe_core.dtypes import DType
from timberframe_core.graphdef.tensors import decode_shape, encode_array, encode_shape, make_ndarray

STORABLE = [*dtypes.NUMERIC, *dtypes.FLOATING[4:], *dtypes.QUANTIZED, dtypes.bool_, dtypes.int4, dtypes.uint4]


def proto(dtype: DType, shape: tuple[int, ...], **fields: Any) -> Any:
    return tf.TensorProto(dtype=dtype.number, tensor_shape=encode_shape(shape), **fields)


def sample(dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    values = np.arange(np.prod(shape, dtype=int)) % 7
    if dtype.is_complex:
        return (values - 2j * values).astype(dtype.numpy).reshape(shape)
    return values.astype(dtype.numpy).reshape(shape)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (5,), (2, 3), (3, 0, 2)])
@pytest.mark.parametrize("dtype", STORABLE, ids=str)
def test_arrays_survive_a_round_trip(dtype: DType, shape: tuple[int, ...]) -> None:
    array = sample(dtype, shape)
    back = make_ndarray(tf.TensorProto.FromString(encode_array(array, dtype).SerializeToString()))
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    assert back.tobytes() == array.tobytes()


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_every_bit_of_a_nan_survives(name: str) -> None:
    dtype = dtypes.as_dtype(name)
    bits = np.full(3, -1, f"i{dtype.size}").view(dtype.numpy)
    bits[1] = -0.0
    assert make_ndarray(encode_array(bits, dtype)).tobytes() == bits.tobytes()


def test_negative_zero_is_no_splat_of_zero() -> None:
    array = np.array([0.0, -0.0, 0.0], np.float32)
    assert np.signbit(make_ndarray(encode_array(array))).tolist() == [False, True, False]


def test_strings_survive_a_round_trip() -> None:
    array = np.array([b"a", b"", b"\xff\x00b"], object)
    assert make_ndarray(encode_array(array)).tolist() == array.tolist()


def test_one_repeated_value_is_written_once() -> None:
    assert len(encode_array(np.full((1000, 1000), 3.0, np.float32)).SerializeToString()) < 40


def test_large_splat_takes_no_memory() -> None:
    array = make_ndarray(proto(tf.float32, (1 << 20, 1 << 20), float_val=[2.0]))
    assert array.shape == (1 << 20, 1 << 20)
    assert array[-1, -1] == 2.0


def test_last_listed_value_is_repeated() -> None:
    assert make_ndarray(proto(tf.int32, (2, 2), int_val=[1, 2])).tolist() == [[1, 2], [2, 2]]


def test_empty_list_means_zeros() -> None:
    assert make_ndarray(proto(tf.int64, (3,))).tolist() == [0, 0, 0]


def test_empty_list_of_strings_means_empty_strings() -> None:
    assert make_ndarray(proto(tf.string, (2,))).tolist() == [b"", b""]


def test_surplus_values_are_ignored() -> None:
    assert make_ndarray(proto(tf.float32, (2,), float_val=[1, 2, 3])).tolist() == [1, 2]


def test_half_values_are_bits() -> None:
    assert make_ndarray(proto(tf.float16, (2,), half_val=[0x3C00, 0xC000])).tolist() == [1.0, -2.0]


def test_bfloat16_values_are_bits() -> None:
    assert make_ndarray(proto(tf.bfloat16, (), half_val=[0x4049])) == dtypes.bfloat16.numpy.type(3.140625)


def test_small_integers_are_listed_as_int32() -> None:
    assert make_ndarray(proto(tf.uint8, (2,), int_val=[7, 255])).tolist() == [7, 255]


def test_complex_values_are_pairs() -> None:
    assert make_ndarray(proto(tf.complex64, (2,), scomplex_val=[1, 2, 3, 4])).tolist() == [1 + 2j, 3 + 4j]


def test_packed_strings_decode() -> None:
    content = b"\x01\xac\x02\x00" + b"x" + b"y" * 300
    assert make_ndarray(proto(tf.string, (3,), tensor_content=content)).tolist() == [b"x", b"y" * 300, b""]


def test_packed_strings_cut_short_are_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="ends early"):
        make_ndarray(proto(tf.string, (3,), tensor_content=b"\x01\x80"))


def test_content_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"has 5 bytes; float32 \(2,\) needs 8"):
        make_ndarray(proto(tf.float32, (2,), tensor_content=b"12345"))


def test_missing_dtype_is_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="DT_INVALID"):
        make_ndarray(tf.TensorProto())


def test_unknown_dtype_is_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="dtype 99 is not known"):
        make_ndarray(tf.TensorProto(dtype=99))


def test_unknown_sizes_are_refused() -> None:
    message = tf.TensorProto(dtype=1, tensor_shape=encode_shape((2, None)))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"shape is \(2, \?\); a tensor's sizes must all be known"):
        make_ndarray(message)


def test_sizes_past_63_bits_are_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="over 2\\^63 - 1 elements"):
        make_ndarray(proto(tf.float32, (1 << 40, 1 << 40), float_val=[1]))


def test_negative_size_is_refused() -> None:
    shape = tf.TensorShapeProto()
    shape.dim.add().size = -5
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"sizes are \[-5\]"):
        decode_shape(shape)


@pytest.mark.parametrize("shape", [None, (), (0,), (None, 3)])
def test_shapes_survive_a_round_trip(shape: tuple[int | None, ...] | None) -> None:
    assert decode_shape(encode_shape(shape)) == shape


def test_make_tensor_proto_repeats_the_last_value() -> None:
    assert tf.make_ndarray(tf.make_tensor_proto([1, 2], tf.int64, [3])).tolist() == [1, 2, 2]
