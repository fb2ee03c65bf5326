"""Device arrays fed and fetched without a trip through the host, and arrays of other libraries."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf

ASYNC, OTHER = "/device:ASYNC:0", "/device:ASYNC:1"
ON_DEVICE = tf.RunOptions(fetch_on_device=True)


class World:
    """y = 2x on an asynchronous device, with its journal of copies."""

    def __init__(self, session: tf.Session, spec: str = ASYNC) -> None:
        self.session = session
        self.device: Any = next(d for d in session.list_devices() if d.spec == ASYNC)
        with tf.device(spec):
            self.x = tf.placeholder(tf.float32, [None], name="x")
            self.y = tf.multiply(self.x, self.x + 1.0, name="y")
        self.session.run(self.y, {self.x: [1, 2]})
        self.session.run(self.y, {self.x: [1, 2, 3]})
        self.device.journal.clear()

    def copies(self) -> list[str]:
        return [what for what in self.device.journal if what.startswith("copy")]

    def fetch(self, values: Any) -> Any:
        return self.session.run(self.y, {self.x: values}, ON_DEVICE)


class Foreign:
    """An array of another library: all that it shows is DLPack."""

    def __init__(self, array: Any, device: tuple[int, int] | None = None) -> None:
        self.array = array
        self.device = device

    def __dlpack_device__(self) -> tuple[int, int]:
        found: tuple[int, int] = self.device or self.array.__dlpack_device__()
        return found

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        yield session


def test_fetched_array_stays_on_its_device_and_is_fed_again(session: tf.Session) -> None:
    world = World(session)
    found = world.fetch([1, 2, 3])
    assert (type(found), found.device, found.shape, found.dtype) == (tf.DeviceArray, ASYNC, (3,), np.float32)
    again = world.fetch(found)
    assert world.copies() == ["copy in"]  # of the first feed
    assert again.numpy().tolist() == [6, 42, 156]


def test_array_of_another_library_is_fed_from_device_memory_without_a_copy(session: tf.Session) -> None:
    world = World(session)
    found = world.fetch(Foreign(world.fetch([1, 2, 3])))
    assert world.copies() == ["copy in"]
    np.testing.assert_array_equal(found, [6, 42, 156])


def test_array_of_another_device_is_copied(session: tf.Session) -> None:
    world = World(session)
    with tf.device(OTHER):
        z = tf.negative(world.x)
    found = world.fetch([1, 2, 3])
    assert session.run(z, {world.x: found}).tolist() == [-2, -6, -12]
    with tf.device("/device:CPU:0"):
        z = tf.negative(world.x)
    assert session.run(z, {world.x: Foreign(found)}).tolist() == [-2, -6, -12]


def test_host_array_of_another_library_is_fed(session: tf.Session) -> None:
    world = World(session)
    given = np.array([1, 2, 3], np.float32)
    given.flags.writeable = True
    assert session.run(world.y, {world.x: Foreign(given)}).tolist() == [2, 6, 12]


def test_results_of_the_host_are_numpy_arrays_that_know_dlpack(session: tf.Session) -> None:
    total = tf.reduce_sum(tf.placeholder_with_default([1.0, 2.0], [2]))
    found = session.run(total, options=ON_DEVICE)
    assert (type(found), found.shape, np.from_dlpack(found)) == (np.ndarray, (), 3.0)


def test_callable_with_options_fetches_on_the_device(session: tf.Session) -> None:
    world = World(session)
    call = session.make_callable([world.y], [world.x], accept_options=True)
    (found,) = call([1, 2, 3], options=ON_DEVICE)
    assert np.asarray(found).tolist() == [2, 6, 12]


@pytest.mark.slow
def test_memory_of_a_fetched_array_goes_with_its_last_reference(session: tf.Session) -> None:
    world = World(session)

    def live() -> int:
        gc.collect()
        world.device.synchronize()
        gc.collect()
        return int(world.device.allocator.statistics().live)

    before = live()
    found = world.fetch([1, 2, 3])
    capsule = Foreign(found).__dlpack__()
    assert live() == before + 1
    del found
    assert live() == before + 1
    del capsule
    assert live() == before


def test_fetched_variable_is_no_view_of_it(session: tf.Session) -> None:
    with tf.device(ASYNC):
        v = tf.Variable([1.0, 2.0])
        add = v.assign_add([1.0, 1.0])
    session.run(v.initializer)
    found = session.run(v, options=ON_DEVICE)
    session.run(add)
    assert found.numpy().tolist() == [1, 2]


def test_fed_array_that_is_fetched_is_no_view_of_it(session: tf.Session) -> None:
    world = World(session)
    given = world.fetch([1, 2, 3])
    found = session.run(world.x, {world.x: given}, ON_DEVICE)
    assert np.asarray(found).tolist() == [2, 6, 12]
    assert getattr(found, "array", None) is not given.array


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (Foreign(None, (2, 0)), r"on DLPack device \(2, 0\); the session's devices that share memory are .*ASYNC:0"),
        (
            Foreign(np.zeros(3, np.int64), (12, 0)),
            r"fed a value of dtype int64 on /device:ASYNC:0; it must be float32",
        ),
        (Foreign(np.zeros((3, 2), np.float32), (12, 0)), r"fed with shape \(3, 2\); it must be compatible with"),
        (Foreign(np.zeros((4, 3), np.float32)[::2, 0], (12, 0)), r"cannot be shared|it must be dense and row-major"),
        (Foreign(5, (1, 0)), r"fed with a Foreign that cannot be shared \(.*; an array of plain numbers is required"),
    ],
)
def test_array_that_cannot_be_fed_says_why(session: tf.Session, given: Any, words: str) -> None:
    world = World(session)
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        session.run(world.y, {world.x: given})
    assert session.run(world.y, {world.x: [1]}).tolist() == [2]
