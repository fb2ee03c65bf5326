"""`tf.flags`: settings of a program from its command line, as Abseil's flags.

`FLAGS` reads the command line when a flag is first looked up, so that programs without `tf.app.run` have it, too. What
it does not know is left for others. `DEFINE_string` and its like also take TensorFlow's older names of the arguments.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from timberframe_core.extras import extra

with extra("absl", "tf.flags"):
    from absl import flags as _absl

_RENAMED = {"flag_name": "name", "default_value": "default", "docstring": "help"}


class _Flags:
    """Abseil's flags, which read the command line when one is first looked up."""

    def __getattr__(self, name: str) -> Any:
        if name == "__dict__":
            return _absl.FLAGS.__dict__
        if not _absl.FLAGS.is_parsed():
            _absl.FLAGS(sys.argv, known_only=True)
        return getattr(_absl.FLAGS, name)

    def _parse_flags(self) -> None:
        """Reads the command line, as programs before TensorFlow 1.5 ask for it."""
        _absl.FLAGS(sys.argv, known_only=True)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(_absl.FLAGS, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(_absl.FLAGS, name)

    def __dir__(self) -> list[str]:
        return dir(_absl.FLAGS)

    def __getitem__(self, name: str) -> Any:
        return _absl.FLAGS[name]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _absl.FLAGS(*args, **kwargs)

    def __iter__(self) -> Any:
        return iter(_absl.FLAGS)

    def __len__(self) -> int:
        return len(_absl.FLAGS)

    def __contains__(self, name: str) -> bool:
        return name in _absl.FLAGS


FLAGS = _Flags()


def __getattr__(name: str) -> Any:
    return getattr(_absl, name)  # TensorFlow offers all of Abseil's


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_absl)})


def _define(name: str) -> Any:
    function = getattr(_absl, name)

    @functools.wraps(function)
    def define(*args: Any, **kwargs: Any) -> Any:
        given = {_RENAMED.get(key, key): value for key, value in kwargs.items()}
        flag = args[0] if args else given.get("name", "")
        if flag in _absl.FLAGS and str(_absl.FLAGS.find_module_defining_flag(flag)).startswith("absl."):
            given.setdefault("allow_override", True)  # Abseil's logging has flags that TensorFlow 1 did not have
        return function(*args, **given)

    return define


DEFINE_string = _define("DEFINE_string")
DEFINE_boolean = _define("DEFINE_boolean")
DEFINE_bool = _define("DEFINE_bool")
DEFINE_float = _define("DEFINE_float")
DEFINE_integer = _define("DEFINE_integer")
