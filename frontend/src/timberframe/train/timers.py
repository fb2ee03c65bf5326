"""SecondOrStepTimer: whether a hook is to act at a step."""

from __future__ import annotations

import time
from typing import Any

from timberframe_core.errors import InvalidArgumentError


def check_period(owner: str, steps_name: str, steps: Any, secs_name: str, secs: Any) -> None:
    """InvalidArgumentError unless one of the two is given, and is positive."""
    if (steps is None) == (secs is None):
        given = "neither" if steps is None else "both"
        raise InvalidArgumentError(f"{owner}: {given} of {steps_name} and {secs_name} given; exactly one is required")
    name, value = (secs_name, secs) if steps is None else (steps_name, steps)
    if value <= 0:
        raise InvalidArgumentError(f"{owner}: {name} is {value}; it must be positive")


class SecondOrStepTimer:
    """Triggers every so many seconds, or every so many steps: the first time at once. One of the two is None."""

    def __init__(self, every_secs: float | None = None, every_steps: int | None = None) -> None:
        if every_secs is not None and every_steps is not None:
            raise InvalidArgumentError("SecondOrStepTimer: both of every_secs and every_steps given; one is required")
        if every_secs is None and every_steps is None:
            raise InvalidArgumentError("SecondOrStepTimer: neither every_secs nor every_steps given; one is required")
        self._every_secs = every_secs
        self._every_steps = every_steps
        self.reset()

    def reset(self) -> None:
        """Forgets when it triggered."""
        self._last_triggered_step: int | None = None
        self._last_triggered_time: float | None = None

    def should_trigger_for_step(self, step: int) -> bool:
        """Returns whether the time has come at a step; false for the step at which it triggered last."""
        if self._last_triggered_step is None or self._last_triggered_time is None:
            return True
        if self._last_triggered_step == step:
            return False
        if self._every_secs is not None:
            return time.time() >= self._last_triggered_time + self._every_secs
        assert self._every_steps is not None
        return bool(step >= self._last_triggered_step + self._every_steps)

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """Says that it triggered at a step; returns the seconds and steps since the last time, None for the first."""
        now, before, at = time.time(), self._last_triggered_step, self._last_triggered_time
        self._last_triggered_step, self._last_triggered_time = step, now
        return (None, None) if before is None or at is None else (now - at, step - before)

    def last_triggered_step(self) -> int | None:
        """Returns the step at which it triggered last, None before the first time."""
        return self._last_triggered_step


class NeverTriggerTimer:
    """A timer that never triggers."""

    def reset(self) -> None:
        """Does nothing."""

    def should_trigger_for_step(self, step: int) -> bool:
        """False."""
        return False

    def update_last_triggered_step(self, step: int) -> tuple[None, None]:
        """Returns nothing."""
        return None, None

    def last_triggered_step(self) -> None:
        """Returns None."""
        return
