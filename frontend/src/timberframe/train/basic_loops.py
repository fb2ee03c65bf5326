"""Loops that train with a Supervisor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from timberframe.train.supervisor import Supervisor
from timberframe_core import logging
from timberframe_core.errors import AbortedError


def basic_train_loop(
    supervisor: Supervisor,
    train_step_fn: Callable[..., Any],
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    master: str = "",
) -> None:
    """Calls train_step_fn(session, *args, **kwargs) until the supervisor stops; after AbortedError in a new session."""
    again = True
    while again:
        again = False
        try:
            with supervisor.managed_session(master) as session:
                while not supervisor.should_stop():
                    train_step_fn(session, *(args or ()), **(kwargs or {}))
        except AbortedError as e:
            logging.info("the session is lost (%s); another one goes on from the last checkpoint", e)
            again = True
