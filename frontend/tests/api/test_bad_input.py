"""What is refused: sizes that nothing can hold, numbers and records that only Python takes, values outside."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf

pytestmark = pytest.mark.usefixtures("graph")


def fed(value: Any) -> Any:
    """Returns a tensor whose value, and shape, are not known before the run."""
    return tf.placeholder_with_default(np.asarray(value), None)


def run(fetch: Any, **options: Any) -> Any:
    with tf.Session() as session:
        return session.run(fetch, **options)


TOO_LARGE: dict[str, Callable[[], Any]] = {
    "range": lambda: tf.range(fed(np.int64(2**62))),
    "fill": lambda: tf.fill(fed(np.int64([2**40, 2**21])), 1.0),
    "texts": lambda: tf.fill(fed(np.int64([2**62])), "x"),
    "random numbers": lambda: tf.random_uniform(fed(np.int64([2**62]))),
    "scatter_nd": lambda: tf.scatter_nd(np.int64([[0]]), [1.0], fed(np.int64([2**62]))),
    "segments": lambda: tf.unsorted_segment_sum(fed(np.float32([1])), [0], fed(np.int64(2**62))),
    "sparse_to_dense": lambda: tf.sparse_to_dense(fed(np.int64([[0]])), fed(np.int64([2**62])), 1.0),
    "eye": lambda: tf.eye(fed(np.int32(2**31 - 1)), dtype=tf.complex128),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_sizes_beyond_all_memory_are_refused_before_a_kernel_or_a_driver(name: str) -> None:
    with pytest.raises(tf.errors.ResourceExhaustedError):
        run(TOO_LARGE[name]())


def test_a_size_beyond_all_addresses_is_named() -> None:
    with pytest.raises(
        tf.errors.ResourceExhaustedError, match=r"Range 'range': shape .* needs 36893488147419103232 bytes"
    ):
        run(tf.range(fed(np.int64(2**62))))


@pytest.mark.parametrize("make", [lambda x: x, fed])
def test_lengths_of_transforms_are_not_negative(make: Callable[[Any], Any]) -> None:
    for function, x in ((tf.signal.rfft, np.float32([1, 2, 3])), (tf.signal.irfft, np.complex64([1, 2, 3]))):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"fft_length is \[-1\]; lengths must be zero or more"):
            run(function(x, make(np.int32([-1]))))


@pytest.mark.parametrize("index", [42, -1])
@pytest.mark.parametrize("make", [lambda x: x, fed])
def test_an_index_lies_inside_of_the_array(make: Callable[[Any], Any], index: int) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"tf\.unravel_index: indices"):
        run(tf.unravel_index(make(np.int32([index])), [7, 6]))


@pytest.mark.parametrize("make", [lambda x: x, fed])
def test_a_histogram_has_bins(make: Callable[[Any], Any]) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="histogram_fixed_width_bins: nbins"):
        run(tf.histogram_fixed_width_bins(np.float32([1.0]), [0.0, 5.0], nbins=make(np.int32(-16))))


@pytest.mark.parametrize(
    "record", [b'"1"2,3', b'a"b,3', b'a,"3', b'"a" ,3', b' "a",3', b'""a,3', b"a,3\n", b"a,1_000", "a,\u0663".encode()]
)
def test_records_of_csv_follow_its_rules(record: bytes) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(tf.decode_csv(tf.constant([record]), [[""], [0]]))


def test_quoted_fields_of_csv_have_line_breaks_quotation_marks_and_delimiters() -> None:
    found = run(tf.decode_csv(['"x\ny","a ""q"", b",1', "p,,", '"","",2'], [[""], ["none"], [7]]))
    assert [column.tolist() for column in found] == [[b"x\ny", b"p", b""], [b'a "q", b', b"none", b"none"], [1, 7, 2]]


def test_a_picture_too_large_to_be_unpacked_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from PIL import Image

    data = run(tf.image.encode_png(tf.zeros([40, 40, 1], tf.uint8)))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(tf.errors.ResourceExhaustedError, match="DecodePng"):
        run(tf.image.decode_png(fed(np.array(data, object))))


@pytest.mark.slow
def test_a_time_limit_ends_a_long_sequence() -> None:
    count = tf.placeholder(tf.int32, [])
    numbers = tf.linspace(0.0, 1.0, count)
    with tf.Session() as session:
        begin = time.monotonic()
        session.run(numbers.op, {count: 2**27})
        part = time.monotonic() - begin
        begin = time.monotonic()
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(numbers.op, {count: 2**30}, options=tf.RunOptions(timeout_in_ms=20))
        assert time.monotonic() - begin < 4 * part  # all of it takes eight times as long
