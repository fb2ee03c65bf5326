"""What a user does with a graph: imports it, looks at it, runs it, takes gradients, exports it and imports it again."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import timberframe as tf
from timberframe_conformance.hostile.attempts import WrongUseError, attempt
from timberframe_conformance.hostile.kinds import Limits
from timberframe_core.errors import OpError
from timberframe_core.runtime.devices import devices_for

FETCHED = 8  # tensors of a graph that are run, besides all of its ends together
FED = 1 << 16  # elements of a feed; a placeholder that promises more is not fed


def use_graph_def(message: Any, rng: random.Random, limits: Limits) -> None:
    """Imports a GraphDef (or its bytes) into a new graph and uses that in every way."""
    graph = tf.Graph()
    with graph.as_default():
        if not isinstance(attempt(tf.import_graph_def, message, name=""), OpError):
            use_graph(graph, rng, limits)


def use_graph(graph: Any, rng: random.Random, limits: Limits) -> None:
    """Runs, explains, differentiates and exports a graph."""
    _export(graph)
    with tf.Session(graph=graph, config=session_config(limits)) as session:
        run_fetches(session, graph, rng, limits)
        if rng.random() < 0.3:
            _differentiate(session, graph, rng, limits)


def session_config(limits: Limits) -> Any:
    """Returns a session on the device under test, and on the host's if that does not hold all, with limited memory."""
    found = {d.type: d for d in devices_for(tf.SessionConfig(**limits.config))}
    wanted = limits.device_type or next(iter(found), "")
    lacks = not found[wanted].host_memory or bool(limits.device_type and found[wanted].attributes.dtypes)
    used = {kind for kind, d in found.items() if kind == wanted or (d.host_memory and lacks)}
    counts = {**limits.config.get("device_count", {}), **dict.fromkeys(found.keys() - used, 0)}
    return tf.SessionConfig(
        **{**limits.config, "device_count": counts},
        memory_limit=dict.fromkeys(used, limits.memory),
        allow_soft_placement=True,
    )


def _export(graph: Any) -> None:
    """Checks that what was imported can be exported, and the export can be imported."""
    exported = attempt(graph.as_graph_def, add_shapes=True)
    if isinstance(exported, OpError):
        return
    with tf.Graph().as_default():
        again = attempt(tf.import_graph_def, exported, name="")
    if isinstance(again, OpError):
        raise WrongUseError(f"the export of an imported graph cannot be imported: {again}")


def run_fetches(session: Any, graph: Any, rng: random.Random, limits: Limits) -> None:
    """Initialises variables, fetches all final tensors of the graph together, and some tensors alone."""
    operations = graph.get_operations()
    feeds = _feeds(graph, operations)
    starts = [op for op in operations if op.type in ("Assign", "AssignVariableOp")]
    if isinstance(_run(session, starts, feeds, limits), OpError):
        for op in starts[:FETCHED]:
            _run(session, op, feeds, limits)
    consumed = {t for op in operations for t in op.inputs}
    ends = [t for op in operations for t in op.outputs if t not in consumed and graph.is_fetchable(t)]
    ends += [op for op in operations if not op.outputs and op.type != "NoOp"]
    targets = [e for e in ends if not isinstance(e, tf.Operation)]
    _run(session, ends, feeds, limits)
    others = [t for op in operations for t in op.outputs if graph.is_fetchable(t)]
    chosen = [
        *rng.sample(targets, min(len(targets), FETCHED // 2)),
        *rng.sample(others, min(len(others), FETCHED // 2)),
    ]
    for fetch in dict.fromkeys(chosen):
        if not isinstance(_run(session, fetch, feeds, limits), OpError):
            _run(session, [fetch, fetch], feeds, limits)
    if chosen:
        attempt(lambda: str(session.explain(chosen[0], feeds)))


def _run(session: Any, fetches: Any, feeds: Any, limits: Limits) -> Any:
    return attempt(session.run, fetches, feeds, options=tf.RunOptions(timeout_in_ms=limits.run_ms))


def _feeds(graph: Any, operations: Any) -> dict[Any, Any]:
    """Returns small values for the placeholders; unknown sizes become 2."""
    feeds = {}
    for op in operations:
        if op.type not in ("Placeholder", "PlaceholderV2") or not graph.is_feedable(op.outputs[0]):
            continue
        value = example(op.outputs[0])
        if value is not None:
            feeds[op.outputs[0]] = value
    return feeds


def example(tensor: Any) -> np.ndarray | None:
    """Returns a small value for a tensor; None where its shape promises a large one."""
    shape = tensor.static_shape
    sizes = () if shape is None else tuple(2 if size is None else size for size in shape)
    if len(sizes) > 32 or np.prod([float(s) for s in sizes]) > FED:
        return None
    return _values(tensor.dtype, sizes)


def _values(dtype: Any, sizes: tuple[int, ...]) -> np.ndarray:
    if dtype is tf.string:
        return np.full(sizes, b"a", object)
    count = int(np.prod(sizes))
    return np.asarray(np.arange(count) % 3).reshape(sizes).astype(dtype.base_dtype.numpy)


def _differentiate(session: Any, graph: Any, rng: random.Random, limits: Limits) -> None:
    operations = graph.get_operations()
    floats = [t for op in operations for t in op.outputs if t.dtype in (tf.float32, tf.float64)]
    sources = [t for t in floats if t.op.type == "Placeholder"]
    if not sources:
        return
    with graph.as_default():
        found = attempt(tf.gradients, rng.choice(floats[-10:]), rng.choice(sources))
    if not isinstance(found, OpError) and found[0] is not None:
        _run(session, found[0], _feeds(graph, graph.get_operations()), limits)
