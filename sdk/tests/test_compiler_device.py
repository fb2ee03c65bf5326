"""CompilerDevice, on a device that writes a source for each cluster: no node of it runs alone."""

from __future__ import annotations

import gc
import importlib.util
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf
import timberframe_sdk as sdk
from timberframe_core.errors import FailedPreconditionError, InvalidArgumentError
from timberframe_core.plugin.contracts import Cluster, KernelNode, RunContext, Value
from timberframe_sdk.execution.last_used import LastUsed

_spec = importlib.util.spec_from_file_location("source_device", Path(__file__).parent / "source_device.py")
assert _spec is not None
assert _spec.loader is not None
source_device = importlib.util.module_from_spec(_spec)
sys.modules["source_device"] = source_device
_spec.loader.exec_module(source_device)
sdk.register_plugin("source", source_device)


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default() as graph, tf.device("/device:SOURCE:0"), tf.Session(graph=graph) as session:
        yield session


@pytest.fixture
def trouble(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[Sequence[str]], None]], None]:
    return lambda op, what: monkeypatch.setitem(source_device.TROUBLE, op, what)


def device_of(session: tf.Session) -> Any:
    return next(d for d in session.list_devices() if "SOURCE" in d.spec)


def test_a_cluster_is_one_program(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [3])
    y = tf.tanh(x * 2.0 + x)
    np.testing.assert_allclose(session.run(y, {x: [1, 2, 3]}), np.tanh([3, 6, 9]), rtol=1e-6)
    assert [line.split(" = ")[1].split("  #")[0] for line in device_of(session).sources[-1].splitlines()[1:-1]] == [
        "p0 * c0",
        "v0 + p0",
        "np.tanh(v1)",
    ]


def test_a_translation_that_says_unimplemented_is_no_kernel(session: tf.Session, trouble: Any) -> None:
    def refuse(inputs: Sequence[str]) -> None:
        raise sdk.UnimplementedError("one dimension at most")

    trouble("Tanh", refuse)
    x = tf.placeholder(tf.float32, [3])
    with pytest.raises(sdk.NoKernelError, match=r"Tanh 'Tanh': one dimension at most"):
        session.run(tf.tanh(x), {x: [1, 2, 3]})


def test_large_constants_are_parameters_and_uploaded_once(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [1000])
    large = tf.constant(np.arange(1000, dtype=np.float32))
    first, second = x + large, x * large
    device = device_of(session)
    session.run(first, {x: np.zeros(1000)})
    total = device.allocator.statistics().used
    np.testing.assert_array_equal(session.run(second, {x: np.ones(1000)}), np.arange(1000))
    assert "def program(p0, p1)" in device.sources[-1]
    assert device.allocator.statistics().used == total


def test_equal_clusters_of_several_sessions_are_compiled_once(
    session: tf.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_of(session), "_programs", LastUsed(8))
    counts = []
    for _ in range(3):
        with tf.Graph().as_default() as graph, tf.device("/device:SOURCE:0"), tf.Session(graph=graph) as session:
            x = tf.placeholder(tf.float32, [7])
            y = tf.tanh(tf.tanh(x)) * 5.0
            np.testing.assert_allclose(session.run(y, {x: np.zeros(7)}), np.zeros(7))
            counts.append(len(device_of(session).sources))
    assert counts[0] == counts[1] == counts[2]


def test_variables_go_from_version_to_version(session: tf.Session) -> None:
    v = tf.Variable([1.0, 2.0])
    before = v.read_value()
    with tf.control_dependencies([before]):
        add = v.assign_add([10.0, 10.0])
    session.run(v.initializer)
    for k in range(3):
        np.testing.assert_array_equal(session.run([before, add])[0], [1 + 10 * k, 2 + 10 * k])
    np.testing.assert_array_equal(session.run(v), [31, 32])


