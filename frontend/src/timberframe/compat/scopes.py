"""Name scopes and variable scopes as TensorFlow's own modules handle them."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from typing import Any

from timberframe.api.variable_scope import VariableScope, variable_scope


def strip_name_scope(name: str, export_scope: str | None) -> str:
    """Returns a name without the scope; `^` of a control input and `loc:@` of a colocation stay before it."""
    if not export_scope:
        return name
    return re.sub(rf"^(\^|loc:@)?{re.escape(export_scope.rstrip('/'))}/+", r"\1", name)


def prepend_name_scope(name: str, import_scope: str | None) -> str:
    """Returns a name within the scope; `^` of a control input and `loc:@` of a colocation stay before it."""
    if not import_scope:
        return name
    return re.sub(r"^(\^|loc:@)?", rf"\g<1>{import_scope.rstrip('/')}/", name, count=1)


def pure_variable_scope(
    name_or_scope: str | VariableScope, reuse: Any = None, old_name_scope: str | None = None, **settings: Any
) -> AbstractContextManager[VariableScope]:
    """Opens a variable scope without a name scope.

    old_name_scope: its name scope when it is opened again; settings: those of `tf.variable_scope`.
    """
    return variable_scope(name_or_scope, reuse=reuse, **settings).without_name_scope(old_name_scope)
