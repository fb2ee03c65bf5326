"""Calls to be measured: the device through its sessions, and each peer."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import timberframe as tf
from timberframe_conformance.bench import pipelines, training
from timberframe_conformance.bench.clblast import library, with_clblast
from timberframe_conformance.bench.opencl import with_pyopencl
from timberframe_conformance.bench.peaks import MEMORY_BYTES
from timberframe_conformance.bench.peer_inputs import peer_inputs
from timberframe_conformance.bench.peers import absent_modules, find_peers
from timberframe_conformance.bench.workload import Call, Workload
from timberframe_conformance.bench.workloads import workloads
from timberframe_core.dtypes import as_dtype
from timberframe_core.errors import ResourceExhaustedError
from timberframe_core.graph.apply import apply_op

if TYPE_CHECKING:
    from timberframe_conformance.target import Target
    from timberframe_core.plugin.contracts import Device

PEERS = ("numpy", "torch", "tensorflow", "jax", "pyopencl", "clblast")
ACCELERATED = ("pyopencl", "clblast")
"""Peers that run on an accelerator."""
DEVICE = "device"
ON_DEVICE = tf.RunOptions(fetch_on_device=True)


@dataclass(frozen=True)
class Measurement:
    """A call of one side. per: what one call's time is divided by (nodes of a chain); unit: of the result."""

    name: str
    side: str
    call: Call
    flops: float = 0.0
    nbytes: float = 0.0
    per: float = 1.0
    targets: Sequence[tuple[str, float]] = ()
    limit: float | None = None


