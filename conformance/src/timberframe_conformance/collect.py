"""All cases for a device, in a stable order."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from timberframe_conformance.case import LEVELS, Case, is_subject
from timberframe_conformance.commands import UsageError, select
from timberframe_conformance.keyword import compile_keyword
from timberframe_conformance.levels.requirement import ops_of
from timberframe_conformance.options import Options
from timberframe_conformance.suites import SUITES, Collector
from timberframe_conformance.suites.installed import installed_suites, load_suite
from timberframe_conformance.target import Target
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.plugin.loader import registry as plugins


class NoSuchCaseError(LookupError):
    """No case has this id; the message gives near ones."""


def collectors() -> Mapping[str, Collector]:
    """Returns the suites by name that a run has where none is named."""
    return SUITES


def check_names(options: Options) -> None:
    """Raises UsageError where a suite or an op that the options name is not known, or a suite cannot be imported."""
    select(",".join(options.suites), [*collectors(), *installed_suites()], "suite")
    for name in options.suites:
        if name in installed_suites():
            load_suite(name)
    for name in options.ops:
        if is_subject(name):
            suite, _, _ = name.rpartition(":")
            if suite and suite not in options.suites:
                raise UsageError(f"op {name} is of no suite that is named; --suite {suite} is required")
        else:
            if registry.find(name) is None:  # of a plugin, without an entry point of its own
                plugins.load()
            try:
                registry.get(name)
            except LookupError as e:
                raise UsageError(str(e)) from e


def collect(target: Target, options: Options) -> Iterator[Case]:
    """Yields the cases that the options ask for; of two with the same id, which say the same, the first."""
    ops = [op for op in registry.all_ops() if options.wants_op(op.name) and _may_have_cases(op, options)]
    seen: set[str] = set()
    matches = compile_keyword(options.keyword) if options.keyword else None
    for suite in _wanted(options):
        for case in suite(target, ops):
            if not options.wants_op(case.op, case.of_graph):
                continue
            if not options.wants_level(case.level):
                continue
            if case.id in seen or (options.ids and case.id not in options.ids):
                continue
            if matches is not None and not matches(case.id):
                continue
            seen.add(case.id)
            yield case


def _wanted(options: Options) -> Iterator[Collector]:
    """Yields the suites that the options ask for; those of installed packages are imported when it is their turn."""
    yield from (suite for name, suite in collectors().items() if options.wants_suite(name))
    yield from (load_suite(name) for name in options.suites if name in installed_suites())


def _may_have_cases(op: OpDef, options: Options) -> bool:
    """Returns whether the levels of the run have cases of the op: networks of the lower ones need few ops."""
    return options.highest_level == LEVELS[-1] or op.name in ops_of(options.highest_level)


def find_case(target: Target, case_id: str, options: Options) -> Case:
    """Returns the case with an id; raises NoSuchCaseError."""
    parts = case_id.split("/", 3)
    if len(parts) != 4:
        raise NoSuchCaseError(f"case {case_id!r}: an id reads suite/op/dtypes/detail; `conformance list` prints them")
    suite, op, *_ = parts
    for level in ("all", "soak"):
        for case in collect(
            target,
            dataclasses.replace(options, level=level, ops=(op,), suites=(suite,), ids=(), keyword="", share=(0, 1)),
        ):
            if case.id == case_id:
                return case
    raise NoSuchCaseError(
        f"case {case_id!r}: there is none for this device; `conformance list --device={options.device} --op={op}`"
    )
