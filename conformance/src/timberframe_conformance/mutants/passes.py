"""Bugs in passes, and in how they are run."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

from timberframe_conformance.case import NotApplicableError
from timberframe_conformance.mutants.base import seam_mutant
from timberframe_conformance.replacements import Replacements
from timberframe_core.compiler.counters import Counter
from timberframe_core.compiler.passes import cover, merge, pipeline
from timberframe_core.compiler.passes.rewriter import ClusterRewriter, ProgramRewriter
from timberframe_core.compiler.passes.simplify import SIMPLIFY
from timberframe_core.plugin.fusion import FUSED
from timberframe_core.plugin.passes import PassRegistry
from timberframe_ops.passes import hoist, narrow, pads, powers, sink, weights
from timberframe_ops.passes.dense import arrays, lists
from timberframe_ops.passes.raising import branches, loops
from timberframe_ops.passes.raising.scope import Scope

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

    _run_instead(r, "cse", merges)


def _run_instead(r: Replacements, name: str, run: Any) -> None:
    """Lets a pass do something else."""

    def make(selected: Any) -> Any:
        def other(*given: Any) -> Any:
            return [dataclasses.replace(p, run=run) if p.name == name else p for p in selected(*given)]

        return other

    r.replace(PassRegistry, "selected", make)


@seam_mutant("leaves-out-order", "the pass simplify leaves out nodes whatever they wait for", SUITE)
def _(r: Replacements, target: Any) -> None:
    def leaves_out(rewriter: Any) -> None:
        for node in rewriter.nodes:
            if node.op.passes_through:
                node.control = []
        SIMPLIFY.run(rewriter)

    _run_instead(r, "simplify", leaves_out)


@seam_mutant("cube-is-fourth", "the pass powers computes the fourth power for the third", SUITE)
def _(r: Replacements, target: Any) -> None:
    r.replace(powers, "_CHAINS", lambda chains: {**chains, 3: chains[4]})


@seam_mutant("one-power-for-all", "the pass powers takes the first of several exponents for all", SUITE)
def _(r: Replacements, target: Any) -> None:
    def first(x: Any) -> float:
        value = x.node.attrs["value"] if x.node.op.role == "constant" else None
        return float(value.flat[0]) if value is not None and value.size else float("nan")

    r.replace(powers, "_scalar", lambda _: first)


@seam_mutant("pads-with-zeros-alone", "the pass pads puts zeros where the border mirrors the image", SUITE)
def _(r: Replacements, target: Any) -> None:
    def zeros(rewriter: Any) -> None:
        for node in rewriter.nodes:
            if node.op.name == "MirrorPad":
                inputs, types = rewriter.inputs(node), {n: node.attrs[n] for n in ("T", "Tpaddings")}
                made = rewriter.create("Pad", inputs, types, like=node)
                rewriter.insert(made, node)
                rewriter.replace(node.outputs[0], made.outputs[0])
                rewriter.erase(node)

    _run_instead(r, "pads", zeros)


@seam_mutant("pads-exchanged", "the pass pads exchanges the amounts before and after", SUITE)
def _(r: Replacements, target: Any) -> None:
    def make(amounts: Any) -> Any:
        def exchanged(x: Any) -> Any:
            found = amounts(x)
            return None if found is None else found[..., ::-1]

        return exchanged

    r.replace(pads, "_amounts", make)


@seam_mutant("first-weights-for-all", "the pass hoist takes the first rows of weights for the last ones", SUITE)
def _(r: Replacements, target: Any) -> None:
    r.replace(weights, "_constant_rows", lambda rows: lambda x, begin, end: rows(x, 0, end - begin))


@seam_mutant("bias-forgotten", "the pass hoist leaves the bias out of the product before the loop", SUITE)
def _(r: Replacements, target: Any) -> None:
    def make(read: Any) -> Any:
        return lambda loop, product, *given: read(loop, dataclasses.replace(product, bias=None), *given)

    r.replace(hoist, "_read", make)


@seam_mutant("kept-by-iteration", "the pass sink keeps rows in the order of iterations, whichever they read", SUITE)
def _(r: Replacements, target: Any) -> None:
    def make(keep: Any) -> Any:
        def in_order(loop: Any, found: Any, x: Any) -> Any:
            count = next(v for v in loop.body.cluster.inputs if loop.counters.of(v) == Counter(0, 1))
            return keep(loop, dataclasses.replace(found, row=dataclasses.replace(found.row, index=count)), x)

        return in_order

    r.replace(sink, "_keep", make)


@seam_mutant("sums-begin-at-zero", "the pass sink forgets what a sum begins with", SUITE)
def _(r: Replacements, target: Any) -> None:
    r.replace(sink, "_start", lambda _: lambda *given: None)


@seam_mutant("first-columns-for-all", "the pass narrow keeps the first columns for those that are read", SUITE)
def _(r: Replacements, target: Any) -> None:
    def make(columns: Any) -> Any:
        def first(*given: Any) -> Any:
            found = columns(*given)
            return None if found is None else range(len(found))

        return first

    r.replace(narrow, "_columns", make)


@seam_mutant("covered-inputs-exchanged", "the pass cover exchanges the last two inputs of the nodes", SUITE, "patterns")
def _(r: Replacements, target: Any) -> None:
    if not target.device.kernels.covering(target.device.type):
        raise NotApplicableError("the device has no kernel for several nodes")

    def make(covered: Any) -> Any:
        def exchanged(*given: Any) -> Any:
            node = covered(*given)
            if len(node.inputs) > 3 and node.inputs[-1].shape == node.inputs[-2].shape:
                node.inputs[-2:] = node.inputs[:-3:-1]
            return node

        return exchanged

    r.replace(cover, "_covered", make)


@seam_mutant("branches-exchanged", "the pass functionalize takes the branch of true for that of false", SUITE)
def _(r: Replacements, target: Any) -> None:
    def make(add_if: Any) -> Any:
        def exchanged(scope: Any, name: str, pred: Any, bodies: Any, values: Any, waits: Any) -> Any:
            return add_if(scope, name, pred, bodies[::-1], [(t, found[::-1]) for t, found in values], waits)

        return exchanged

    r.replace(branches, "add_if", make)


@seam_mutant("results-of-a-loop-exchanged", "the pass functionalize gives a loop's results in the other order", SUITE)
def _(r: Replacements, target: Any) -> None:
    def make(leave: Any) -> Any:
        def exchanged(self: Any, made: Any) -> None:
            self.variables.reverse()
            leave(self, made)

        return exchanged

    r.replace(loops._Loop, "_leave", make)


@seam_mutant("accesses-in-any-order", "the pass functionalize reads references before updates that come first", SUITE)
def _(r: Replacements, target: Any) -> None:
    r.replace(Scope, "waits", lambda _: lambda *given: [])


@seam_mutant("first-row-for-all", "the pass dense_lists reads the first row whatever the index", SUITE)
def _(r: Replacements, target: Any) -> None:
    def first(b: Any, op: Any, inputs: Any) -> Any:
        return lists._get_item(b, op, [inputs[0], b.constant(0), inputs[2]])

    r.replace(lists, "RULES", lambda rules: {**rules, "TensorListGetItem": first})


@seam_mutant("rows-forgotten", "the pass dense_lists forgets the rows that were written before", SUITE)
def _(r: Replacements, target: Any) -> None:
    def forgets(b: Any, op: Any, inputs: Any) -> Any:
        given = inputs[0]
        if given.tensor is not None:
            given = dataclasses.replace(given, tensor=b.zeros(given.tensor.static_shape, given.storage))
        return lists._set_item(b, op, [given, *inputs[1:]])

    r.replace(lists, "RULES", lambda rules: {**rules, "TensorListSetItem": forgets})


@seam_mutant("array-in-its-own-order", "the pass dense_lists puts rows into an array whatever their indices", SUITE)
def _(r: Replacements, target: Any) -> None:
    r.replace(arrays, "_all_rows", lambda _: lambda *given: True)


@seam_mutant("array-is-read-again", "the pass dense_lists reads elements of an array that were cleared", SUITE)
def _(r: Replacements, target: Any) -> None:
    r.replace(arrays.Array, "read_by", lambda _: lambda self, op: None)


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
