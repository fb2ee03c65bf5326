"""The same graph on other devices."""

from __future__ import annotations

from timberframe_conformance.fuzz.build import build
from timberframe_conformance.fuzz.subject import Subject, oracle


@oracle("placement")
def placement(s: Subject) -> int:
    """Nodes placed freely, all on the host, and alternately on the host: only rounding may differ."""
    placements = {"free": lambda step, i: "", "on the host": lambda step, i: "host"}
    if s.host is not None:
        placements["alternately on the host"] = lambda step, i: ("host", step.device)[i % 2]
    count = 0
    for what, choose in placements.items():
        built = build(s.program.placed(choose), s.target.spec)
        with s.session(built) as session:
            for _ in range(2):
                count += s.check_close(s.run(session, built=built), f"with all nodes {what}")
    return count


@oracle("one thread")
def one_thread(s: Subject) -> int:
    """Without threads in and between kernels the bits are the same."""
    with s.session(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1) as session:
        return s.check_same(s.run(session), "with one thread")
