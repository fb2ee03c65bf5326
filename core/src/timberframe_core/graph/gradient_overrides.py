"""Other gradients than their ops' own for the operations that are made in a block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from timberframe_core.arguments import instance
from timberframe_core.errors import InvalidTypeError


class GradientOverrides:
    """The part of a graph that knows them."""

    _scopes: Any

    @contextmanager
    def gradient_override_map(self, op_type_map: Mapping[str, str]) -> Iterator[None]:
        """Makes operations made inside use registered gradients.

        op_type_map: for names of ops the names of gradient functions, as `tf.RegisterGradient` was given them, or of
        other ops whose gradients these are.
        """
        given = instance(op_type_map, Mapping, "gradient_override_map: op_type_map", "a mapping of names of ops")
        wrong = next((x for pair in given.items() for x in pair if not isinstance(x, str)), None)
        if wrong is not None:
            raise InvalidTypeError(f"gradient_override_map: op_type_map has {wrong!r}; names are required")
        before = self._scopes.gradients
        self._scopes.gradients = {**before, **given}
        try:
            yield
        finally:
            self._scopes.gradients = before
