"""The same graphs in TensorFlow, both ways: TensorFlow runs what we wrote, and we run what it wrote of that.

Importing this module needs tensorflow, and adds the oracle `tensorflow`. Where both are known to differ, with good
reason, `data/tensorflow_differences.toml` says so; the results of programs with such nodes are not compared.
"""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
import tensorflow.compat.v1 as theirs  # type: ignore[import-not-found,import-untyped,unused-ignore]  # only in the peers' environment

from timberframe_conformance.case import CaseFailedError
from timberframe_conformance.fuzz.expected import expect
from timberframe_conformance.fuzz.oracles.graphs import carried
from timberframe_conformance.fuzz.subject import Subject, oracle
from timberframe_conformance.tolerance.ulp import FORMATS

MORE = 64.0
"""How much further TensorFlow may be from the truth than our devices: its limits are not declared."""


@dataclass(frozen=True)
class Difference:
    """A known difference: nodes of these ops (in these dtypes, where any are named) are not compared."""

    ops: tuple[str, ...]
    reason: str
    source: str
    dtypes: tuple[str, ...] = ()
    outputs: tuple[int, ...] = ()
    error: str = ""

    def explains(self, node: Any, error: str) -> bool:
        """Whether a node makes this difference; error: TensorFlow's words where it raised, else nothing."""
        if node.type not in self.ops:
            return False
        if self.dtypes and not any(t.dtype.name in self.dtypes for t in (*node.inputs, *node.outputs)):
            return False
        return self.error in error if self.error else not error


@functools.cache
def differences() -> tuple[Difference, ...]:
    """The known differences."""
    text = (files("timberframe_conformance") / "data" / "tensorflow_differences.toml").read_text()
    listed = tomllib.loads(text)["difference"]
    return tuple(_difference(d) for d in listed)


def _difference(data: dict[str, Any]) -> Difference:
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
    return Difference(**fields)


ABORTS = "aborts"
"""In place of words that TensorFlow raises: it ends the process, so it is not asked."""

NO_KERNEL = ("No OpKernel was registered", "UnimplementedError", "No registered", "is not supported on CPU")
"""What TensorFlow says of ops that it cannot run on a CPU in these dtypes or formats; it has no result to compare."""


@oracle("tensorflow")
def tensorflow(s: Subject) -> int:
    """TensorFlow's results for the graph that we wrote are the true ones, and ours for the one that it wrote back."""
    if any(t.dtype.name not in FORMATS and t.dtype.numpy.kind not in "biuO" for t in s.built.fetches):
        return 0
    message = s.built.graph.as_graph_def()
    if _explained(s, ABORTS):
        return 0
    try:
        back, got = _run(s, message.SerializeToString())
    except (theirs.errors.OpError, ValueError, TypeError, NotImplementedError) as e:
        words = f"{type(e).__name__}: {' '.join(str(e).replace('Graph execution error:', '').split())}"
        if _explained(s, words) or any(n in words for n in NO_KERNEL):
            return 0
        raise CaseFailedError(f"TensorFlow raises {words[:600]}") from e
    imported = carried(s.built, type(message).FromString(back))
    with s.session(imported) as session:
        count = s.check_same(s.run(session, built=imported), "the graph that TensorFlow read and wrote again")
    if _explained(s, ""):
        return count
    built = s.built
    expected = expect(built.fetches, built.feeds, built.initializers, flush=True)  # TensorFlow flushes subnormals
    left_out = _undetermined(s)
    for i, (found, truth) in enumerate(zip(got, expected, strict=True)):
        if built.fetches[i] in left_out:
            continue
        wrong = "" if truth is None else truth.mismatch(found, MORE)
        if wrong:
            raise CaseFailedError(f"TensorFlow's result {i}: {wrong}; ours is {np.asarray(s.first[i]).tolist()!r:.200}")
    return 2 * count


def _run(s: Subject, text: bytes) -> tuple[bytes, list[Any]]:
    """The graph as TensorFlow writes it again, and its results."""
    with theirs.Graph().as_default() as graph:
        theirs.import_graph_def(theirs.GraphDef.FromString(text), name="")
        back: bytes = graph.as_graph_def(add_shapes=True).SerializeToString()
        config = theirs.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
        with theirs.Session(graph=graph, config=config) as session:
            if s.built.initializers:
                session.run([op.name for op in s.built.initializers])
            feeds = {t.name: x for t, x in s.built.feeds.items()}
            return back, session.run([t.name for t in s.built.fetches], feeds)


def _undetermined(s: Subject) -> set[Any]:
    """Tensors that depend on outputs which known differences leave open."""
    found: set[Any] = set()
    for op in s.built.graph.get_operations():
        open_outputs = {i for d in differences() if op.type in d.ops for i in d.outputs}
        depends = any(t in found for t in op.inputs)
        found.update(t for i, t in enumerate(op.outputs) if depends or i in open_outputs)
    return found


def _explained(s: Subject, error: str) -> bool:
    nodes = [op for graph in (s.built.graph, *s.built.graph.functions.values()) for op in graph.get_operations()]
    return any(d.explains(node, error) for d in differences() if not d.outputs for node in nodes)
