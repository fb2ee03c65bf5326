"""A cluster as a program: values, feeds, memory, errors, variables."""

from __future__ import annotations

import ctypes
import threading
import weakref

import numpy as np
import pytest

from timberframe_core.dtypes import float32
from timberframe_core.errors import InternalError, InvalidArgumentError, ResourceExhaustedError, UnknownError
from timberframe_core.plugin.contracts import RunContext, Update, Variable
from timberframe_cpu.image import DATA_WORD, TENSOR_WORDS, Image, Segment

F = np.float32


def test_chain_gives_the_values_of_its_kernels(graph):
    x = graph.input(F, 4)
    y = graph.op("Mul", graph.op("AddV2", x, graph.const(1.0)), x)
    (out,) = graph.run([y], np.arange(4, dtype=F))
    np.testing.assert_array_equal(out, [0, 2, 6, 12])


def test_native_error_names_node_device_and_line(graph):
    x = graph.input(np.int32, 3)
    y = graph.op("FloorDiv", graph.const([6, 6, 6], np.int32), x, node="half")
    executable = graph.device.compile(graph.cluster(y))
    with pytest.raises(InvalidArgumentError, match=r"FloorDiv 'half': .*element 1.*; .*/device:CPU:0, model.py:7") as e:
        executable.run([np.array([1, 0, 2], np.int32)], RunContext())
    assert e.value.node == "half"
    (out,) = executable.run([np.array([1, 2, 3], np.int32)], RunContext())
    np.testing.assert_array_equal(out, [6, 3, 2])


def test_python_kernel_between_native_ones(graph):
    x = graph.input(F, 3)
    y = graph.op("AddV2", graph.op("Test>Negate", graph.op("AddV2", x, x)), x)
    np.testing.assert_array_equal(graph.run([y], np.array([1, 2, 3], F))[0], [-1, -2, -3])


def test_error_of_a_python_kernel_names_the_node(graph):
    x = graph.input(F, 3)
    y = graph.op("Test>Raise", x, node="bad")
    with pytest.raises(UnknownError, match=r"Test>Raise 'bad': RuntimeError: no luck"):
        graph.run([y], np.zeros(3, F))


@pytest.mark.parametrize("values", [[1, -1, 2], [-1, -2, -3], [1, 2, 3]])
def test_output_of_data_dependent_size_has_its_true_shape(graph, values):
    x = graph.input(F, 3)
    (out,) = graph.run([graph.op("Test>Positive", x)], np.array(values, F))
    np.testing.assert_array_equal(out, [v for v in values if v > 0])


FEEDS = {
    "non-contiguous": np.arange(8, dtype=F)[::2],
    "negative strides": np.arange(4, dtype=F)[::-1],
    "read-only": np.broadcast_to(F(3), (4,)),
}


@pytest.mark.parametrize("name", FEEDS)
def test_feed_of_any_strides(graph, name):
    x = graph.input(F, 4)
    np.testing.assert_array_equal(graph.run([graph.op("AddV2", x, x)], FEEDS[name])[0], 2 * FEEDS[name])


def test_misaligned_feed(graph):
    raw = np.zeros(17, np.uint8)
    feed = np.ndarray((4,), F, raw, 1)
    feed[:] = [1, 2, 3, 4]
    x = graph.input(F, 4)
    np.testing.assert_array_equal(graph.run([graph.op("AddV2", x, x)], feed)[0], [2, 4, 6, 8])


def test_zero_size_tensors(graph):
    x = graph.input(F, 0, 3)
    assert graph.run([graph.op("AddV2", x, x)], np.zeros((0, 3), F))[0].shape == (0, 3)


def test_fetched_feed_and_constant_are_copies(graph):
    x = graph.input(F, 2)
    constant = graph.const([1.0, 2.0])
    feed = np.array([3, 4], F)
    out = graph.run([x, constant], feed)
    assert not np.shares_memory(out[0], feed)
    assert not np.shares_memory(out[1], constant.constant)
    np.testing.assert_array_equal(out, [[3, 4], [1, 2]])


