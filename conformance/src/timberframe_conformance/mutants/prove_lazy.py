"""Proves that suites find lazy kernels: for each op, in each level that has cases of it."""

from __future__ import annotations

import functools
import json
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files

from rich.console import Console
from rich.markup import escape

from timberframe_conformance.case import FAILING, LEVELS, SKIPPED, Case
from timberframe_conformance.cases.trials import Trial, trial_of
from timberframe_conformance.cases.weaknesses import COPIES, MOST_EVALUATED, ZEROS, input_size, weaknesses
from timberframe_conformance.commands import open_device, parse_share
from timberframe_conformance.judge import judge_case
from timberframe_conformance.mutants.activate import planted
from timberframe_conformance.mutants.base import BUILT
from timberframe_conformance.mutants.lazy import DROPPED, EXCEPTIONS, LAZY_KERNELS, LazyKernel
from timberframe_conformance.options import Options, in_share
from timberframe_conformance.suites import SUITES
from timberframe_conformance.suites.aliasing import makes_results
from timberframe_conformance.suites.choice import has_kernel, trials_in
from timberframe_conformance.target import REFERENCE, Target
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef

MOST_TRIED = 12
"""Cases of one suite, op and level that a lazy kernel is tried with."""


NO_ERROR = "no error of the op is a kernel's"
NO_CASE = "no case of the suite applies"
NO_KERNEL = "the core carries the op out"
NO_OUTPUT = "the op has no outputs"
STREAM = "each run of the op draws other numbers"
NO_DATA = "no input of the op is data"
NO_RESULT = "no other node makes what the op takes, such as strings"
NO_FAULTS = frozenset({NO_ERROR, NO_KERNEL, NO_OUTPUT, COPIES, ZEROS})
"""Excuses of kernels that do what they should: copies are what the op gives, and others raise its errors."""


WITHOUT_EXCEPTION = LEVELS[:2]
"""Levels whose suites find every lazy kernel of each op."""


@dataclass(frozen=True)
class Finding:
    """Whether a suite finds a lazy kernel of an op by its cases of a level.

    found: the id of the first case that does. excuse: why none need do so. tried: how many cases were run.
    """

    kernel: str
    suite: str
    op: str
    level: str
    found: str = ""
    excuse: str = ""
    tried: int = 0

    @property
    def name(self) -> str:
        """Kernel, op, suite and level, as the list of exceptions has them."""
        return f"{self.kernel} of {self.op}, by {self.suite} in {self.level}"

    def __str__(self) -> str:
        why = f": {self.excuse}" if self.excuse else ""
        return f"{self.kernel} of {self.op}, by {self.tried} cases of {self.suite} in level {self.level}{why}"

    @property
    def is_missed(self) -> bool:
        """Whether it must be found, and is not: in the levels of WITHOUT_EXCEPTION for no reason."""
        return not self.found and (not self.excuse or (self.is_exception and self.level in WITHOUT_EXCEPTION))

    @property
    def is_exception(self) -> bool:
        """Whether a kernel that is wrong is not found, for a reason."""
        return not self.found and self.excuse not in NO_FAULTS


def print_lazy(console: Console) -> int:
    """Prints the lazy kernels with the suites that must find them."""
    for k in LAZY_KERNELS.values():
        console.print(f"{k.name}: {k.what} ({', '.join(k.suites)})", highlight=False)
    return 0


def report_lazy(options: Options, share: str, console: Console) -> int:
    """Plants lazy kernels into each op of a share; status 0 when none is missed, and those excused are the listed ones.

    options: of the device whose kernels they replace; that of the references, which the list of exceptions is of,
    where they name none.
    """
    start = time.perf_counter()
    target = open_device(options if options.device else Options(REFERENCE))
    of_share = parse_share(share) if share else (0, 1)
    ops = [op for op in registry.all_ops() if in_share(op.name, of_share)]
    findings = list[Finding]()
    for finding in prove_lazy(target, ops):
        findings.append(finding)
        if finding.is_missed:
            console.print(f"[red]missed[/]  {escape(str(finding))}", highlight=False)
    wrong = [] if options.device else list(differs_from_list(findings, {op.name for op in ops}))
    for text in wrong:
        console.print(f"[red]{escape(text)}[/]", highlight=False)
    excused = [f for f in findings if f.is_exception and not f.is_missed]
    for reason, count in Counter(f.excuse for f in excused).most_common():
        console.print(f"[dim]not found[/]  {count} times: {escape(reason)}", highlight=False)
    missed = sum(f.is_missed for f in findings)
    console.print(
        f"{sum(bool(f.found) for f in findings)} lazy kernels found, {len(excused)} not found for a reason, "
        f"{missed} missed, in {time.perf_counter() - start:.1f} s",
        highlight=False,
    )
    return 1 if missed or wrong else 0


