"""Puts random single faults into C sources and reports those that no case and no test notices.

python conformance/tools/source_mutants --count 20 --seed commit     what the CPU's kernels are compiled of
python conformance/tools/source_mutants --headers --count 5          the accelerators' headers, on OpenCL
python conformance/tools/source_mutants --again survived             those that survived, with every case
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from child import in_child
from faults import Fault, find_faults
from ledger import Judged, Ledger, Result
from trial import DEVICE_SUITES, NO_CASE, Trial, last_step, refused
from usage import Uses, record_ops, record_tests
from workshop import ACCELERATOR, CPU, HEADERS, ROOT, Workshop, digest, revision

Chosen = tuple[str, int, str, Fault]
"""Seed, number, file and fault."""

TESTS = CPU / "tests"
STAMPS: dict[tuple[str, bool], Path | str] = {
    ("ops", False): CPU / "src", ("tests", False): TESTS, ("ops", True): ACCELERATOR,
}  # fmt: skip
"""Files that a recording depends on: it is kept while they are as committed."""
HEADER_TESTS = "plugins/opencl/tests"
MOST_TESTS = 150
FRAME_TESTS = (
    "test_program.py", "test_control_flow.py", "test_random_programs.py", "test_fusion.py", "test_watched.py",
    "test_native.py", "test_device.py", "test_interruption.py", "test_compiled.py",
)  # fmt: skip
"""Tests for sources that hold no kernel."""


class Bench:
    """Everything that trials of one set of sources need; it is made once for a run of the tool."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.headers: bool = options.headers
        self.seconds: float = options.timeout
        self.thorough: bool = bool(options.again) or options.thorough
        self.workshop = Workshop(options.folder.resolve(), options.isa)
        self._log = self.workshop.folder / "trial.log"
        self._broken: set[str] = set()
        self.faults = [
            (str(path), fault)
            for path in self.workshop.sources(self.headers)
            for fault in find_faults(self.workshop.read(path))
            if options.match in f"{path}: {fault.text}"
        ]
        if not self.headers:
            refused = self.workshop.build()
            if refused:
                raise SystemExit(f"the sources do not compile without a fault:\n{refused}")
            self._plain = digest(self.workshop.module)
            self.workshop.make_stages()
        self._kernels = {} if self.headers else self.workshop.kernels()
        self._ops = self._known("ops", partial(record_ops, self.device, self._changed))
        self._tests = {} if self.headers else self._known("tests", partial(record_tests, self._changed, TESTS))

    @property
    def device(self) -> str:
        return "opencl" if self.headers else "cpu"

    @property
    def _changed(self) -> Path:
        """What the trials use in place of the checkout's: a folder of headers, or one with the CPU's package."""
        return (self.workshop.tree / HEADERS).resolve() if self.headers else self.workshop.stage

    def _known(self, what: str, record: partial[Uses]) -> Uses:
        """Returns the result of a recording, from its file unless a source has changed."""
        path = self.workshop.folder / f"{self.device}-{what}.json"
        stamp = revision(STAMPS[what, self.headers])
        if path.exists():
            kept: dict[str, Uses] = json.loads(path.read_text())
            if stamp in kept:
                return kept[stamp]
        print(f"recording which {what} use what", flush=True)
        found, ended = in_child(record, self.workshop.folder / f"{self.device}-{what}.log", 1800)
        if found is None:
            raise SystemExit(f"recording ended with {ended}; see {path.with_suffix('.log')}")
        path.write_text(json.dumps({stamp: found}))
        return dict(found)

    def choose(self, seed: str, number: int) -> tuple[str, Fault]:
        """Returns the fault of this number: its kind, and then one of that kind in any file."""
        rng = random.Random(f"{seed}/{number}")
        kind = rng.choice(sorted({fault.kind for _, fault in self.faults}))
        return rng.choice([(path, fault) for path, fault in self.faults if fault.kind == kind])

    def trial(self, path: str) -> Trial:
        """Returns what a fault in this file could change."""
        if self.headers:
            users = self._ops.get(str(Path(path).relative_to(HEADERS)), [])
            return Trial(self.device, self._changed, frozenset(users), (HEADER_TESTS,), self.thorough)
        kernels = self._kernels.get(path, [])
        serving = {user for kernel in kernels for user in self._ops.get(kernel, [])}
        tests = sorted({test for kernel in kernels for test in self._tests.get(kernel, [])} - set(self._tests[""]))
        chosen = tests if self.thorough else tests[:: max(1, -(-len(tests) // MOST_TESTS))]
        if not kernels:
            chosen = [str(TESTS / name) for name in FRAME_TESTS]
        skip = frozenset(self._broken)
        return Trial(self.device, self._changed, frozenset(serving), tuple(chosen), self.thorough, skip=skip)

    def run(self, seed: str, number: int, path: str, fault: Fault, judged: Judged) -> Result:
        """Puts the fault in, builds and tries."""
        start = time.monotonic()
        result = Result(seed, number, path, fault, "survived")
        reason = judged.reason(path, fault)
        if reason:
            result.verdict, result.by = "equivalent", reason
            return result
        with self.workshop.fault_in(Path(path), fault):
            self._try(result)
        result.seconds = round(time.monotonic() - start, 1)
        return result

    def _try(self, result: Result) -> None:
        if not self.headers:
            if self.workshop.build(changed=True) is not None:
                result.verdict = "invalid"
                return
            if digest(self.workshop.module) == self._plain:
                result.verdict = "equal"
                return
        trial = self.trial(result.file)
        found, ended = in_child(trial, self._log, self.seconds)
        while found is not None and self._fails_without(found["by"], trial):
            self._broken.add(found["by"])
            trial = self.trial(result.file)
            found, ended = in_child(trial, self._log, self.seconds)
        if found is None:
            timed_out = ended.startswith("timeout")
            result.verdict = "unfinished" if timed_out else "killed"
            result.by = f"{last_step(self._log)} ({ended})"
            return
        result.by = found.pop("by")
        result.verdict = "invalid" if refused(found) else "killed" if result.by else "survived"
        result.details = found

    def _fails_without(self, by: str, trial: Trial) -> bool:
        """Returns whether a case of DEVICE_SUITES, after those before it, or a test fails here without a fault, too."""
        is_test = ".py::" in by
        if self.headers or by in self._broken or not (is_test or by.startswith(tuple(DEVICE_SUITES))):
            return False
        what = {"tests": (by,), "last": NO_CASE} if is_test else {"tests": (), "last": by}
        plain = dataclasses.replace(trial, changed=self.workshop.plain, **what)
        found, _ = in_child(plain, self.workshop.folder / "plain.log", self.seconds)
        return found is None or bool(found["by"])


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="source_mutants", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", default="1", help="any text; 'commit' is the checked-out commit")
    parser.add_argument("--count", type=int, default=20, help="faults to try, without judged, equal, invalid ones")
    parser.add_argument("--match", default="", help="only lines with this in ``path: text``")
    parser.add_argument("--headers", action="store_true", help="the accelerators' headers, on OpenCL")
    parser.add_argument("--isa", default="scalar", help="instruction set of the CPU's kernels")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for the cases and tests of one fault")
    parser.add_argument("--thorough", action="store_true", help="every case and test of the ops, not a part of them")
    parser.add_argument("--again", default="", help="tries the faults with this verdict, or SEED/NUMBER, once more")
    parser.add_argument("--folder", type=Path, default=ROOT / CPU / "build/source_mutants", help="where all is built")
    parser.add_argument("--results", type=Path, help="the file that runs add to; results.json in the folder")
    options = parser.parse_args(arguments)
    if options.seed == "commit":
        options.seed = revision("")[:10]
    options.seed += "-headers" * options.headers + (f"-{options.match}" if options.match else "")
    return options


def main() -> int:
    """Tries the faults; status 1 where one survived that is not judged."""
    options = parse()
    ledger, judged = Ledger(options.results or options.folder / "results.json"), Judged()
    bench = Bench(options)
    survived = 0
    for seed, number, path, fault in _repeat(options, bench, ledger) if options.again else _new(options, bench, ledger):
        result = bench.run(seed, number, path, fault, judged)
        ledger.add(result)
        survived += result.verdict in ("survived", "unfinished")
        print(result.line(), f"{result.seconds:.0f} s", flush=True)
    print(ledger.summary())
    return 1 if survived else 0


def _new(options: argparse.Namespace, bench: Bench, ledger: Ledger) -> Iterator[Chosen]:
    known, done, number = ledger.numbers(options.seed), 0, 0
    while done < options.count:
        number += 1
        if number not in known:
            yield options.seed, number, *bench.choose(options.seed, number)
            done += ledger.results[-1].verdict not in ("equal", "invalid", "equivalent")


def _repeat(options: argparse.Namespace, bench: Bench, ledger: Ledger) -> Iterator[Chosen]:
    """Yields the chosen faults that are still in the sources, even if on another line."""
    now = {(path, f.text, f.column, f.before, f.after): f for path, f in bench.faults}
    for r in [r for r in ledger.results if options.again in (r.verdict, f"{r.seed}/{r.number}")]:
        fault = now.get((r.file, r.fault.text, r.fault.column, r.fault.before, r.fault.after))
        if fault is None:
            print(f"{r.seed}/{r.number} is no longer in {r.file}")
        else:
            yield r.seed, r.number, r.file, fault


if __name__ == "__main__":
    sys.exit(main())