def test_wrong_shape_is_refused(graph):
    x = graph.input(F, 2)
    with pytest.raises(InternalError, match=r"shape \(3,\); the program was compiled for float32 and \(2,\)"):
        graph.run([graph.op("AddV2", x, x)], np.zeros(3, F))


def test_threads_share_an_executable(graph):
    x = graph.input(F, 1000)
    y = x
    for _ in range(20):
        y = graph.op("AddV2", graph.op("Mul", y, graph.const(0.5)), x)
    executable = graph.device.compile(graph.cluster(y))
    wrong = []

    def work(k):
        feed = np.full(1000, k, F)
        (want,) = executable.run([feed], RunContext())
        for _ in range(200):
            (got,) = executable.run([feed], RunContext())
            if not np.array_equal(got, want) or abs(got[0] - 2 * k) > 1e-3 * k:
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_memory_limit_refuses_and_statistics_are_back(new_device, new_graph):
    device = new_device(memory_limit=700_000)
    graph = new_graph(device)
    x = graph.input(F, 100_000)
    y = graph.op("AddV2", x, x)
    for _ in range(3):
        y = graph.op("Sub", graph.op("Mul", y, y), graph.op("AddV2", y, x))
    executable = device.compile(graph.cluster(y))
    assert executable.memory.arena > 700_000
    before = device.allocator.statistics().used
    with pytest.raises(ResourceExhaustedError, match=r"allocation of \d+ bytes was refused by the limit"):
        executable.run([np.zeros(100_000, F)], RunContext())
    assert device.allocator.statistics().used == before


def test_large_output_counts_against_the_limit(new_device, new_graph):
    device = new_device(memory_limit=1 << 20)
    graph = new_graph(device)
    x = graph.input(F, 100_000)
    executable = device.compile(graph.cluster(graph.op("AddV2", x, x)))
    first = executable.run([np.zeros(100_000, F)], RunContext())
    second = executable.run([np.zeros(100_000, F)], RunContext())
    with pytest.raises(ResourceExhaustedError):
        executable.run([np.zeros(100_000, F)], RunContext())
    del first, second
    executable.run([np.zeros(100_000, F)], RunContext())


