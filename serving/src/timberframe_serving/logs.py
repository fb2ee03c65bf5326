"""Logs as JSON lines, which collectors read without rules of their own."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime

import orjson

_OWN = frozenset(vars(logging.LogRecord("", 0, "", 0, "", None, None))) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """Writes a record as one JSON object: time, level, logger, message, and what the record was given as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line."""
        facts: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        facts.update((k, v) for k, v in vars(record).items() if k not in _OWN)
        if record.exc_info:
            facts["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(facts, default=str).decode()


def set_up(level: str) -> None:
    """Makes all loggers write JSON lines to standard error, from a level on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
