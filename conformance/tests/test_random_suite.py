"""The suite of random streams on a device whose numbers come from NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from timberframe_conformance.suites.distributions import DISTRIBUTIONS, Classes, Moments


def test_a_device_in_numpy_draws_the_right_streams(command: Any) -> None:
    ops = "RandomUniform,TruncatedNormal,Multinomial,StatelessRandomUniformFullIntV2"
    status, output, _ = command("run", "--device=reference", f"--op={ops}", "--suite=random", "--jobs=0")
    assert status == 0, output


@pytest.mark.parametrize(
    ("drawn", "words"),
    [
        (np.linspace(0, 1.1, 40_000), "mean"),
        (np.tile([0.25, 0.75], 20_000), "variance"),
        (np.linspace(0, 1, 40_000), "covariance of neighbours"),
    ],
)
def test_numbers_that_are_not_uniform_are_noticed(drawn: np.ndarray, words: str) -> None:
    uniform = next(d for d in DISTRIBUTIONS if isinstance(d, Moments) and d.name == "float32")
    assert words in uniform.wrong(drawn)


@pytest.mark.parametrize(
    ("drawn", "words"),
    [(np.arange(40_000) % 9, "chi-square"), (np.arange(40_000) % 11, "class 10 was drawn; there are 10 classes")],
)
def test_classes_of_a_wrong_frequency_are_noticed(drawn: np.ndarray, words: str) -> None:
    ten = next(d for d in DISTRIBUTIONS if isinstance(d, Classes) and d.name == "10")
    assert words in ten.wrong(drawn)


def test_a_class_of_probability_zero_is_noticed() -> None:
    classes = next(d for d in DISTRIBUTIONS if isinstance(d, Classes) and d.op == "Multinomial")
    assert "class 3 was drawn; it has probability 0" in classes.wrong(np.full(100, 3))