def test_dropped_results_make_room_for_others(new_device, new_graph):
    device = new_device(memory_limit=1 << 20)
    for size in (100_000, 200_000):
        graph = new_graph(device)
        x = graph.input(F, size)
        call = device.compile(graph.cluster(graph.op("AddV2", x, x)))
        results = [call.run([np.zeros(size, F)], RunContext()) for _ in range(200_000 // size)]
        del results
        assert device.allocator.statistics().used == 0


def test_next_result_takes_the_memory_of_a_dropped_one(new_device, new_graph):
    device = new_device()
    graph = new_graph(device)
    x = graph.input(F, 100_000)
    executable = device.compile(graph.cluster(graph.op("AddV2", x, x)))
    places = set()
    for _ in range(3):
        (result,) = executable.run([np.zeros(100_000, F)], RunContext())
        places.add(result.ctypes.data)
        del result
    assert len(places) == 1


def variable(device, values):
    v = Variable("v", 0, device, float32)
    v.commit(np.array(values, F), np.shape(values))
    return v


def test_update_is_committed_in_place_when_nothing_holds_the_value(graph):
    v = variable(graph.device, [1, 2])
    old = graph.read(v)
    x = graph.input(F, 2)
    new = graph.op("Sub", old, x)
    executable = graph.device.compile(graph.cluster(updates=[Update(v, old, new, True)]))
    place = v.version.array.ctypes.data
    executable.run([np.array([1, 1], F)], RunContext())
    np.testing.assert_array_equal(v.version.array, [0, 1])
    assert v.version.array.ctypes.data == place


def test_loop_after_an_update_in_place_runs(graph, counting):
    v = variable(graph.device, [1, 2])
    old, x = graph.read(v), graph.input(F, 2)
    new = graph.op("Sub", old, x)
    body = graph.body()
    i, total = body.input(F), body.input(F, 2)
    body = body.cluster(body.op("AddV2", i, body.const(1.0)), body.op("AddV2", total, total))
    _, out = graph.loop(graph.const(0.0), x, cond=counting(graph, 3, [(F, (2,))]), body=body)
    executable = graph.device.compile(graph.cluster(out, updates=[Update(v, old, new, True)]))
    for _ in range(2):
        (doubled,) = executable.run([np.array([1, 1], F)], RunContext())
        np.testing.assert_array_equal(doubled, [8, 8])


def test_update_leaves_a_held_value_alone(graph):
    v = variable(graph.device, [1, 2])
    held = v.lease().array
    old = graph.read(v)
    x = graph.input(F, 2)
    executable = graph.device.compile(graph.cluster(updates=[Update(v, old, graph.op("Sub", old, x), True)]))
    executable.run([np.array([1, 1], F)], RunContext())
    np.testing.assert_array_equal(v.version.array, [0, 1])
    np.testing.assert_array_equal(held, [1, 2])


def subtracting(graph, v):
    """Returns a program that subtracts its feed from a variable, in place where it may."""
    old, x = graph.read(v), graph.input(F, 2)
    return graph.device.compile(graph.cluster(updates=[Update(v, old, graph.op("Sub", old, x), True)]))


def test_updates_in_place_follow_versions_that_others_make(graph):
    v, one = variable(graph.device, [1, 2]), np.array([1, 1], F)
    executable = subtracting(graph, v)
    for _ in range(3):
        executable.run([one], RunContext())
    np.testing.assert_array_equal(v.version.array, [-2, -1])
    v.commit(np.array([7, 8], F), (2,))
    for _ in range(3):
        executable.run([one], RunContext())
    np.testing.assert_array_equal(v.version.array, [4, 5])
    held = v.lease().array
    for _ in range(3):
        executable.run([one], RunContext())
    np.testing.assert_array_equal(v.version.array, [1, 2])
    np.testing.assert_array_equal(held, [4, 5])


def test_program_that_rests_keeps_no_replaced_version(graph):
    v, one = variable(graph.device, [1, 2]), np.array([1, 1], F)
    executable = subtracting(graph, v)
    for _ in range(2):
        executable.run([one], RunContext())
    old = weakref.ref(v.version.array)
    v.commit(np.zeros(2, F), (2,))
    assert old() is None


def test_failed_run_leaves_the_variable(graph):
    v = variable(graph.device, [1, 2])
    old = graph.read(v)
    x = graph.input(F, 2)
    new = graph.op("Sub", old, x)
    failing = graph.op("Test>Raise", x)
    executable = graph.device.compile(graph.cluster(failing, updates=[Update(v, old, new, False)]))
    with pytest.raises(UnknownError):
        executable.run([np.array([1, 1], F)], RunContext())
    np.testing.assert_array_equal(v.version.array, [1, 2])


@pytest.mark.parametrize("offset", [4, 16, 48])
def test_what_many_runs_read_begins_where_a_cache_line_does(graph, offset):
    lines = np.zeros(512, np.uint8)
    start = -lines.ctypes.data % 64 + offset
    given = lines[start : start + 400].view(F)
    given[:] = range(100)
    image = Image()
    number = image.constant(graph.const(given))
    image.segments.append(Segment())
    image.finish()
    where = int(image.link(0)[number * TENSOR_WORDS + DATA_WORD])
    assert where % 64 == 0
    np.testing.assert_array_equal((ctypes.c_float * 100).from_address(where), given)

    v, x = variable(graph.device, np.zeros(2000)), graph.input(F, 2000)
    graph.device.compile(graph.cluster(updates=[Update(v, None, x, False)])).run(
        [np.arange(2000, dtype=F)], RunContext()
    )
    assert v.version.array.ctypes.data % 64 == 0
    np.testing.assert_array_equal(v.version.array, range(2000))


def test_update_with_a_feed_owns_its_memory(graph):
    v = variable(graph.device, [1, 2])
    x = graph.input(F, 2)
    feed = np.array([5, 6], F)
    graph.device.compile(graph.cluster(updates=[Update(v, None, x, False)])).run([feed], RunContext())
    feed[:] = 0
    np.testing.assert_array_equal(v.version.array, [5, 6])


def test_fetched_new_value_is_a_copy(graph):
    v = variable(graph.device, [1, 2])
    old = graph.read(v)
    x = graph.input(F, 2)
    new = graph.op("AddV2", old, x)
    executable = graph.device.compile(graph.cluster(new, old, updates=[Update(v, old, new, False)]))
    out, before = executable.run([np.array([1, 1], F)], RunContext())
    np.testing.assert_array_equal(out, [2, 3])
    np.testing.assert_array_equal(before, [1, 2])
    assert not np.shares_memory(out, v.version.array)


def test_direct_call_gives_the_output(graph):
    x = graph.input(F, 4)
    call = graph.device.compile(graph.cluster(graph.op("AddV2", x, x))).direct(lambda x: "fallback")
    np.testing.assert_array_equal(call(np.arange(4, dtype=F)), [0, 2, 4, 6])


@pytest.mark.parametrize(
    "feed",
    [np.zeros(3, F), np.zeros(4, np.float64), [1, 2, 3, 4], np.zeros(8, F)[::2], np.ndarray((4,), F, bytes(17), 1)],
)
def test_direct_call_hands_other_feeds_to_the_fallback(graph, feed):
    x = graph.input(F, 4)
    call = graph.device.compile(graph.cluster(graph.op("AddV2", x, x))).direct(lambda x: "fallback")
    assert call(feed) == "fallback"


def test_direct_call_takes_a_numpy_scalar(graph):
    x = graph.input(F)
    call = graph.device.compile(graph.cluster(graph.op("AddV2", x, x))).direct(lambda x: "fallback")
    assert call(F(3)) == 6
    assert call(np.float64(3)) == "fallback"
    assert call(3.0) == "fallback"


def test_direct_call_of_several_feeds_and_outputs(graph):
    x, y, z = (graph.input(F, 2) for _ in range(3))
    outputs = graph.op("AddV2", x, y), graph.op("Mul", y, z)
    call = graph.device.compile(graph.cluster(*outputs)).direct(lambda *_: "fallback")
    a, b = call(np.array([1, 2], F), np.array([3, 4], F), np.array([5, 6], F))
    np.testing.assert_array_equal(a, [4, 6])
    np.testing.assert_array_equal(b, [15, 24])


def test_direct_call_raises_the_kernels_error(graph):
    x = graph.input(np.int32, 2)
    y = graph.op("FloorDiv", x, x, node="quotient")
    call = graph.device.compile(graph.cluster(y)).direct(lambda x: "fallback")
    with pytest.raises(InvalidArgumentError, match="FloorDiv 'quotient'"):
        call(np.zeros(2, np.int32))
    np.testing.assert_array_equal(call(np.ones(2, np.int32)), [1, 1])


def test_plan_beyond_the_address_space_is_refused(new_device, new_graph):
    graph = new_graph(new_device())
    x = graph.input(F, 2**40, 1)
    y = graph.input(F, 1, 2**19)
    a, b, c, d = (graph.op(op, x, y) for op in ("AddV2", "Sub", "Mul", "Maximum"))
    out = graph.op("AddV2", graph.op("AddV2", a, b), graph.op("AddV2", c, d))
    with pytest.raises(ResourceExhaustedError, match="bytes at once"):
        graph.device.compile(graph.cluster(out))


def test_tensor_larger_than_memory_is_refused(graph):
    x = graph.input(F, 2**24, 1)
    executable = graph.device.compile(graph.cluster(graph.op("AddV2", x, graph.input(F, 1, 2**24))))
    with pytest.raises(ResourceExhaustedError, match="refused by the limit"):
        executable.run([np.broadcast_to(F(0), (2**24, 1)), np.zeros((1, 2**24), F)], RunContext())


def test_attrs_given_in_another_order_are_distinguished(graph):
    """Nodes that are alike share a kernel; these two have the same attr values under different names."""
    x = graph.input(F, 2, 2)
    first = graph.op("MatMul", x, x, T=float32, transpose_a=True, transpose_b=False)
    second = graph.op("MatMul", x, x, T=float32, transpose_b=True, transpose_a=False)
    feed = np.array([[1, 2], [3, 4]], F)
    a, b = graph.run([first, second], feed)
    np.testing.assert_array_equal(a, feed.T @ feed)
    np.testing.assert_array_equal(b, feed @ feed.T)
