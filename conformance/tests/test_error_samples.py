"""The error samples themselves: a message with a wrong index, size or reason in it must not satisfy them."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

from timberframe_conformance.options import Options
from timberframe_conformance.suites import errors
from timberframe_conformance.target import open_target
from timberframe_core.ops.definition import registry

pytestmark = pytest.mark.slow

program = pytest.importorskip("timberframe_cpu.program", reason="the CPU's kernels report their errors in numbers")


def test_each_number_in_the_words_of_a_kernel_is_asked_for(monkeypatch):
    told: list[tuple[str, list[int], str]] = []
    asked: defaultdict[str, set[int]] = defaultdict(set)
    failure = program.failure

    def recorded(op, node, code, reason, details, reasons, context=""):
        error = failure(op, node, code, reason, details, reasons, context)
        if 0 < reason <= len(reasons):
            told.append((reasons[reason - 1], list(details), str(error)))
        return error

    def check(raised, sample, what):
        for template, details, text in [t for t in told if t[2] == str(raised)]:
            asked[template] |= set()
            for i in placeholders(template):
                changed = [d + (k == i) for k, d in enumerate(details)]
                other = text.replace(template.format(*details), template.format(*changed))
                if details[i] and not re.search(sample.match, other, re.S):  # a kernel may say 0 for want of a number
                    asked[template].add(i)
        told.clear()

    monkeypatch.setattr(program, "failure", recorded)
    monkeypatch.setattr(errors, "_check", check)
    target = open_target(Options("cpu"))
    for op in registry.all_ops():
        cases = {case.id.rsplit("#", 1)[1]: case for case in errors.collect(target, [op]) if "-dynamic#" in case.id}
        for case in cases.values():
            case.run(target)
    loose = {t: sorted(placeholders(t) - found) for t, found in asked.items() if placeholders(t) - found}
    assert len(asked) > 20
    assert not loose, "words with numbers (by place) that no error sample's `match` tells from others"


def placeholders(template: str) -> set[int]:
    return {int(n) for n in re.findall(r"\{(\d)", template)}
