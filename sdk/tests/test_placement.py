"""Where nodes go when an accelerator is the best device, and what stays in the host's memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.compiler.place import Devices
from timberframe_core.errors import UnavailableError
from timberframe_core.graph.apply import apply_op
from timberframe_core.plugin import loader
from timberframe_core.plugin.kernels import KernelRegistry
from timberframe_sdk import Device, KernelDef, KernelNode, hookimpl, kernel
from timberframe_sdk.numpy_device import NumpyDevice
from timberframe_sdk.testing import asynchronous_device

FAST, CPU = "/device:FAST:0", "/device:CPU:0"
LACKING = ("Tanh", "ResourceApplyMomentum", "Fill")


class FastDevice(asynchronous_device.AsynchronousDevice):
    """An accelerator that comes before the CPU and lacks some kernels."""

    type, priority = "FAST", 200

    def __init__(self, index: int) -> None:
        super().__init__(index, None)
        self.spec = f"/device:FAST:{index}"

    def supports(self, node: KernelNode) -> str | None:
        return "no kernel is registered" if node.op in LACKING else super().supports(node)


class FastPlugin:
    @hookimpl
    def timberframe_devices(self, config: Mapping[str, Any]) -> list[Device]:
        return [FastDevice(i) for i in range(config["count"].get("FAST", 0))]


class FarDevice(asynchronous_device.AsynchronousDevice):
    """An accelerator of another task."""

    type, priority = "FAST", 1

    def __init__(self) -> None:
        super().__init__(0, None)
        self.spec = "/job:worker/replica:0/task:1/device:FAST:0"


class FarPlugin:
    @hookimpl
    def timberframe_devices(self, config: Mapping[str, Any]) -> list[Device]:
        return [FarDevice()] if config["count"].get("FAR") else []


if "fast" not in loader.registry.plugins:
    loader.registry.add("fast", FastPlugin())
    loader.registry.add("far", FarPlugin())


def fast(**settings: Any) -> tf.Session:
    """Returns a session of the default graph, with one accelerator."""
    return tf.Session(config=tf.SessionConfig(device_count={"FAST": 1}, plugins=["fast", "cpu"], **settings))


pytestmark = pytest.mark.usefixtures("fresh_graph")


def devices(session: tf.Session, fetches: Any) -> dict[str, str]:
    """Returns the device of each placed node."""
    return {p.node: p.device for p in session.explain(fetches).placements}


def test_accelerator_comes_before_the_cpu() -> None:
    x = tf.placeholder(tf.float32, [100, 100])
    y = tf.matmul(x, x, name="y")
    with fast() as session:
        (placement,) = session.explain(y).placements
        assert (placement.device, placement.reason) == (FAST, "first device by priority that has a kernel")
        np.testing.assert_array_equal(session.run(y, {x: np.eye(100)}), np.eye(100))


def test_node_without_a_kernel_goes_to_the_host_and_the_report_says_why() -> None:
    x = tf.placeholder(tf.float32, [100])
    y = tf.tanh(x, name="y")
    with fast() as session:
        (placement,) = session.explain(y).placements
        assert (placement.device, placement.rejected) == (CPU, ((FAST, "no kernel is registered"),))


@pytest.mark.parametrize("initialised", [False, True])
def test_report_says_why_a_variable_is_not_on_the_accelerator(initialised: bool) -> None:
    v = tf.Variable(np.zeros(3, np.float32), name="v")
    tf.train.MomentumOptimizer(0.1, 0.9).minimize(tf.reduce_sum(v * v))
    with fast() as session:
        if initialised:
            session.run(tf.global_variables_initializer())
        placement = next(p for p in session.explain(v.read_value()).placements if p.node == "v")
    assert placement.device == CPU
    assert placement.reason == (
        "the variable is there" if initialised else "first device by priority that has a kernel"
    )
    words = "ResourceApplyMomentum 'Momentum/update_v/ResourceApplyMomentum', which uses it: no kernel is registered"
    assert placement.rejected == ((FAST, words),)


@pytest.fixture
def several_tasks() -> Any:
    """A session of the local CPU and of an accelerator of another task, with soft placement."""
    config = tf.SessionConfig(device_count={"FAR": 1}, plugins=["far", "cpu"], allow_soft_placement=True)
    with tf.Session(config=config) as session:
        yield session


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ("/job:worker/replica:0/task:1/device:FAST:0", "/job:worker/replica:0/task:1/device:FAST:0"),
        ("/job:worker", "/job:worker/replica:0/task:1/device:FAST:0"),
        ("/device:FAST:0", "/job:worker/replica:0/task:1/device:FAST:0"),
        ("/job:localhost/replica:0/task:0/device:CPU:0", CPU),
        ("/job:localhost", CPU),
        ("/task:0", CPU),
        ("/cpu:0", CPU),
    ],
)
def test_a_request_goes_to_the_task_that_it_names(several_tasks: tf.Session, request_: str, expected: str) -> None:
    with tf.device(request_):
        y = tf.square(tf.placeholder(tf.float32, [100, 100]), name="y")
    assert devices(several_tasks, y) == {"y": expected}


def test_soft_placement_stays_in_the_task_that_is_requested(several_tasks: tf.Session) -> None:
    with tf.device("/job:worker/task:1/cpu:0"):
        y = tf.square(tf.placeholder(tf.float32, [100, 100]), name="y")
    assert devices(several_tasks, y) == {"y": "/job:worker/replica:0/task:1/device:FAST:0"}


def test_small_integers_of_the_host_stay_there() -> None:
    x = tf.placeholder(tf.float32, [100, 100])
    begin = tf.placeholder(tf.int32, [2])
    start = tf.add(begin, 1, name="start")
    y = tf.slice(x, start, [3, 3], name="y")
    with fast() as session:
        assert devices(session, y) == {"start": CPU, "y": FAST}
        given = np.arange(10_000).reshape(100, 100)
        np.testing.assert_array_equal(session.run(y, {x: given, begin: [4, 5]}), given[5:8, 6:9])
        assert "small, and the host has all that it needs" in str(session.explain(y))


def test_long_integers_go_to_the_accelerator() -> None:
    x = tf.placeholder(tf.int32, [100])
    with fast() as session:
        assert devices(session, tf.add(x, 1, name="y")) == {"y": FAST}


def test_integers_that_follow_from_shapes_are_no_work_for_a_device() -> None:
    x = tf.placeholder(tf.float32, [None, 100])
    count = tf.cast(tf.reduce_prod(tf.shape(x)), tf.float32)
    mean = tf.divide(tf.reduce_sum(x), count, name="mean")
    with fast() as session:
        assert set(devices(session, mean).values()) == {FAST}
        assert len(session.explain(mean, {x: np.ones((3, 100))}).stages) == 1
        for rows in (3, 7):
            assert session.run(mean, {x: np.full((rows, 100), 2)}) == 2


def test_division_by_an_empty_shape_says_so() -> None:
    x = tf.placeholder(tf.float32, [None])
    with (
        fast() as session,
        pytest.raises(tf.errors.InvalidArgumentError, match=r"'each'.*division by zero: element 0 of y is 0"),
    ):
        session.run(tf.floordiv(8, tf.shape(x)[0], name="each"), {x: []})


def test_scalars_beside_a_node_of_the_host_do_not_bounce() -> None:
    x = tf.placeholder(tf.float32, [])
    y = tf.tanh(tf.tanh(x, name="a") * 2.0, name="b")
    with fast() as session:
        assert set(devices(session, y).values()) == {CPU}


def test_variable_goes_where_all_its_users_can_run() -> None:
    slow = tf.Variable(np.zeros(100, np.float32), name="slow")
    quick = tf.Variable(np.zeros(100, np.float32), name="quick")
    slow_step = tf.train.MomentumOptimizer(0.1, 0.9).minimize(tf.reduce_sum(slow))
    quick_step = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(quick))
    with fast() as session:
        session.run(tf.global_variables_initializer())
        session.run([slow_step, quick_step])
        homes = {n: session.runtime.variables.device(n).spec for n in ("slow", "quick")}
        assert homes == {"slow": CPU, "quick": FAST}
        np.testing.assert_allclose(session.run([slow, quick]), np.full((2, 100), -0.1))


def test_user_of_a_variable_that_its_device_lacks_is_named() -> None:
    v = tf.Variable(np.zeros(100, np.float32), name="v")
    with fast() as session:
        session.run(v.initializer)
        apply_op("ResourceApplyMomentum", [v.handle, v.handle, 0.1, v.read_value(), 0.9], name="late")
        with pytest.raises(
            tf.errors.UnimplementedError, match=r"'late': variable 'v' lives on /device:FAST:0, which cannot run this"
        ):
            session.run("late")


def strings(spec: str) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns a graph that is all on one device: a number, a string made of it, and a string variable."""
    with tf.device(spec):
        x = tf.placeholder(tf.float32, [3], name="x")
        y = tf.add(x, x, name="y")
        name = tf.placeholder(tf.string, [], name="name")
        label = tf.stack([name, "!"], name="label")
        kept = tf.Variable(tf.constant(["a", "b"]), name="kept")
    return y, label, kept


