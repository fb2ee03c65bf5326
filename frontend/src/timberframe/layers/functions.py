"""The functions of `tf.layers` made from its classes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from timberframe.layers.base import Layer


def layer_function(layer: type[Layer], name: str) -> Callable[..., Any]:
    """Returns a function that makes a layer and calls it on its first argument, `inputs`.

    It takes the arguments of the class, and after them `reuse`: whether variables of the scope `name` are used again.
    """
    own = list(inspect.signature(layer).parameters.values())
    named = inspect.Parameter("reuse", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None)
    given = [p for p in own if p.kind is not p.VAR_KEYWORD]
    inputs = inspect.Parameter("inputs", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    signature = inspect.Signature([inputs, *given, named])

    def function(*args: Any, **kwargs: Any) -> Any:
        arguments = signature.bind(*args, **kwargs).arguments
        x, reuse = arguments.pop("inputs"), arguments.pop("reuse", None)
        return layer(**arguments, _scope=arguments.get("name"), _reuse=reuse)(x)

    function.__name__ = function.__qualname__ = name
    function.__module__ = layer.__module__
    own_doc = (layer.__doc__ or "").strip()
    function.__doc__ = f"{own_doc}\n\n    A `{layer.__name__}` layer, made and called on `inputs`."
    function.__signature__ = signature  # type: ignore[attr-defined]  # what inspect reads
    return function
