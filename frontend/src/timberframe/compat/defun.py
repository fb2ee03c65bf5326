"""`tensorflow.python.framework.function`: functions of typed tensors that may bring their gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from timberframe.api.framework import name_scope
from timberframe_core.dtypes import DType, as_dtype
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.gradients.custom import custom_gradient
from timberframe_core.graph.apply import convert_to_tensor


class Defun:
    """Decorates a function whose arguments become tensors of these dtypes; each call adds its operations to the graph.

    func_name: the name of the calls, by default the function's. python_grad_func: makes the gradients of the arguments
    from the call (its `inputs` and `outputs`) and one gradient for each result; grad_func does from the arguments and
    those gradients. Without either, gradients are those of the function's operations. Other settings change nothing.
    """

    def __init__(
        self,
        *input_types: Any,
        func_name: str | None = None,
        grad_func: Callable[..., Any] | None = None,
        python_grad_func: Callable[..., Any] | None = None,
        **settings: Any,
    ) -> None:
        if grad_func is not None and python_grad_func is not None:
            raise InvalidArgumentError("Defun: grad_func and python_grad_func are given; give one of them")
        self._types = [as_dtype(t) for t in input_types]
        self._name = func_name
        self._gradient: Callable[..., Any] | None = python_grad_func
        if grad_func is not None:
            self._gradient = lambda op, *grads: grad_func(*op.inputs, *grads)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the function of tensors; it takes a `name` for its call, too."""
        label = self._name or function.__name__

        def call(*args: Any, name: str | None = None) -> Any:
            if self._types and len(args) != len(self._types):
                raise InvalidArgumentError(f"'{label}': {len(args)} arguments; it takes {len(self._types)} tensors")
            types: Sequence[DType | None] = self._types or [None] * len(args)
            with name_scope(name or label):
                tensors = [convert_to_tensor(a, t) for a, t in zip(args, types, strict=True)]
                return self._with_gradient(function)(*tensors)

        call.__name__ = call.__qualname__ = label
        call.__doc__ = function.__doc__
        return call

    def _with_gradient(self, function: Callable[..., Any]) -> Callable[..., Any]:
        gradient = self._gradient
        if gradient is None:
            return function

        def both(*inputs: Any) -> Any:
            results = function(*inputs)
            outputs = list(results) if isinstance(results, Sequence) else [results]

            def gradients(*grads: Any) -> Any:
                return gradient(SimpleNamespace(inputs=list(inputs), outputs=outputs), *grads)

            return results, gradients

        return custom_gradient(both)
