"""Bugs in passes, and in how they are run."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

from timberframe_conformance.case import NotApplicableError
from timberframe_conformance.mutants.base import seam_mutant
from timberframe_conformance.replacements import Replacements
from timberframe_core.compiler.passes import merge, pads, pipeline
from timberframe_core.compiler.passes.rewriter import ClusterRewriter, ProgramRewriter
from timberframe_core.plugin.fusion import FUSED
from timberframe_core.plugin.passes import PassRegistry

SUITE = "passes"


@seam_mutant("merges-attrs", "the pass cse merges nodes of equal op and inputs though their attrs differ", SUITE)
def _(r: Replacements, target: Any) -> None:
    def make(key: Any) -> Any:
        def without_attrs(node: Any, inputs: Any) -> Any:
            if node.op.role == "constant":
                return key(node, inputs)
            return node.op.name, node.requested, node.colocation, tuple(inputs), len(node.outputs)

        return without_attrs

    r.replace(merge, "_key", make)


@seam_mutant("merges-in-any-order", "the pass cse merges nodes whose inputs are exchanged, whatever the op", SUITE)
def _(r: Replacements, target: Any) -> None:
    def make(key: Any) -> Any:
        return lambda node, inputs: key(node, sorted(inputs, key=id))

    r.replace(merge, "_key", make)


@seam_mutant("folds-first", "the pass fold puts the value of a node's first output in the place of all", SUITE)
def _(r: Replacements, target: Any) -> None:
    def make(constant: Any) -> Any:
        def first(self: Any, value: Any, like: Any) -> Any:
            same = vars(self).setdefault("first", {}).setdefault(like.node, value)
            return constant(self, same if same.shape == value.shape and same.dtype == value.dtype else value, like)

        return first

    r.replace(ProgramRewriter, "constant", make)


@seam_mutant("drops-control-edges", "a pass that changes a program loses control edges", SUITE)
def _(r: Replacements, target: Any) -> None:
    def make(commit: Any) -> Any:
        def loses(self: Any) -> None:
            commit(self)
            for node in self._program.nodes:
                if not node.op.stateful:
                    node.control = []

        return loses

    r.replace(ProgramRewriter, "commit", make)


@seam_mutant("merges-draws", "the pass cse merges nodes that draw random numbers", SUITE)
def _(r: Replacements, target: Any) -> None:
    def merges(rewriter: Any) -> None:
        first: dict[Any, Any] = {}
        for node in rewriter.nodes:
            if node.op.stream is not None:
                known = first.setdefault((node.op.name, node.outputs[0].static_shape), node)
                rewriter.replace(node.outputs[0], known.outputs[0])

    def make(selected: Any) -> Any:
        def other(*given: Any) -> Any:
            return [dataclasses.replace(p, run=merges) if p.name == "cse" else p for p in selected(*given)]

        return other

    r.replace(PassRegistry, "selected", make)


@seam_mutant("pads-exchanged", "the pass pads exchanges the amounts before and after", SUITE)
def _(r: Replacements, target: Any) -> None:
    def make(amounts: Any) -> Any:
        def exchanged(x: Any) -> Any:
            found = amounts(x)
            return None if found is None else found[..., ::-1]

        return exchanged

    r.replace(pads, "_amounts", make)


@seam_mutant("half-a-pass", "what a pass recorded before it failed is done, and no error is raised", SUITE)
def _(r: Replacements, target: Any) -> None:
    def run(p: Any, rewriter: Any, commit: Any) -> Any:
        with contextlib.suppress(Exception):
            p.run(rewriter)
        if rewriter.changed:
            with contextlib.suppress(Exception):
                commit()
        return pipeline.PassReport(p.name, tuple(rewriter.rewritten), declined=tuple(rewriter.declined))

    r.replace(pipeline, "_run", lambda _: run)


@seam_mutant("fused-inputs-exchanged", "the pass fuse exchanges the inputs of a Sub", SUITE)
def _(r: Replacements, target: Any) -> None:
    if target.device.fusion is None:
        raise NotApplicableError("the device runs every node by itself")

    def make(commit: Any) -> Any:
        def exchanged(self: Any) -> None:
            commit(self)
            for node in self.cluster.nodes:
                for inner in node.inner if node.op == FUSED else ():
                    for part in inner.nodes:
                        if part.op == "Sub":
                            part.inputs.reverse()

        return exchanged

    r.replace(ClusterRewriter, "commit", make)
