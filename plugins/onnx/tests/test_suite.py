"""ONNX's own tests of backends: the commit's share, beside the table of those that fail."""

from __future__ import annotations

import pytest

from timberframe_conformance.commit import commit_number
from timberframe_onnx.suite import FAILING, cases

SHARES = 12
COUNTS = {"Node": 1884, "PyTorchConverted": 82, "PyTorchOperator": 35, "Real": 9, "Simple": 23}
"""How many tests onnx 1.23.2 has of each family."""


@pytest.mark.slow
def test_onnx_own_tests_fail_where_the_table_says_so_and_nowhere_else() -> None:
    found = cases()
    counts = {family: sum(case.family == family for case in found) for family in COUNTS}
    assert counts == COUNTS
    assert set(FAILING) <= {case.name for case in found}
    share = found[commit_number() % SHARES :: SHARES]
    failing = {case.name: error for case in share if (error := case.error()) is not None}
    assert set(failing) == {case.name for case in share} & set(FAILING), failing


def test_the_table_of_failing_tests_does_not_grow() -> None:
    assert len(FAILING) == 19
    assert all(reason.strip() for reason in FAILING.values())
