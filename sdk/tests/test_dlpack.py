"""DLPack capsules of a device whose memory NumPy cannot see."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import timberframe as tf
from timberframe_sdk import DLPackView, InvalidArgumentError, take_in


@pytest.fixture
def device() -> Iterator[Any]:
    with tf.Session() as session:
        yield next(d for d in session.list_devices() if d.spec == "/device:ASYNC:0")


def live(device: Any) -> int:
    gc.collect()
    device.synchronize()
    gc.collect()
    return int(device.allocator.statistics().live)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_, np.complex64, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(), (0, 2), (3, 1, 5)])
def test_tensor_goes_out_and_comes_in_without_a_copy(device: Any, dtype: Any, shape: tuple[int, ...]) -> None:
    given = device.copy_in(np.arange(np.prod(shape)).reshape(shape).astype(dtype))
    taken = device.from_dlpack(device.to_dlpack(given))
    assert (taken.address, taken.shape, taken.dtype) == (given.address, shape, np.dtype(dtype))


@pytest.mark.slow
def test_memory_lives_as_long_as_the_last_view(device: Any) -> None:
    before = live(device)
    given = device.copy_in(np.arange(6.0))
    taken = device.from_dlpack(device.to_dlpack(given))
    del given
    assert live(device) == before + 1
    np.testing.assert_array_equal(device.copy_out(taken), np.arange(6.0))
    del taken
    assert live(device) == before


@pytest.mark.slow
def test_capsule_that_nobody_takes_keeps_nothing(device: Any) -> None:
    before = live(device)
    device.to_dlpack(device.copy_in(np.arange(6.0))).__dlpack__()
    assert live(device) == before


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_numpy_says_itself_that_it_cannot_take_the_memory(device: Any, capfd: pytest.CaptureFixture[str]) -> None:
    before = live(device)
    given = tf.DeviceArray(device.copy_in(np.arange(6.0)), device)
    with pytest.raises(RuntimeError, match="Unsupported device"):
        np.from_dlpack(given)
    del given
    assert live(device) == before
    assert capfd.readouterr().err == ""


def test_host_copy_is_given_where_the_consumer_asks_for_the_host(device: Any) -> None:
    given = tf.DeviceArray(device.copy_in(np.arange(6.0)), device)
    np.testing.assert_array_equal(np.from_dlpack(given, device="cpu", copy=True), np.arange(6.0))
    with pytest.raises(BufferError, match="copy=False"):
        given.__dlpack__(dl_device=(1, 0), copy=False)


def test_capsule_is_taken_once(device: Any) -> None:
    view = device.to_dlpack(device.copy_in(np.arange(6.0)))
    capsule = view.__dlpack__()

    class Given:
        def __dlpack__(self) -> object:
            return capsule

    take_in(Given())
    with pytest.raises(ValueError, match=r"incorrect name"):
        take_in(Given())


def test_numpy_is_taken_in_where_it_is_dense() -> None:
    x = np.arange(12, dtype=np.int16).reshape(3, 4)
    taken = take_in(x)
    assert (taken.address, taken.shape, taken.dtype) == (x.ctypes.data, (3, 4), np.int16)
    with pytest.raises(InvalidArgumentError, match=r"\(4, 3\) has strides \[1, 4\]; it must be dense and row-major"):
        take_in(x.T)
    held = sys.getrefcount(x)
    del taken
    assert sys.getrefcount(x) == held - 1


def test_dtype_that_dlpack_lacks_is_named(device: Any) -> None:
    view = device.to_dlpack(device.copy_in(np.zeros(2, ml_dtypes.float8_e5m2)))
    with pytest.raises(InvalidArgumentError, match=r"dtype float8_e5m2 cannot be given out"):
        view.__dlpack__()


def test_a_host_tensor_of_bfloat16_is_fed_as_it_lies() -> None:
    given = np.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16)
    shared = DLPackView((1, 0), given.ctypes.data, given.dtype, given.shape, given)
    before = sys.getrefcount(given)
    with tf.Graph().as_default():
        x = tf.placeholder(tf.bfloat16, [2, 3])
        with tf.device("/device:CPU:0"):
            y = x * 2.0
    with tf.Session(graph=y.graph) as session:
        np.testing.assert_array_equal(session.run(y, {x: shared}).astype(np.float32), given.astype(np.float32) * 2)
    gc.collect()
    assert sys.getrefcount(given) == before


def test_python_is_asked_for_counts_of_references_in_one_function_alone() -> None:
    """They are not what they seem where Python borrows references, as from 3.14 on, or has no global lock."""
    root = Path(__file__).parents[2]
    folders = [root / "core", root / "frontend", root / "sdk", root / "conformance", *(root / "plugins").iterdir()]
    found = [p.name for folder in folders for p in (folder / "src").rglob("*.py") if "getrefcount" in p.read_text()]
    assert found == ["dlpack.py"]
    assert (root / "sdk/src/timberframe_sdk/dlpack.py").read_text().count("getrefcount") == 1
