"""The same graph built, compiled or transferred in another way."""

from __future__ import annotations

from typing import Any

import timberframe
from timberframe_conformance.case import CaseFailedError
from timberframe_conformance.fuzz.build import Built, build
from timberframe_conformance.fuzz.subject import Subject, all_shapes_known, no_shapes_known, oracle
from timberframe_core.errors import OpError

tf: Any = timberframe


@oracle("passes")
def passes(s: Subject) -> int:
    """With each pass switched off, and with all of them off, only rounding may differ."""
    count = 0
    with s.session() as session:
        names = [p.name for p in session.explain(s.built.fetches, s.built.feeds).passes]
    for off in (*([name] for name in names), names):
        with s.session(optimizations=dict.fromkeys(off, False)) as session:
            for _ in range(2):
                count += s.check_close(s.run(session), f"without {', '.join(off)}")
    return count


@oracle("shapes")
def shapes(s: Subject) -> int:
    """With all shapes known, and with none known, only rounding may differ."""
    count = 0
    for what, program in (("all", all_shapes_known(s.program)), ("no", no_shapes_known(s.program))):
        try:
            built = build(program, s.target.spec)
        except OpError as e:
            raise CaseFailedError(f"with {what} shapes known, building raises {type(e).__name__}: {e}") from e
        with s.session(built) as session:
            count += s.check_close(s.run(session, built=built), f"with {what} shapes known")
    return count


@oracle("GraphDef")
def graph_def(s: Subject) -> int:
    """The graph that was written and read again gives the same bits, and is written as the same message."""
    message = s.built.graph.as_graph_def()
    text = message.SerializeToString(deterministic=True)
    imported = carried(s.built, type(message).FromString(text))
    again = imported.graph.as_graph_def()
    if len(again.node) != len(message.node):
        raise CaseFailedError(
            f"{len(message.node)} nodes were written; read and written again there are {len(again.node)}"
        )
    with s.session(imported) as session:
        return s.check_same(s.run(session, built=imported), "the graph that was written and read again")


def carried(built: Built, message: Any) -> Built:
    """Returns the graph of a message, with the fetches, feeds and initializers of the one that it was written from."""
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(message, name="")
    return Built(
        graph,
        [],
        [graph.get_tensor_by_name(t.name) for t in built.fetches],
        {graph.get_tensor_by_name(t.name): x for t, x in built.feeds.items()},
        [graph.get_operation_by_name(op.name) for op in built.initializers],
    )