def installed(peers: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns those peers that can be imported, and why the others are left out."""
    return find_peers(peers, PEERS, "no measurements are written for it", _lacking)


def _lacking(peer: str) -> str:
    """Returns what a peer requires and is not installed; empty if nothing is missing."""
    if peer == "clblast":
        return "" if library() is not None else "its library"
    return absent_modules((peer, "mako") if peer == "pyopencl" else (peer,))  # pyopencl writes its reductions with it


def kernel_measurements(
    target: Target, peers: Sequence[str], keyword: str = ""
) -> tuple[list[Measurement], dict[str, str]]:
    """Returns each workload on the device and on each peer that has it; and why the device
    cannot run the others, by name.

    keyword: names of workloads that do not contain it are left out.
    """
    result, without = [], {}
    for w in map(with_clblast, map(with_pyopencl, workloads(apply_op))):
        if keyword not in w.name:
            continue
        call = device_call(target, w)
        if isinstance(call, str):
            without[w.name] = call
        else:
            result.append(Measurement(w.name, DEVICE, call, w.flops, w.nbytes, targets=_targets(target, w)))
        for peer in (p for p in peers if p in w.peers):
            inputs = peer_inputs(peer, w.inputs, target.device.attributes)
            result.append(Measurement(w.name, peer, _bound(w.peers[peer], inputs), w.flops, w.nbytes))
    return result, without


def transfer_measurements(target: Target, keyword: str = "") -> tuple[list[Measurement], dict[str, str]]:
    """Copies to a device with memory of its own and back, each with the wait for it: of few bytes, and of many.

    Returns them, and why others are not measured: many are 64 MiB, and a quarter of what a smaller device has. keyword:
    names that do not contain it are left out.
    """
    device = target.device
    if device.host_memory:
        return [], {}
    result, without = list[Measurement](), {}
    many = min(MEMORY_BYTES, max(device.attributes.memory // 4, 4) // 4 * 4)
    for nbytes, size in ((4, "4 bytes"), (many, _size_in_words(many))):
        names = f"copy in, {size}", f"copy out, {size}"
        if not any(keyword in name for name in names):
            continue
        x = np.ones(nbytes // 4, np.float32)
        try:
            held = device.copy_in(x)
        except ResourceExhaustedError as e:
            without.update(dict.fromkeys(names, str(e)))
            continue
        result.append(Measurement(names[0], DEVICE, functools.partial(_copied_in, device, x)))
        result.append(Measurement(names[1], DEVICE, functools.partial(device.copy_out, held)))
    return result, without


def _size_in_words(nbytes: int) -> str:
    return f"{nbytes >> 20} MiB" if nbytes >= 1 << 20 else f"{nbytes} bytes"


def _copied_in(device: Device, x: np.ndarray) -> Any:
    made = device.copy_in(x)
    device.synchronize()
    return made


def _targets(target: Target, w: Workload) -> Sequence[tuple[str, float]]:
    """Returns the device's targets: one with memory of its own is compared with libraries for such devices."""
    if target.device.host_memory:
        return w.targets
    return [(peer, least) for peer, least in w.targets if peer in ACCELERATED]


def training_measurements(target: Target, peers: Sequence[str]) -> tuple[list[Measurement], dict[str, str]]:
    """Returns a training step on the device, and in TensorFlow's Session where that is a
    peer; why the device has none.
    """
    name, work = training.NAME, (training.FLOPS, training.NBYTES)
    try:
        call = training.mlp(tf, target.session, target.spec).call()
        call()
    except (NotImplementedError, LookupError, ResourceExhaustedError) as e:
        return [], {name: str(e)}
    own = Measurement(name, DEVICE, call, *work, targets=[("tensorflow", 1.0)])
    return [own, *(Measurement(name, p, training.tensorflow_call(), *work) for p in peers if p == "tensorflow")], {}


def pipeline_measurements(target: Target, peers: Sequence[str], keyword: str) -> list[Measurement]:
    """Pipelines of tf.data whose names contain the keyword, in sessions of the device and in TensorFlow's."""
    names = {f"{pipelines.PREFIX}{name}": name for name in pipelines.PIPELINES}
    wanted = {full: name for full, name in names.items() if keyword in full}
    if not wanted or not target.device.host_memory:
        return []
    files, result = pipelines.temporary_files(), []
    for full, name in wanted.items():
        own = pipelines.pipeline(tf, name, files, target.session)
        result.append(Measurement(full, DEVICE, own, targets=[("tensorflow", 1.0)]))
        if "tensorflow" in peers:
            result.append(Measurement(full, "tensorflow", pipelines.tensorflow_call(name, files)))
    return result


def _bound(function: Callable[..., Any], arguments: Sequence[Any]) -> Call:
    return lambda: function(*arguments)


def device_call(target: Target, w: Workload) -> Call | str:
    """Returns a call of the workload on inputs where the device has them; where the device lacks the kernel, why."""
    graph = tf.Graph()
    try:
        with graph.as_default(), tf.device(target.spec):
            feeds = [apply_op("Placeholder", (), {"dtype": as_dtype(x.dtype), "shape": x.shape}) for x in w.inputs]
            result = w.build(*feeds)
            held = [apply_op("Identity", [x]) for x in feeds]
        session = target.session(graph)
        if target.device.host_memory:
            call = _bound(session.make_callable(result, feeds), w.inputs)
        else:
            plain = target.session(graph, optimizations={"simplify": False})  # which would take the host's arrays
            arrays = plain.run(held, _fed(feeds, w.inputs), ON_DEVICE)
            call = _call_on_device(session, target.spec, result, _fed(feeds, arrays))
        call()
    except (NotImplementedError, LookupError, ResourceExhaustedError) as e:
        return str(e)
    return call


def _call_on_device(session: Any, spec: str, result: Any, given: dict[Any, Any]) -> Call:
    """Returns a run from arrays on the device to one there, and the wait for it."""
    synchronize = next(d for d in session.list_devices() if d.spec == spec).synchronize

    def call() -> Any:
        found = session.run(result, given, ON_DEVICE)
        synchronize()
        return found

    return call


def _fed(feeds: Sequence[Any], values: Sequence[Any]) -> dict[Any, Any]:
    return dict(zip(feeds, values, strict=True))


EXECUTOR = ("chain of 1,000 Tanh, a node", "one-op make_callable", "one-op Session.run")


def executor_measurements(target: Target, keyword: str = "") -> tuple[list[Measurement], dict[str, str]]:
    """Measures what the runtime itself costs, or says why not. limits: its targets in seconds on a host device.

    keyword: where no name contains it, nothing is built.
    """
    if not any(keyword in name for name in (*EXECUTOR, "executor")):
        return [], {}
    try:
        return _executor(target), {}
    except (NotImplementedError, LookupError, ResourceExhaustedError) as e:
        return [], {"executor": str(e)}


def _plain(target: Target, graph: tf.Graph) -> Any:
    """Returns a session without passes: executor benchmarks measure nodes, so nothing may remove them."""
    return target.session(graph, optimizations=dict.fromkeys(target.passes(), False))


def _executor(target: Target) -> list[Measurement]:
    x = np.array([0.1, -0.2, 0.3, 0.4], np.float32)
    node, call, run = (20e-9, 1.5e-6, 4e-6) if target.device.host_memory else (math.inf,) * 3
    return [
        Measurement(EXECUTOR[0], DEVICE, _chain(target, x, 1000), per=1000, limit=node),
        Measurement(EXECUTOR[1], DEVICE, _one_op_callable(target, x), limit=call),
        Measurement(EXECUTOR[2], DEVICE, _one_op_run(target, x), limit=run),
    ]


def _chain(target: Target, x: np.ndarray, length: int) -> Call:
    graph = tf.Graph()
    with graph.as_default(), tf.device(target.spec):
        feed = apply_op("Placeholder", (), {"dtype": tf.float32, "shape": x.shape})
        y = feed
        for _ in range(length):
            y = apply_op("Tanh", [y])
    call = _plain(target, graph).make_callable(y, [feed])
    return lambda: call(x)


def _one_op(target: Target, x: np.ndarray) -> tuple[Any, Any, Any]:
    graph = tf.Graph()
    with graph.as_default(), tf.device(target.spec):
        feed = apply_op("Placeholder", (), {"dtype": tf.float32, "shape": x.shape})
        y = apply_op("Tanh", [feed])
    return _plain(target, graph), feed, y


def _one_op_callable(target: Target, x: np.ndarray) -> Call:
    session, feed, y = _one_op(target, x)
    call = session.make_callable(y, [feed])
    return lambda: call(x)


def _one_op_run(target: Target, x: np.ndarray) -> Call:
    session, feed, y = _one_op(target, x)
    run = session.run
    return lambda: run(y, {feed: x})


PLANNED_NODES = 10_000
PLANNING_LIMIT = 0.5


def planning_seconds(target: Target) -> float:
    """Returns seconds from a new graph of 10,000 nodes to its first result, best of three."""
    import time

    best = float("inf")
    x = np.ones(4, np.float32)
    for _ in range(3):
        graph = tf.Graph()
        with graph.as_default(), tf.device(target.spec):
            feed = apply_op("Placeholder", (), {"dtype": tf.float32, "shape": x.shape})
            y = feed
            for _ in range(PLANNED_NODES):
                y = apply_op("Tanh", [y])
        session = _plain(target, graph)
        start = time.perf_counter()
        session.run(y, {feed: x})
        best = min(best, time.perf_counter() - start)
        session.close()
    return best
