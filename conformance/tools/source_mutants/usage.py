"""Which ops and which of the plugin's tests use a kernel, or a header: found by building every kernel once."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from trial import take

from timberframe_conformance.cases.trials import Trial, fits, samples_of
from timberframe_conformance.cases.weaknesses import input_size
from timberframe_conformance.cluster import one_node
from timberframe_conformance.collect import collect
from timberframe_conformance.drive import flatten
from timberframe_conformance.judge import judge_case
from timberframe_conformance.options import Options
from timberframe_conformance.suites.forward import is_callable, supported
from timberframe_conformance.target import open_target
from timberframe_core.dtypes import resource
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef

T = TypeVar("T")
MOST = 24
"""Most samples of an op in one dtype that are built; the choice of kernel depends on shapes and attrs."""
LARGEST = 50_000
"""Most elements of the inputs of such a sample."""

Uses = dict[str, list[str]]
_INCLUDE = re.compile(r"#include <(timberframe/accelerator/\w+\.h)>")


class _Recorder:
    """Collects for each name (kernel or header) who used it."""

    def __init__(self) -> None:
        self.user = ""
        self.found: defaultdict[str, set[str]] = defaultdict(set)

    def watch_kernels(self) -> None:
        from timberframe_cpu import native

        find = native.find

        def watched(name: str, isa: str) -> Any:
            self.found[name].add(self.user)
            return find(name, isa)

        native.find = watched  # type: ignore[assignment]  # the same calls

    def watch_headers(self, device: Any, folder: Path) -> None:
        """Compiles nothing: which headers a source includes follows from its text.

        `function` and not `build`, which only the first op that uses a source calls.
        """

        def watched(_: Any, source: Any, name: str) -> Any:
            for header in _closure(source.whole(), folder):
                self.found[header].add(self.user)
            return lambda *arguments: None

        type(device).function = watched

    def uses(self) -> Uses:
        return {name: sorted(users - {""}) for name, users in self.found.items()}


def _closure(source: str, folder: Path) -> set[str]:
    """Returns the accelerators' headers that a source includes, and those that these include."""
    found: set[str] = set()
    waiting = _INCLUDE.findall(source)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _INCLUDE.findall((folder / name).read_text())
    return found


def record_ops(device: str, changed: Path, ops: Sequence[OpDef] = ()) -> Uses:
    """Kernels (on the CPU) or headers with the ops and dtypes, as ``Op/float32``, that use them. ops: () for all."""
    take(device, changed)
    target = open_target(Options(device))
    recorder = _Recorder()
    if device == "cpu":
        recorder.watch_kernels()
    else:
        recorder.watch_headers(target.device, changed)
    for op in ops or registry.all_ops():
        print(op.name, flush=True)
        if any(a.dtype is resource for a in op.inputs):
            cases = list(collect(target, Options(device, ops=(op.name,), suites=("forward",))))
            for case in _spaced(cases):
                recorder.user = f"{op.name}/{case.dtype_label}"
                judge_case(case, target)
            continue
        if not is_callable(op):
            continue
        for types in (t for group in supported(op, target)[0].values() for t in group):
            recorder.user = f"{op.name}/" + (",".join(t for _, t in types) or "-")
            trials = [Trial(op, types, s, k) for k, s in enumerate(samples_of(op)) if fits(op, s, types)]
            for trial in _spaced([t for t in trials if input_size(t) <= LARGEST]):
                _compile(target, trial)
    return recorder.uses()


def _spaced(things: Sequence[T]) -> Sequence[T]:
    """At most MOST items, evenly spaced."""
    return things[:: max(1, -(-len(things) // MOST))]


def _compile(target: Any, trial: Trial) -> None:
    try:
        arrays = trial.arrays("coverage")
        target.device.compile(one_node(target.device, trial.op, trial.attrs(arrays), flatten(arrays))[0])
    except Exception:
        return  # a kernel that cannot be built serves no op


class _TestRecorder:
    """A pytest plugin: notes which test is running, and which failed."""

    def __init__(self, recorder: _Recorder) -> None:
        self._recorder = recorder
        self.failed: set[str] = set()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._recorder.user = nodeid

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed.add(report.nodeid)


def record_tests(changed: Path, tests: Path) -> Uses:
    """Kernels with the plugin's tests that use them; under "" those that fail without a fault."""
    import pytest

    take("cpu", changed)
    recorder = _Recorder()
    recorder.watch_kernels()
    plugin = _TestRecorder(recorder)
    pytest.main([str(tests), "-q", "-pno:xdist", "-pno:cacheprovider", "-pno:randomly"], plugins=[plugin])
    return {**recorder.uses(), "": sorted(plugin.failed)}
