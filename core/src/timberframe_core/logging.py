"""`tf.logging`: TensorFlow 1's logging functions, on the standard library's logger ``timberframe``.

Messages go to the handlers that the program configured, or else to standard error.
"""

from __future__ import annotations

import logging as _logging
from typing import Any

from timberframe_core.errors import InvalidArgumentError

DEBUG = _logging.DEBUG
INFO = _logging.INFO
WARN = _logging.WARNING
ERROR = _logging.ERROR
FATAL = _logging.CRITICAL

__all__ = [
    "DEBUG", "ERROR", "FATAL", "INFO", "WARN", "debug", "error", "fatal", "get_logger", "get_verbosity", "info", "log",
    "log_every_n", "log_first_n", "log_if", "set_verbosity", "vlog", "warn", "warning",
]  # fmt: skip


class _StandardError(_logging.StreamHandler[Any]):
    """Writes only while the program has configured no logging of its own."""

    def emit(self, record: _logging.LogRecord) -> None:
        if not _logging.getLogger().handlers:
            super().emit(record)


_logger = _logging.getLogger("timberframe")
_counts: dict[tuple[str, int, str], int] = {}


def get_logger() -> _logging.Logger:
    """Returns the logger of the standard library that all messages go through."""
    if not _logger.handlers:
        handler = _StandardError()
        handler.setFormatter(_logging.Formatter("%(levelname)s:%(name)s:%(message)s"))
        _logger.addHandler(handler)
        if _logger.level == _logging.NOTSET:
            _logger.setLevel(WARN)
    return _logger


def log(level: int, msg: str, *args: Any, **kwargs: Any) -> None:
    """Logs ``msg % args`` at a level."""
    kwargs.setdefault("stacklevel", 2)
    get_logger().log(level, msg, *args, **kwargs)


def show(msg: str, *args: Any) -> None:
    """Logs at level INFO what the program has asked for by a setting of its own, whatever the verbosity."""
    logger = get_logger()
    logger.handle(logger.makeRecord(logger.name, INFO, __file__, 0, msg, args, None))


def debug(msg: str, *args: Any, **kwargs: Any) -> None:
    """Logs at level DEBUG."""
    log(DEBUG, msg, *args, stacklevel=3, **kwargs)


def info(msg: str, *args: Any, **kwargs: Any) -> None:
    """Logs at level INFO."""
    log(INFO, msg, *args, stacklevel=3, **kwargs)


def warning(msg: str, *args: Any, **kwargs: Any) -> None:
    """Logs at level WARN."""
    log(WARN, msg, *args, stacklevel=3, **kwargs)


warn = warning


def error(msg: str, *args: Any, **kwargs: Any) -> None:
    """Logs at level ERROR."""
    log(ERROR, msg, *args, stacklevel=3, **kwargs)


def fatal(msg: str, *args: Any, **kwargs: Any) -> None:
    """Logs at level FATAL; the program goes on."""
    log(FATAL, msg, *args, stacklevel=3, **kwargs)


vlog = log


def log_if(level: int, msg: str, condition: object, *args: Any) -> None:
    """Logs when the condition is true."""
    if condition:
        log(level, msg, *args, stacklevel=3)


def log_every_n(level: int, msg: str, n: int, *args: Any) -> None:
    """Logs the first and then every n-th call with this message."""
    if _count("every", level, msg) % n == 0:
        log(level, msg, *args, stacklevel=3)


def log_first_n(level: int, msg: str, n: int, *args: Any) -> None:
    """Logs the first n calls with this message."""
    if _count("first", level, msg) < n:
        log(level, msg, *args, stacklevel=3)


def _count(kind: str, level: int, msg: str) -> int:
    key = kind, level, msg
    _counts[key] = _counts.get(key, -1) + 1
    return _counts[key]


def set_verbosity(v: int | str) -> None:
    """Drops messages below a level, such as `tf.logging.INFO` or "INFO"."""
    number = v if isinstance(v, int) else globals().get(v.upper())
    if not isinstance(number, int):
        raise InvalidArgumentError(f"tf.logging: level {v!r} is not known; use DEBUG, INFO, WARN, ERROR or FATAL")
    get_logger().setLevel(number)


def get_verbosity() -> int:
    """Returns the level below which messages are dropped."""
    return get_logger().getEffectiveLevel()
