"""Proves the suite: each mutant must be noticed by the cases that should, and by no others."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from timberframe_conformance.case import FAILING, SKIPPED, Case, NotApplicableError, Result
from timberframe_conformance.collect import collect
from timberframe_conformance.commands import shortened
from timberframe_conformance.judge import judge_case
from timberframe_conformance.mutants import base
from timberframe_conformance.mutants.activate import activate, active
from timberframe_conformance.mutants.base import Mutant
from timberframe_conformance.mutants.catalogue import MUTANTS
from timberframe_conformance.mutants.strangers.base import Stranger
from timberframe_conformance.mutants.strangers.prove import prove_stranger
from timberframe_conformance.options import Options
from timberframe_conformance.runner import run
from timberframe_conformance.suites import networks, programs
from timberframe_conformance.target import Target
from timberframe_core.fallback import STRICT_VARIABLE
from timberframe_core.ops.definition import registry

SAMPLED = 120
"""Most cases of one suite that a mutant is tried with; they are evenly spaced."""
CONTROLS = 6
"""Number of cases in other dtypes that are run as well, and must pass."""
ISOLATED_TIMEOUT = 1.5
"""Seconds for a case of a mutant that never ends; others must not be taken for such on a busy machine."""
ISOLATED_CASES = 4


@dataclass
class Proof:
    """The result for a mutant. problems is empty if it was noticed as it should be.

    first, message: the first case that noticed, and what it says.
    """

    mutant: Mutant
    noticed: int = 0
    tried: int = 0
    first: str = ""
    message: str = ""
    problems: list[str] = field(default_factory=list)
    skipped: str = ""

    @property
    def caught(self) -> bool:
        return self.noticed > 0

    @property
    def ok(self) -> bool:
        return not self.problems


def prove(target: Target, mutant: Mutant, options: Options) -> Proof:
    """Runs the cases of the mutant's op with the mutant in place, and judges who noticed."""
    proof = Proof(mutant)
    os.environ.setdefault(STRICT_VARIABLE, "1")  # a rewrite that fails is noticed, as in `conformance run`
    if isinstance(mutant, Stranger):
        return prove_stranger(proof, mutant)
    if not mutant.of_seam and registry.find(mutant.op) is None:
        proof.skipped = f"op {mutant.op} is not registered"
        return proof
    cases = _cases(target, mutant, options)
    own = [c for c in cases if affects(mutant, c)]
    if not own:
        proof.skipped = _lacking(mutant)
        return proof
    if mutant.isolate:
        return _prove_isolated(target, mutant, options, own, proof)
    chosen = (own if mutant.of_seam else _sample(own)) + [c for c in cases if not affects(mutant, c)][:CONTROLS]
    base.BUILT.discard(mutant.name)
    try:
        with active(target, mutant.name):
            results = [judge_case(c, target) for c in chosen]
    except NotApplicableError as e:
        proof.skipped = str(e)
        return proof
    _judge(proof, results)
    if mutant.of_kernel and not (proof.caught or proof.skipped) and mutant.name not in base.BUILT:
        proof.skipped = "the device builds none of the kernels that are registered for it"
    return proof


def _cases(target: Target, mutant: Mutant, options: Options) -> list[Case]:
    from dataclasses import replace

    activate(target, mutant.name if mutant.covers else "")  # kernels for several nodes are what cases are made for
    target.forget()
    if mutant.of_seam:
        return list(collect(target, replace(options, ops=(), suites=mutant.suites)))
    if mutant.soak:
        soak = replace(options, ops=(mutant.op,), suites=mutant.suites, level="soak")
        return [c for c in collect(target, soak) if any(text in c.id for text in mutant.only)]  # others take longer
    found = list(collect(target, replace(options, ops=(mutant.op,), suites=())))
    if mutant.through:
        found += collect(target, replace(options, ops=mutant.through, suites=("gradient",)))
    return [c for c in found if c.suite not in (networks.SUITE, programs.SUITE)]  # which try what the others try