def test_strings_stay_on_the_host() -> None:
    y, label, kept = strings("")
    with fast() as session:
        session.run(kept.initializer)
        found = session.run([y, label, kept], {"x:0": [1, 2, 3], "name:0": "a"})
        assert [np.asarray(f).tolist() for f in found] == [[2, 4, 6], [b"a", b"!"], [b"a", b"b"]]
        places = devices(session, [y, label, kept])
        assert (places["y"], places["label"], places["kept"]) == (FAST, CPU, CPU)


def test_strings_on_an_accelerator_move_under_soft_placement() -> None:
    y, label, kept = strings(FAST)
    with fast(allow_soft_placement=True) as session:
        session.run(kept.initializer)
        found = session.run([y, label, kept], {"x:0": [1, 2, 3], "name:0": "a"})
        assert [np.asarray(f).tolist() for f in found] == [[2, 4, 6], [b"a", b"!"], [b"a", b"b"]]
        moved = next(p for p in session.explain(label).placements if p.node == "label")
        assert moved.reason == f"soft placement: {FAST} cannot run it (strings live in the host's memory only)"


@pytest.mark.parametrize("which", [1, 2])
def test_strings_on_an_accelerator_are_an_error_without(which: int) -> None:
    fetch = strings(FAST)[which]
    with (
        fast() as session,
        pytest.raises(tf.errors.UnimplementedError, match=r"/device:FAST:0: strings live in the host's memory only"),
    ):
        session.run(fetch, {"name:0": "a"})


