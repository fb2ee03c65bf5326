"""Settings of profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from timberframe.profiler.counting import TRAINABLE_VARIABLES

_ALL = 10000  # levels of scopes


class ProfileOptionBuilder:
    """Settings of a profile, as a dict that `build` gives; each `with_` method returns the builder."""

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self._options: dict[str, Any] = {**DEFAULTS, **(options or {})}

    @staticmethod
    def trainable_variables_parameter() -> dict[str, Any]:
        """Returns settings that show the parameters of trainable variables."""
        return {**DEFAULTS, "account_type_regexes": [TRAINABLE_VARIABLES], "select": ["params"]}

    @staticmethod
    def float_operation() -> dict[str, Any]:
        """Returns settings that show floating operations."""
        return {**DEFAULTS, "min_float_ops": 1, "select": ["float_ops"], "order_by": "float_ops"}

    @staticmethod
    def time_and_memory(min_micros: int = 1, min_bytes: int = 1, **_: Any) -> dict[str, Any]:
        """Returns settings that show how long operations took."""
        return {**DEFAULTS, "min_micros": min_micros, "select": ["micros"], "order_by": "micros"}

    def _with(self, **options: Any) -> ProfileOptionBuilder:
        self._options.update(options)
        return self

    def with_max_depth(self, max_depth: int) -> ProfileOptionBuilder:
        """Shows so many levels of scopes."""
        return self._with(max_depth=max_depth)

    def with_accounted_types(self, account_type_regexes: Sequence[str]) -> ProfileOptionBuilder:
        """Counts operations whose types match one of these; "_trainable_variables" is that of trainable variables."""
        return self._with(account_type_regexes=list(account_type_regexes))

    def with_node_names(self, show_name_regexes: Sequence[str] = (".*",), **_: Any) -> ProfileOptionBuilder:
        """Shows scopes and operations whose names match one of these."""
        return self._with(show_name_regexes=list(show_name_regexes))

    def with_min_parameters(self, min_params: int) -> ProfileOptionBuilder:
        """Shows what has so many parameters."""
        return self._with(min_params=min_params)

    def with_min_float_operations(self, min_float_ops: int) -> ProfileOptionBuilder:
        """Shows what has so many floating operations."""
        return self._with(min_float_ops=min_float_ops)

    def with_min_execution_time(self, min_micros: int = 0, **_: Any) -> ProfileOptionBuilder:
        """Shows what took so many microseconds."""
        return self._with(min_micros=min_micros)

    def select(self, attributes: Sequence[str]) -> ProfileOptionBuilder:
        """Shows these of "params", "float_ops" and "micros"."""
        return self._with(select=list(attributes))

    def order_by(self, attribute: str) -> ProfileOptionBuilder:
        """Shows what has the most of an attribute first; "name" is the order of names."""
        return self._with(order_by=attribute)

    def with_empty_output(self) -> ProfileOptionBuilder:
        """Prints nothing."""
        return self._with(output="none")

    def with_stdout_output(self) -> ProfileOptionBuilder:
        """Prints to standard output."""
        return self._with(output="stdout")

    def with_file_output(self, outfile: str) -> ProfileOptionBuilder:
        """Writes to a file."""
        return self._with(output=f"file:outfile={outfile}")

    def with_step(self, step: int) -> ProfileOptionBuilder:
        """Shows the run of a step that `Profiler.add_step` got; -1 for the last."""
        return self._with(step=step)

    def build(self) -> dict[str, Any]:
        """Returns the settings."""
        return dict(self._options)


DEFAULTS: dict[str, Any] = {
    "max_depth": _ALL, "min_params": 0, "min_float_ops": 0, "min_micros": 0, "account_type_regexes": [".*"],
    "show_name_regexes": [".*"], "select": ["params", "float_ops", "micros"], "order_by": "name", "output": "stdout",
    "step": -1,
}  # fmt: skip
