"""What a rule of an optimizer must be for samples and kernels to have room for it."""

from __future__ import annotations

import pytest

from timberframe_core.errors import InvalidArgumentError
from timberframe_ops.training.updates import _define_both


def rule(*_: object) -> tuple[object, ...]:
    """No rule: it is refused before it could be used."""
    return ()


def test_scalar_without_a_value_for_samples_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="rule rule: _VALUES lacks gamma; samples need a value"):
        _define_both("Test", "var m", "lr gamma grad", rule)


def test_more_slots_than_kernels_take_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="rule rule: has 5 states; kernels of updates take at most 4"):
        _define_both("Test", "var a b c d", "lr grad", rule)


def test_more_scalars_than_kernels_take_are_refused() -> None:
    scalars = "lr rho epsilon beta1 beta2 momentum alpha"
    with pytest.raises(InvalidArgumentError, match="rule rule: has 7 scalars; kernels of updates take at most 6"):
        _define_both("Test", "var", f"{scalars} grad", rule)
