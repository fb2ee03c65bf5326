"""Pipeline: the passes of a session, run over programs, bodies and clusters alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from timberframe_core.compiler.drawn_order import draw_order
from timberframe_core.compiler.ir import Output, Program, Subgraph
from timberframe_core.compiler.passes.graph_rewriter import GraphRewriter
from timberframe_core.compiler.passes.rewriter import ClusterRewriter, ProgramRewriter
from timberframe_core.compiler.planned_values import find_host_values
from timberframe_core.compiler.state import order_accesses, resolve_handles
from timberframe_core.errors import InternalError, OpError
from timberframe_core.fallback import attempt, report_failure
from timberframe_core.plugin.contracts import Cluster, Device, Executable, KernelNode
from timberframe_core.plugin.nodes import role
from timberframe_core.plugin.passes import GRAPH_PHASES, PHASES, Pass
from timberframe_core.shapes import StaticShape


@dataclass(frozen=True)
class PassReport:
    """What a pass did. rewritten: names of the nodes that it erased or put others in place of.

    failure: what it raised, for which it was left out; else empty. declined: nodes that it could have rewritten, each
    with the reason why it did not.
    """

    name: str
    rewritten: tuple[str, ...]
    failure: str = ""
    declined: tuple[tuple[str, str], ...] = ()


class Pipeline:
    """Passes in their order. devices: those of the session, best first. order_seed: draws the order of nodes."""

    def __init__(
        self, passes: Sequence[Pass] = (), devices: Sequence[Device] = (), order_seed: int | None = None
    ) -> None:
        self._order_seed = order_seed
        self._devices = devices
        self._phases = {phase: [p for p in passes if p.phase == phase] for phase in PHASES}

    def rewrite_graph(
        self, subgraph: Subgraph, reports: list[PassReport], shapes: Sequence[StaticShape] | None = None
    ) -> Subgraph:
        """Rewrites the graph of a run or of a function; shapes: those of its feeds, where these are known.

        Errors of the graph are raised. reports: gets what each pass did.
        """
        for p in self._phases["graph" if shapes is None else "fed_graph"]:
            rewriter = GraphRewriter(subgraph, shapes)
            reports.append(_run(p, rewriter, rewriter.commit))
            subgraph = rewriter.subgraph
        return subgraph

    def has(self, phase: str) -> bool:
        """Returns whether there is a pass of a phase."""
        return bool(self._phases[phase])

    def prepare(
        self,
        program: Program,
        place: Callable[[Program], object],
        reports: list[PassReport],
        any_size: bool = False,
    ) -> set[Output]:
        """Rewrites a program before and after `place` gives its nodes devices; returns the values that planning needs.

        reports: gets what each pass did. any_size: see `find_host_values`.
        """
        resolve_handles(program)
        self._rewrite(program, "program", reports)
        order_accesses(program)
        needed = find_host_values(program, any_size)
        place(program)
        if self._rewrite(program, "placed", reports):
            needed = find_host_values(program, any_size)
        if self._order_seed is not None:
            draw_order(program, self._order_seed)
        return needed

    def _rewrite(self, program: Program, phase: str, reports: list[PassReport]) -> bool:
        """Runs the passes of a phase; whether any of them changed the program."""
        changed = False
        for p in self._phases[phase]:
            rewriter = ProgramRewriter(program, self._devices)
            report = _run(p, rewriter, rewriter.commit)
            changed = changed or (rewriter.changed and not report.failure)
            reports.append(report)
        return changed

    def compile(self, cluster: Cluster, reports: list[PassReport]) -> tuple[Cluster, Executable]:
        """Rewrites a cluster, with the bodies in it, and has its device compile it.

        Where the device cannot compile what the passes made, it compiles what was there before.
        """
        made: list[PassReport] = []
        rewritten = self._rewrite_cluster(cluster, made)
        reports.extend(made)
        compile_ = cluster.device.compile
        if rewritten is cluster:
            return cluster, compile_(cluster)
        passes = ", ".join(dict.fromkeys(f"'{r.name}'" for r in made if r.rewritten))
        return attempt(
            f"what the passes {passes} made",
            lambda: (rewritten, compile_(rewritten)),
            lambda: (cluster, compile_(cluster)),
            errors=True,
        )

    def _rewrite_cluster(self, cluster: Cluster, reports: list[PassReport]) -> Cluster:
        if not self._phases["cluster"]:
            return cluster
        for p in self._phases["cluster"]:
            rewriter = ClusterRewriter(cluster)
            reports.append(_run(p, rewriter, rewriter.commit))
            cluster = rewriter.cluster
        nodes = [self._rewrite_bodies(node, reports) for node in cluster.nodes]
        if any(a is not b for a, b in zip(nodes, cluster.nodes, strict=True)):
            cluster = replace(cluster, nodes=nodes, source=cluster.source or cluster)
        return cluster

    def _rewrite_bodies(self, node: KernelNode, reports: list[PassReport]) -> KernelNode:
        """Returns a loop or branch with its bodies rewritten.

        What a pass has made one node stays as its kernel knows it.
        """
        if role(node.op) is None:
            return node
        inner = tuple(self._rewrite_cluster(c, reports) for c in node.inner)
        same = all(a is b for a, b in zip(inner, node.inner, strict=True))
        return node if same else replace(node, inner=inner)


def merged(reports: Iterable[PassReport]) -> tuple[PassReport, ...]:
    """Returns one report for each pass."""
    found: dict[str, PassReport] = {}
    for r in reports:
        before = found.get(r.name, PassReport(r.name, ()))
        found[r.name] = PassReport(
            r.name, (*before.rewritten, *r.rewritten), before.failure or r.failure, (*before.declined, *r.declined)
        )
    return tuple(found.values())


def _run(p: Pass, rewriter: Any, commit: Callable[[], None]) -> PassReport:
    """Runs one pass and makes its changes, or none where it or they fail, which is reported."""
    try:
        p.run(rewriter)
    except Exception as error:
        if p.phase in GRAPH_PHASES and isinstance(error, OpError) and not isinstance(error, InternalError):
            raise
        return _failed(p, error)
    try:
        if rewriter.changed:
            commit()
    except Exception as error:
        return _failed(p, error)
    return PassReport(p.name, tuple(rewriter.rewritten), declined=tuple(rewriter.declined))


def _failed(p: Pass, error: Exception) -> PassReport:
    report_failure(f"pass '{p.name}'", error)
    return PassReport(p.name, (), f"{type(error).__name__}: {error}")