def affects(mutant: Mutant, case: Case) -> bool:
    """Returns whether the mutant's kernel, or gradient, runs in a case."""
    types = dict(case.types)
    if mutant.of_seam:
        return case.suite in mutant.suites and (not mutant.only or any(text in case.id for text in mutant.only))
    if mutant.of_gradient and case.suite != "gradient":
        return False
    return case.op in (mutant.op, *mutant.through) and all(types.get(name) in allowed for name, allowed in mutant.types)


def _lacking(mutant: Mutant) -> str:
    """Returns why no case can notice it."""
    if mutant.of_seam:
        return f"no case of {', '.join(mutant.suites)} that may notice applies to the device"
    return f"the device has no kernel of {mutant.op} in these dtypes"


def _sample(cases: Sequence[Case]) -> list[Case]:
    """At most SAMPLED cases of each suite, evenly spread."""
    result: list[Case] = []
    for suite in dict.fromkeys(c.suite for c in cases):
        own = [c for c in cases if c.suite == suite]
        step = max(1, -(-len(own) // SAMPLED))
        result += own[::step]
    return result


def _judge(proof: Proof, results: Sequence[Result]) -> None:
    mutant = proof.mutant
    noticing = [r for r in results if r.verdict in FAILING]
    proof.tried, proof.noticed = len(results), len(noticing)
    proof.first = noticing[0].id if noticing else ""
    suites = Counter(r.suite for r in noticing)
    ran = {r.suite for r in results if r.verdict not in SKIPPED and all(r.dtypes.get(n) in t for n, t in mutant.types)}
    if not ran.intersection(mutant.suites):
        proof.skipped = f"no case of {', '.join(mutant.suites)} applies to the device" if ran else _lacking(mutant)
        return
    for suite in mutant.suites:
        if suite in ran and not suites[suite]:
            proof.problems.append(f"no case of suite {suite} noticed")
    types = dict(mutant.types)
    for r in noticing:
        if any(r.dtypes.get(name) not in allowed for name, allowed in types.items()):
            proof.problems.append(f"{r.id} failed, though the mutant is no kernel of its dtypes")
        elif r.suite not in mutant.suites and r.suite not in mutant.also:
            proof.problems.append(f"{r.id} failed, and should not: {shortened(r.message, 200)}")
        elif mutant.only and not any(text in r.id for text in mutant.only):
            proof.problems.append(f"{r.id} failed, and should not")
        elif r.verdict != mutant.verdict:
            proof.problems.append(f"{r.id} is {r.verdict}; it should be {mutant.verdict}")
    del proof.problems[5:]


def _prove_isolated(target: Target, mutant: Mutant, options: Options, own: Sequence[Case], proof: Proof) -> Proof:
    from dataclasses import replace

    suites = tuple(s for s in mutant.suites)
    wanted = [c for c in own if c.suite in suites and c.dtype_label in _labels(mutant, c)][:ISOLATED_CASES]
    asked = replace(
        options,
        ops=(mutant.op,) if mutant.op else (),
        suites=suites,
        timeout=ISOLATED_TIMEOUT if mutant.verdict == "timeout" else options.timeout,
        mutant=mutant.name,
        ids=tuple(c.id for c in wanted),
    )
    done = run(target, asked, jobs=1)
    _judge(proof, done.results)
    return proof


def _labels(mutant: Mutant, case: Case) -> set[str]:
    return {case.dtype_label} if affects(mutant, case) else set()


def changed_mutants(files: Sequence[str]) -> list[str]:
    """Mutants whose declaration, or whose op's family, is among changed files."""
    stems = [f.rsplit("/", 1)[-1].rsplit(".", 1)[0] for f in files]
    found = []
    for name, m in MUTANTS.items():
        op = registry.find(m.op)
        homes = {m.bug.__module__.rsplit(".", 1)[-1]}
        if op is not None:
            homes.add(op.shape.__module__.rsplit(".", 1)[-1])
        if homes & set(stems):
            found.append(name)
    return found
