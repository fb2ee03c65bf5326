"""JUnit XML, which continuous integration servers read."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter

from timberframe_conformance.case import FAILING, SKIPPED
from timberframe_conformance.reports.summary import Run

_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(run: Run) -> str:
    """Returns one test suite for each suite, one test case for each case; crashes and timeouts are errors."""
    root = ET.Element("testsuites", name=f"conformance {run.device['spec']}", time=f"{run.seconds:.3f}")
    for suite in dict.fromkeys(r.suite for r in run.results):
        own = [r for r in run.results if r.suite == suite]
        counts = Counter(r.verdict for r in own)
        element = ET.SubElement(
            root, "testsuite", name=suite, tests=str(len(own)), failures=str(counts["fail"]),
            errors=str(counts["crash"] + counts["timeout"]), skipped=str(sum(counts[v] for v in (*SKIPPED, "waived"))),
            time=f"{sum(r.seconds for r in own):.3f}",
        )  # fmt: skip
        for r in own:
            case = ET.SubElement(element, "testcase", classname=f"{r.suite}.{r.op}", name=r.id, time=f"{r.seconds:.5f}")
            if r.verdict in FAILING:
                tag = "failure" if r.verdict == "fail" else "error"
                ET.SubElement(case, tag, message=_clean(r.message), type=r.verdict).text = _clean(
                    f"{r.message}\n{r.repro}"
                )
            elif r.verdict != "pass":
                ET.SubElement(case, "skipped", message=_clean(f"{r.verdict}: {r.message}"))
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _clean(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