@pytest.mark.parametrize("soft", [False, True])
def test_assertion_on_an_accelerator_tells_its_message(soft: bool) -> None:
    with tf.device(FAST):
        x = tf.placeholder(tf.float32, [3])
        with tf.control_dependencies([tf.Assert(tf.reduce_all(x > 0), ["x is", x], name="check")]):
            y = x * 2.0
    with fast(allow_soft_placement=soft) as session:
        np.testing.assert_array_equal(session.run(y, {x: [1, 2, 3]}), [2, 4, 6])
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"'check'.*x is.*-2"):
            session.run(y, {x: [1, -2, 3]})


def test_a_constant_written_in_few_numbers_needs_no_kernel_of_the_requested_device() -> None:
    with tf.device(FAST):
        ones = tf.ones([1000, 1000], name="ones")
        y = tf.add(ones, tf.placeholder_with_default(np.float32(2), [], name="x"))
    with fast(allow_soft_placement=False) as session:
        assert (session.run(y) == 3).all()
        placed = {p.node: p for p in session.explain(y).placements}
        assert (placed["ones"].device, placed["Add"].device) == (CPU, FAST)
        assert placed["ones"].reason == f"its inputs are constants, and so is it, though {FAST} is requested"


def test_a_tensor_of_a_fed_size_needs_a_kernel_of_the_requested_device() -> None:
    with tf.device(FAST):
        filled = tf.fill(tf.placeholder(tf.int32, [2], name="size"), 1.0)
    with (
        fast(allow_soft_placement=False) as session,
        pytest.raises(tf.errors.NoKernelError, match=r"Fill .*no kernel is registered"),
    ):
        session.run(filled, {"size:0": [2, 3]})


def test_assertion_in_a_loop_on_an_accelerator_tells_its_message() -> None:
    def body(i: tf.Tensor, a: tf.Tensor) -> Any:
        with tf.control_dependencies([tf.Assert(tf.reduce_all(a < 30), ["a is", a])]):
            return i + 1, a * 2.0

    with tf.device(FAST):
        start = tf.placeholder(tf.float32, [2])
        result = tf.while_loop(lambda i, a: i < 3, body, [tf.constant(0), start])[1]
    with fast() as session:
        np.testing.assert_array_equal(session.run(result, {start: [1, 2]}), [8, 16])
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"a is.*32"):
            session.run(result, {start: [1, 8]})


@pytest.mark.parametrize("soft", [False, True])
def test_values_of_an_accelerator_are_saved_and_restored(soft: bool, tmp_path: Any) -> None:
    with tf.device(FAST):
        v = tf.Variable(np.arange(3, dtype=np.float32), name="v")
        save = apply_op("SaveV2", [str(tmp_path / "v"), ["v"], [""], [v.read_value()]])
        (restored,) = apply_op("RestoreV2", [str(tmp_path / "v"), ["v"], [""]], {"dtypes": (tf.float32,)})
        twice = restored * 2.0
    with fast(allow_soft_placement=soft) as session:
        session.run(v.initializer)
        session.run(save)
        np.testing.assert_array_equal(session.run(twice), [0, 2, 4])


