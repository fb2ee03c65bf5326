"""WarmStartSettings: a new training that begins with the values of another."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from timberframe.train.warm_starting import warm_start
from timberframe_core.errors import InvalidTypeError


class WarmStartSettings(NamedTuple):
    """Which variables begin with the values of a checkpoint: the arguments of `tf.train.warm_start`."""

    ckpt_to_initialize_from: str
    vars_to_warm_start: Any = ".*"
    var_name_to_vocab_info: Any = None
    var_name_to_prev_var_name: Mapping[str, str] | None = None

    @classmethod
    def of(cls, given: Any) -> WarmStartSettings | None:
        """Returns the settings that an Estimator was given: settings, a path, or None."""
        if given is None or isinstance(given, WarmStartSettings):
            return given
        if isinstance(given, str | os.PathLike):
            return cls(os.fspath(given))
        raise InvalidTypeError(
            f"Estimator: warm_start_from is a {type(given).__name__}; a path or a "
            "tf.estimator.WarmStartSettings is required"
        )

    def apply(self) -> None:
        """Makes the default graph's variables begin with these values."""
        warm_start(*self)
