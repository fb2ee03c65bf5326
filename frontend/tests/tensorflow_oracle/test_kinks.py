"""The stored gradients at kinks are what TensorFlow gives."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

KINKS = runpy.run_path(str(Path(__file__).parents[3] / "core/tests/gradients" / "kinks.py"))
STORED = KINKS["stored"]()


@pytest.mark.parametrize("expression", KINKS["CASES"])
def test_stored_gradients_are_tensorflows(tensorflow: Any, expression: str) -> None:
    assert list(STORED[expression]) == KINKS["dtypes"](expression)
    for dtype, wanted in STORED[expression].items():
        KINKS["assert_same"](KINKS["gradients"](tensorflow, expression, dtype), wanted, dtype)
