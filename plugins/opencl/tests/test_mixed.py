"""Graphs over the CPU and two OpenCL devices, which may be two queues of one."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf

CPU, FIRST, SECOND = "/device:CPU:0", "/device:OPENCL:0", "/device:OPENCL:1"
SPECS = (CPU, FIRST, SECOND)


@pytest.fixture
def session() -> Iterator[tf.Session]:
    config = tf.SessionConfig(device_count={"OPENCL": 2})
    with tf.Graph().as_default() as graph, tf.Session(graph=graph, config=config) as session:
        if not any(d.spec == SECOND for d in session.list_devices()):
            pytest.skip("no OpenCL driver is installed")
        yield session


def used(session: tf.Session) -> dict[str, int]:
    gc.collect()
    found = {d.spec: d for d in session.list_devices()}
    for device in found.values():
        device.synchronize()
    return {spec: found[spec].allocator.statistics().used for spec in SPECS}


def layers(x: tf.Tensor, specs: tuple[str, ...]) -> tuple[tf.Tensor, Any]:
    """Returns a loss and a training step of a net whose layers alternate between these devices."""
    weights = []
    for i in range(6):
        with tf.device(specs[i % len(specs)]):
            w = tf.get_variable(f"w{len(specs)}{i}", initializer=tf.constant(np.eye(8, dtype=np.float32) * (1 + i / 8)))
            weights.append(w)
            x = tf.tanh(tf.matmul(x, w))
    loss = tf.reduce_mean(tf.square(x), name=f"loss{len(specs)}")
    steps = [w.assign_sub(0.1 * gradient) for w, gradient in zip(weights, tf.gradients(loss, weights), strict=True)]
    return loss, tf.group(*steps)


def test_net_over_three_devices_learns_what_it_learns_on_the_cpu(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [None, 8])
    split, alone = layers(x, SPECS), layers(x, (CPU,))
    session.run(tf.global_variables_initializer())
    rng = np.random.default_rng(0)
    for _ in range(5):
        feeds = {x: rng.normal(size=(16, 8))}
        losses = [session.run([loss, step], feeds)[0] for loss, step in (split, alone)]
        np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
    assert {s.device for s in session.explain(split[1]).stages} == set(SPECS)


@pytest.mark.slow
def test_error_in_one_partition_ends_the_run_and_the_next_one_works(session: tf.Session) -> None:
    x, rows = tf.placeholder(tf.float32, [8, 8]), {s: tf.placeholder(tf.int32, [None]) for s in SPECS}
    factor = tf.placeholder(tf.float32, [])
    variables, fetches = [], []
    for spec in SPECS:
        with tf.device(spec):
            v = tf.Variable(np.zeros((8, 8), np.float32))
            taken = tf.gather(x, rows[spec], name=f"take_{spec[8:-2].lower()}{spec[-1]}")
            variables.append(v)
            fetches += [v.assign_add(tf.matmul(x, x)), tf.reduce_sum(taken)]
            fetches.append(tf.while_loop(lambda a: a < 2.0, lambda a: (a * factor,), [1.0]))
    with tf.device(CPU):
        fetches.append(tf.add_n([fetches[i] for i in (1, 4, 7)]))
    session.run([v.initializer for v in variables])

    def run(bad: str = "", grows: float = 4.0) -> Any:
        feeds: dict[Any, Any] = {row: [8 if spec == bad else 1] for spec, row in rows.items()}
        return session.run(fetches, {**feeds, x: np.eye(8), factor: grows})

    for _ in range(2):
        run()
    runs = 2
    session.run(variables)
    before = used(session)
    for bad in SPECS:
        for grows in (4.0, 1.0):  # 1.0: all loop for ever
            with pytest.raises(tf.errors.InvalidArgumentError, match=rf"'take_{bad[8:-2].lower()}{bad[-1]}': .*{bad}"):
                run(bad, grows)
            values = session.run(variables)
            assert all((v == v[0, 0] * np.eye(8)).all() for v in values)
            assert run()[-1] == 3
            del values
            assert used(session) == before
    assert all(v[0, 0] >= runs + 6 for v in session.run(variables))


def test_array_stays_on_its_device_between_runs(session: tf.Session) -> None:
    with tf.device(FIRST):
        x = tf.placeholder(tf.float32, [None])
        y = x * 2.0
    found = session.run(y, {x: [1, 2, 3]}, tf.RunOptions(fetch_on_device=True))
    assert found.device == FIRST
    assert found.__dlpack_device__() == (4, 0)  # kDLOpenCL
    np.testing.assert_array_equal(session.run(y, {x: found}), [4, 8, 12])
    with tf.device(SECOND):
        z = tf.negative(x)
    np.testing.assert_array_equal(session.run(z, {x: found}), [-2, -4, -6])