def test_a_dtype_that_a_device_does_not_hold_names_those_that_hold_it() -> None:
    with tf.Graph().as_default():
        with tf.device("/device:ASYNC:0"):
            v = tf.Variable(["a"], name="v")
        with tf.Session() as session, pytest.raises(tf.errors.UnimplementedError) as caught:
            session.run(v.initializer)
    said = str(caught.value)
    assert "device types with the op" not in said
    assert "place it on /device:CPU:0" in said
    assert "or set allow_soft_placement=True" in said


def test_a_plugin_without_hardware_is_reported_only_where_it_is_asked_for() -> None:
    devices = Devices([], KernelRegistry(), {"acme": UnavailableError("no driver"), "broken": OSError("no library")})
    assert devices.describe() == "devices: none; plugins that failed: broken (OSError: no library)"
    assert "plugins without a device: acme (no driver)" in devices.describe("/device:ACME:0")


@pytest.mark.parametrize(("requested", "hint"), [("/numpy:1", True), ("/numpy:0", False), ("/job:a/numpy:1", False)])
def test_a_number_of_a_type_that_has_fewer_devices_hints_at_more(requested: str, hint: bool) -> None:
    described = Devices([NumpyDevice(0)], KernelRegistry()).describe(requested)
    assert ('; SessionConfig(device_count={"NUMPY": 2}) asks its plugin for 2' in described) == hint


def test_a_reason_is_reported_once() -> None:
    with tf.Graph().as_default():
        with tf.device("/device:ASYNC:0"):
            v = tf.Variable(["a"], name="v")
        with tf.Session(config=tf.SessionConfig(allow_soft_placement=True)) as session:
            text = str(session.explain(v.initializer))
    assert sum("v (VarHandleOp)" in line for line in text.splitlines()) == 1
    assert text.count("in the host's memory only") == 1


class NarrowDevice(FastDevice):
    """One that declares a single dtype, though its kernels would take others."""

    type = "NARROW"

    def __init__(self, index: int) -> None:
        super().__init__(index)
        self.spec = f"/device:NARROW:{index}"
        self.attributes = replace(self.attributes, dtypes=("float32",))


class NarrowPlugin:
    @hookimpl
    def timberframe_devices(self, config: Mapping[str, Any]) -> list[Device]:
        return [NarrowDevice(i) for i in range(config["count"].get("NARROW", 0))]


def narrow_session(**options: Any) -> tf.Session:
    if "narrow" not in loader.registry.plugins:
        loader.registry.add("narrow", NarrowPlugin())
    return tf.Session(config=tf.SessionConfig(device_count={"NARROW": 1}, **options))


def test_a_device_gets_no_dtype_that_it_does_not_declare() -> None:
    with tf.Graph().as_default(), tf.device("/device:NARROW:0"), narrow_session() as session:
        x = tf.placeholder(tf.float64, [3])
        with pytest.raises(tf.errors.NoKernelError, match="NARROW:0: the device holds no float64; it holds float32"):
            session.run(tf.abs(x), {x: np.ones(3)})


def test_axes_may_have_a_dtype_that_the_device_does_not_declare() -> None:
    with tf.Graph().as_default(), tf.device("/device:NARROW:0"), narrow_session() as session:
        x = tf.placeholder(tf.float32, [3])
        assert session.run(tf.reduce_sum(x, axis=0), {x: np.ones(3)}) == 3


BESIDE_KERNELS: list[KernelDef] = []
kernel(BESIDE_KERNELS, "Mul", "BESIDE", types={"T": ("float32",)})(lambda node: np.multiply)


class Beside(NumpyDevice):
    """A device in the host's memory that comes before the CPU and has one kernel."""

    type, priority = "BESIDE", 200


class BesidePlugin:
    @hookimpl
    def timberframe_kernels(self) -> list[KernelDef]:
        return BESIDE_KERNELS

    @hookimpl
    def timberframe_devices(self, config: Mapping[str, Any]) -> list[Device]:
        return [Beside(0)] if config["count"].get("BESIDE") else []


if "beside" not in loader.registry.plugins:
    loader.registry.add("beside", BesidePlugin())


def test_variable_goes_where_its_users_can_run_from_a_device_in_the_hosts_memory_too() -> None:
    v = tf.Variable(np.ones(100, np.float32), name="v")
    y = tf.multiply(tf.gather(v, tf.placeholder(tf.int32, [None], name="i")), 2.0, name="y")
    config = tf.SessionConfig(device_count={"BESIDE": 1}, plugins=["beside", "cpu"])
    with tf.Session(config=config) as session:
        session.run(tf.global_variables_initializer())
        assert session.run(y, {"i:0": np.arange(80)}).tolist() == [2] * 80
        assert devices(session, y)["y"] == "/device:BESIDE:0"