def test_a_failed_run_leaves_variables_as_they_were(session: tf.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    v = tf.Variable([1.0, 2.0])
    add = v.assign_add([10.0, 10.0])
    session.run(v.initializer)
    session.run(add)
    device_of(session).allocator.fail_at = 0
    with pytest.raises(tf.errors.ResourceExhaustedError, match="AssignAdd"):
        session.run(add)
    np.testing.assert_array_equal(session.run(v), [11, 12])


def test_memory_is_used_for_as_long_as_arrays_live(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [100])
    y = x + x
    device = device_of(session)
    gc.collect()
    before = device.allocator.statistics()
    session.run(y, {x: np.ones(100)})
    gc.collect()
    after = device.allocator.statistics()
    assert (after.used, after.live) == (before.used, before.live)
    assert after.peak >= before.used + 400 + 400 + 100  # the feed, the result, and the program's arena


def test_a_program_that_fails_names_the_node(session: tf.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(source_device.EXPRESSIONS, "Sqrt", "np.linalg.inv({})")
    x = tf.placeholder(tf.float32, [3])
    y = tf.sqrt(x + 1.0, name="root") * 2.0
    with pytest.raises(tf.errors.UnknownError, match=r"Sqrt 'root': device .*SOURCE:0 failed: LinAlgError"):
        session.run(y, {x: [1, 2, 3]})


def test_a_translation_that_fails_names_the_node(session: tf.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(source_device.EXPRESSIONS, "Sqrt", "{} {} {}")
    x = tf.placeholder(tf.float32, [3])
    y = tf.sqrt(x, name="root")
    with pytest.raises(tf.errors.UnknownError, match="Sqrt 'root': its translation raised IndexError"):
        session.run(y, {x: [1, 2, 3]})


def test_what_cannot_be_compiled_as_a_whole_runs_node_by_node(
    session: tf.Session, trouble: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(ops: Sequence[str]) -> None:
        if len(ops) > 1:
            raise RuntimeError("too large")

    trouble("Sqrt", fails)
    monkeypatch.setenv("TIMBERFRAME_STRICT_REWRITES", "0")
    x = tf.placeholder(tf.float32, [2])
    y = tf.sqrt(x) + 1.0
    np.testing.assert_array_equal(session.run(y, {x: [4, 9]}), [3, 4])
    left_out = str(session.explain(y, {x: [4, 9]}))
    assert "compiling a cluster as a whole failed and is skipped: RuntimeError: too large" in left_out


def test_a_node_that_cannot_be_compiled_is_named(
    session: tf.Session, trouble: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(ops: Sequence[str]) -> None:
        raise RuntimeError("no such instruction")

    trouble("Sqrt", fails)
    x = tf.placeholder(tf.float32, [2])
    y = tf.sqrt(x, name="root") + 1.0
    monkeypatch.setenv("TIMBERFRAME_STRICT_REWRITES", "0")
    with pytest.raises(tf.errors.UnknownError, match=r"Sqrt 'root': .*no such instruction"):
        session.run(y, {x: [4, 9]})


def test_loops_that_the_device_declines_are_driven_by_the_executor(session: tf.Session) -> None:
    start = tf.placeholder(tf.float32, [2])
    _, y = tf.while_loop(lambda i, a: tf.less(i, 3), lambda i, a: (i + 1, a * 2.0), [tf.constant(0), start])
    np.testing.assert_array_equal(session.run(y, {start: [1, 2]}), [8, 16])
    assert [s.kind for s in session.explain(y, {start: [1, 2]}).stages] == ["driven by the executor"]


def test_lists_of_tensors_of_a_device_without_the_ops_that_join_them(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [2, 2])
    rows = tf.TensorArray(tf.float32, 2, element_shape=[2]).unstack(x * 2.0)
    array = rows.write(1, rows.read(0) + 1.0)
    np.testing.assert_array_equal(session.run(array.stack(), {x: [[1, 2], [3, 4]]}), [[2, 4], [3, 5]])


def test_traced_runs_show_each_node(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [3])
    y = tf.tanh(x + 1.0, name="y")
    metadata = tf.RunMetadata()
    session.run(y, {x: [1, 2, 3]}, tf.RunOptions(trace=True), metadata)
    assert metadata.trace is not None
    assert {"add", "y"} <= {e["name"] for e in metadata.trace["traceEvents"]}


def cluster(device: Any) -> Cluster:
    x, a, b = (Value(i, np.dtype(np.float32), (2,), "temp" if i else "input") for i in range(3))
    nodes = [
        KernelNode("AddV2", "first", {}, [x, x], [a], device),
        KernelNode("Mul", "second", {}, [a, x], [b], device),
    ]
    return Cluster(device, nodes, [x], [b])


@pytest.mark.parametrize("mode", ["nodes", "guarded"])
def test_watched_runs_show_inputs_and_outputs_of_each_node(session: tf.Session, mode: str) -> None:
    device = device_of(session)
    seen: list[tuple[str, list[float], list[float]]] = []

    def observe(node: KernelNode, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        seen.append((node.name, [float(a.value[0]) for a in inputs], [float(a.value[0]) for a in outputs]))

    executable = device.compile(cluster(device))
    executable.run([device.copy_in(np.array([3, 4], np.float32))], RunContext(mode=mode, observer=observe))
    assert seen == [("first", [3, 3], [6]), ("second", [6, 3], [18])]


def test_a_cancelled_run_stops_before_its_program(session: tf.Session) -> None:
    device = device_of(session)
    context = RunContext()
    context.cancel.cancel(sdk.CancelledError("stop"))
    with pytest.raises(sdk.CancelledError, match="stop"):
        device.compile(cluster(device)).run([device.copy_in(np.zeros(2, np.float32))], context)


def test_a_translation_of_another_shape_than_planned_is_an_error() -> None:
    device: Any = source_device.SourceDevice()
    function = sdk.ClusterFunction(cluster(device))
    with pytest.raises(
        sdk.InternalError, match=r"AddV2 'first': its translation gives float32\[3\] as output 0; float32\[2\] is req"
    ):
        function(lambda node, inputs: np.zeros(3, np.float32), [np.zeros(2, np.float32)])


# Programs on disk


LIMITS = itertools.count(1 << 28)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TIMBERFRAME_CACHE", str(tmp_path))
    with tf.Graph().as_default(), tf.device("/device:SOURCE:0"):
        yield tmp_path / "source" / "programs"


def keeping(mode: str) -> tf.Session:
    """Returns a session with a device of its own, as another process has it."""
    config = tf.SessionConfig(compile=mode, memory_limit={"SOURCE": next(LIMITS)})
    return tf.Session(graph=tf.get_default_graph(), config=config)


def compiled(of: Any) -> int:
    return len(device_of(of).sources)


def test_another_session_takes_the_program_from_disk(folder: Path) -> None:
    x = tf.placeholder(tf.float32, [2])
    y = tf.tanh(x + 1.0)
    for mode, count in (("cached", 1), ("cached", 0), ("cached_only", 0), ("", 1)):
        with keeping(mode) as run:
            np.testing.assert_allclose(run.run(y, {x: [1, 2]}), np.tanh([2, 3]), rtol=1e-6)
            assert compiled(run) == count, mode


def test_by_default_nothing_is_kept_on_disk(folder: Path) -> None:
    x = tf.placeholder(tf.float32, [2])
    with keeping("") as run:
        run.run(tf.tanh(x), {x: [1, 2]})
    assert not folder.exists()


def test_cached_only_compiles_nothing_and_names_device_and_node(folder: Path) -> None:
    x = tf.placeholder(tf.float32, [2])
    y = tf.tanh(tf.add(x, 1.0, name="first"))
    with (
        keeping("cached_only") as run,
        pytest.raises(
            FailedPreconditionError,
            match=r"AddV2 'first': .*SOURCE:0 has no compiled program of the cluster of 2 .*'cached_only'",
        ),
    ):
        run.run(y, {x: [1, 2]})
    assert not list(folder.iterdir())


def test_a_program_that_the_toolchain_does_not_load_is_compiled_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    x = tf.placeholder(tf.float32, [2])
    y = tf.tanh(x)
    with keeping("cached") as run:
        run.run(y, {x: [1, 2]})

    def refuse(*_: Any) -> None:
        raise ValueError("made for another chip")

    monkeypatch.setattr(source_device.SourceDevice, "load", refuse)
    with keeping("cached") as run:
        np.testing.assert_allclose(run.run(y, {x: [1, 2]}), np.tanh([1, 2]), rtol=1e-6)
        assert compiled(run) == 1
    assert "a program on disk cannot be loaded, and is dropped: ValueError: made for another chip" in caplog.text
    assert len(list(folder.iterdir())) == 1


def test_a_program_that_fails_in_a_session_that_compiles_nothing_has_its_own_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(source_device.EXPRESSIONS, "Sqrt", "np.linalg.inv({})")
    x = tf.placeholder(tf.float32, [2, 2])
    y = tf.sqrt(x) + 1.0
    feeds = {x: [[1, 2], [3, 5]]}
    with keeping("cached") as run:
        run.run(y, feeds)
    with keeping("cached_only") as run, pytest.raises(sdk.UnknownError, match="Singular matrix"):
        run.run(y, {x: [[1, 1], [1, 1]]})


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="compile is 'never'; cached, cached_only or nothing is required"):
        tf.SessionConfig(compile="never")
