"""Damaged models end in errors of Timberframe, or run: a few that the commit chooses; ``make full`` tries 1,000."""

from __future__ import annotations

from itertools import islice

import damage
import pytest

from timberframe_conformance.commit import commit_number


@pytest.mark.slow
def test_damaged_models_end_in_clear_errors() -> None:
    found = [damage.attempt(data) for data in islice(damage.damaged(commit_number() % 1000), 60)]
    assert "an error without a message" not in found
    assert len(set(found)) > 1
