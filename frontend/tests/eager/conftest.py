"""All tests here run eagerly."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from timberframe.eager.context import eager_mode


@pytest.fixture(autouse=True)
def eager() -> Iterator[None]:
    with eager_mode():
        yield
