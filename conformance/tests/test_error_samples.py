"""The error samples themselves: a message with a wrong index, size or reason in it must not satisfy them."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

from timberframe_conformance.options import Options
from timberframe_conformance.suites import errors
from timberframe_conformance.target import open_target
from timberframe_core.ops.definition import registry
from timberframe_sdk.native import worded

pytestmark = pytest.mark.slow

program = pytest.importorskip("timberframe_cpu.program", reason="the CPU's kernels report their errors in numbers")


def test_each_number_in_a_kernels_message_is_checked(monkeypatch):
    raised_by_kernels: list[tuple[str, list[int], str]] = []
    checked: defaultdict[str, set[int]] = defaultdict(set)
    failure = program.failure

    def recorded(op, node, code, reason, details, reasons, context=""):
        error = failure(op, node, code, reason, details, reasons, context)
        if 0 < reason <= len(reasons):
            raised_by_kernels.append((reasons[reason - 1], list(details), str(error)))
        return error

    def check(raised, sample, what):
        for template, details, text in [t for t in raised_by_kernels if t[2] == str(raised)]:
            checked[template] |= set()
            for i in placeholders(template):
                changed = [d + (k == i) for k, d in enumerate(details)]
                other = text.replace(worded(template, details), worded(template, changed))
                if details[i] and not re.search(sample.match, other, re.S):  # a kernel may report 0 if it has no number
                    checked[template].add(i)
        raised_by_kernels.clear()

    monkeypatch.setattr(program, "failure", recorded)
    monkeypatch.setattr(errors, "_check", check)
    target = open_target(Options("cpu"))
    for op in registry.all_ops():
        cases = {case.id.rsplit("#", 1)[1]: case for case in errors.collect(target, [op]) if "-dynamic#" in case.id}
        for case in cases.values():
            case.run(target)
    loose = {t: sorted(placeholders(t) - found) for t, found in checked.items() if placeholders(t) - found}
    assert len(checked) > 20
    assert not loose, "messages with numbers (by index) that no error sample's `match` checks"


def placeholders(template: str) -> set[int]:
    return {int(n) for n in re.findall(r"\{(\d)", template)}
