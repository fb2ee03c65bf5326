"""Templates: functions whose variables are made at the first call and shared by all later ones."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from timberframe.api.framework import GraphKeys
from timberframe.api.variable_scope import VariableScope, variable_scope
from timberframe.api.variable_store import VariableStore
from timberframe.api.variables import outermost
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.graph import get_default_graph

__all__ = ["Template", "make_template"]


class Template:
    """A function with a variable scope of its own; see `make_template`."""

    def __init__(
        self,
        name: str,
        func: Callable[..., Any],
        create_scope_now: bool = False,
        unique_name: str | None = None,
        custom_getter: Callable[..., Any] | None = None,
    ) -> None:
        if name is None:
            raise InvalidArgumentError("make_template: name_ is None; a name is required")
        self._func = func
        self._scope = variable_scope(unique_name, name, custom_getter=custom_getter)
        self._made: VariableScope | None = self._scope.peek() if create_scope_now else None
        self._called = False
        self._template_store = _eager_store() if outermost(get_default_graph()).eager else None
        """The variables in eager execution, by TensorFlow's name: those of the template around it, too."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        graph = outermost(get_default_graph())
        if not graph.eager:
            return self._call_in_scope(*args, **kwargs)
        if self._template_store is None:
            self._template_store = _eager_store()
        with self._template_store.as_default(graph):
            return self._call_in_scope(*args, **kwargs)

    def _call_in_scope(self, *args: Any, **kwargs: Any) -> Any:
        scope = self._scope if self._made is None else variable_scope(self._made, reuse=self._called)
        with scope as current:
            if self._made is None:
                self._made = current
            return self._call(*args, **kwargs)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        trainable = outermost(get_default_graph()).get_collection_ref(GraphKeys.TRAINABLE_VARIABLES)
        before = len(trainable)
        result = self._func(*args, **kwargs)
        if self._called and len(trainable) != before:
            raise InvalidArgumentError(
                f"template '{self.name}': made variable '{trainable[before].name}' after its first call; "
                "it must make its variables by get_variable, the same in each call"
            )
        self._called = True
        return result

    @property
    def variable_scope(self) -> VariableScope:
        """The scope of its variables; InvalidArgumentError before the first call unless it was made at once."""
        if self._made is None:
            raise InvalidArgumentError("template: has no variable scope before its first call; call it first")
        return self._made

    var_scope = variable_scope

    @property
    def name(self) -> str:
        """Name of the variable scope."""
        return self.variable_scope.name

    @property
    def variables(self) -> list[Any]:
        """The global and local variables of the scope."""
        if outermost(get_default_graph()).eager:
            store = self._template_store
            kept = [] if store is None or self._made is None else store.items()
            return [v for name, v in kept if name.startswith(f"{self.name}/")]
        return self.global_variables + self.local_variables if self._made is not None else []

    @property
    def trainable_variables(self) -> list[Any]:
        """The trainable variables of the scope."""
        if outermost(get_default_graph()).eager:
            return [v for v in self.variables if v.trainable]
        return self.variable_scope.trainable_variables() if self._made is not None else []

    @property
    def global_variables(self) -> list[Any]:
        """The global variables of the scope."""
        return self.variable_scope.global_variables() if self._made is not None else []

    @property
    def local_variables(self) -> list[Any]:
        """The local variables of the scope."""
        return self.variable_scope.local_variables() if self._made is not None else []


def _eager_store() -> VariableStore:
    """Returns the store of the template that is called now, or a new one."""
    current = VariableStore.of(outermost(get_default_graph()))
    return current if current.keeps_eager else VariableStore(keeps_eager=True)


def make_template(
    name_: str,
    func_: Callable[..., Any],
    create_scope_now_: bool = False,
    unique_name_: str | None = None,
    custom_getter_: Callable[..., Any] | None = None,
    **kwargs: Any,
) -> Template:
    """Returns a function that does what func_ does, in a variable scope of its own: every call uses the same variables.

    name_: of the scope, made unique; unique_name_ is taken as it is. create_scope_now_: the scope is made now, not at
    the first call. kwargs are passed to func_. A call raises InvalidArgumentError when it makes trainable variables
    that the first one did not.
    """
    func = functools.partial(func_, **kwargs) if kwargs else func_
    return Template(name_, func, create_scope_now_, unique_name_, custom_getter_)
