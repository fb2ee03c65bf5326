"""Models of the digits train with each optimizer, and as TensorFlow trains them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe

STEPS = 100
QUICK_STEPS = 40

# Both sides round differently in every step, and the error of a step affects the next ones. Relative to the loss:
TOLERANCE = {"float32": 1e-4, "float64": 1e-8}


def test_a_model_trains(curve: Any, model: str, optimizer: str) -> None:
    losses = curve.losses(timberframe, model, optimizer, "float32", QUICK_STEPS)
    assert np.isfinite(losses).all()
    assert losses[-5:].mean() < losses[:5].mean()


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_losses_are_those_of_tensorflow_over_100_steps(curve: Any, model: str, optimizer: str, dtype: str) -> None:
    tensorflow = pytest.importorskip("tensorflow.compat.v1", reason="tensorflow is not installed")
    wanted = curve.losses(tensorflow, model, optimizer, dtype, STEPS)
    found = curve.losses(timberframe, model, optimizer, dtype, STEPS)
    np.testing.assert_allclose(found, wanted, rtol=TOLERANCE[dtype], atol=0)