EXCEPTIONS_FILE = "lazy_exceptions.json"


@functools.cache
def listed() -> dict[str, str]:
    """Returns the lazy kernels that the reference device's cases do not find, each with the reason.

    `conformance/tools/lazy_exceptions.py` writes the list.
    """
    text = (files("timberframe_conformance") / "data" / EXCEPTIONS_FILE).read_text(encoding="utf-8")
    return {name: reason for reason, names in json.loads(text).items() for name in names}


def differs_from_list(findings: Sequence[Finding], ops: Collection[str]) -> Iterator[str]:
    """Yields the exceptions among findings on some ops that the list has not, and those that it alone has."""
    now = {f.name: f.excuse for f in findings if f.is_exception and not f.is_missed}
    before = {name: reason for name, reason in listed().items() if name.split(" of ", 1)[1].split(",")[0] in ops}
    for name, reason in now.items():
        if before.get(name) != reason:
            yield f"not in data/{EXCEPTIONS_FILE}: {name}: {reason}"
    for name in before.keys() - now.keys():
        yield f"no exception any more, but in data/{EXCEPTIONS_FILE}: {name}"


def prove_lazy(target: Target, ops: Sequence[OpDef], suites: Sequence[str] = ()) -> Iterator[Finding]:
    """Plants each lazy kernel into each op's kernel and runs the cases of the suites that must find it."""
    for op in filter(has_kernel, ops):
        for suite in suites or SUITES:
            kernels = [k for k in LAZY_KERNELS.values() if suite in k.suites]
            by_level: dict[str, list[Case]] = {}
            for case in SUITES[suite](target, [op]) if kernels else ():
                if case.op == op.name and trial_of(case) is not None:
                    by_level.setdefault(case.level, []).append(case)
            for level, cases in by_level.items():
                cases.sort(key=_weakness)
                for kernel in kernels:
                    yield _find(target, kernel, op, suite, level, cases[:MOST_TRIED])


def _weakness(case: Case) -> tuple[int, int]:
    """Returns the key that sorts cases: those that show most come first, and of these the quickest."""
    trial = trial_of(case)
    assert trial is not None
    return len(weaknesses(trial)), input_size(trial)


def _find(target: Target, kernel: LazyKernel, op: OpDef, suite: str, level: str, cases: Sequence[Case]) -> Finding:
    mutant = kernel.mutant(op.name)
    DROPPED.clear()
    BUILT.discard(mutant.name)
    ran = 0
    with planted(target, mutant):
        for tried, case in enumerate(cases, 1):
            result = judge_case(case, target)
            if result.verdict in FAILING:
                return Finding(kernel.name, suite, op.name, level, found=case.id, tried=tried)
            ran += result.verdict not in SKIPPED
    trials = [t for case in cases if (t := trial_of(case)) is not None]
    excuse = NO_CASE if not ran else NO_KERNEL if mutant.name not in BUILT else _excuse(kernel, trials)
    return Finding(kernel.name, suite, op.name, level, excuse=excuse, tried=len(cases))


def _excuse(kernel: LazyKernel, trials: Sequence[Trial]) -> str:
    """Returns why a kernel need not be found: it does what it should, or all samples of the op lack what would show it.

    Of a suite that tries calls of networks alone these are all samples.
    """
    op = trials[0].op
    if kernel.name == "drops-error":
        return "" if DROPPED else NO_ERROR
    if not op.outputs:
        return NO_OUTPUT
    if op.stream is not None:
        return STREAM
    if not any(op.input_role(a) == "data" for a in op.inputs):
        return NO_DATA
    if kernel.name == "writes-result" and not any(map(makes_results, trials)):
        return NO_RESULT
    if (kernel.name, op.name) in EXCEPTIONS:
        return EXCEPTIONS[kernel.name, op.name]
    others = [] if all(t.asked_by for t in trials) else trials_in(op, trials[0].types)
    every = [t for t in (*trials, *others) if input_size(t) <= MOST_EVALUATED]
    found = [set(weaknesses(t)).intersection(kernel.excuses) for t in every]
    return min(found[0]) if found and all(found) else ""
