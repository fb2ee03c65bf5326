"""`tf.raw_ops`: every registered op as a function, those of plugins included.

`tf.raw_ops.Name(**kwargs)` takes the op's inputs and attrs by name, and `name`. Attrs that follow from the inputs
(dtypes, counts) are not given. It returns what the op gives: a tensor, a list of them, a named tuple where the op has
several outputs, the operation where it has none. In names such as `Acme>Scale` an underscore replaces the `>`.
"""

from __future__ import annotations

import functools as _functools
import inspect as _inspect
import keyword as _keyword
from collections import namedtuple as _namedtuple
from collections.abc import Callable as _Callable
from typing import Any as _Any

from timberframe_core.graph.apply import apply_op as _apply_op
from timberframe_core.graph.inference import arg_ranges as _arg_ranges
from timberframe_core.graph.operation import Operation as _Operation
from timberframe_core.ops.definition import registry as _registry
from timberframe_core.ops.definition.opdef import OpDef as _OpDef


def _function(op: _OpDef) -> _Callable[..., _Any]:
    signature = _signature(op)
    keys = ", ".join(signature.parameters)

    def call(*args: _Any, **kwargs: _Any) -> _Any:
        if args:
            raise TypeError(
                f"tf.raw_ops.{call.__name__}: {len(args)} arguments without names; only {keys} may be given"
            )
        try:
            given = signature.bind(**kwargs).arguments
        except TypeError as error:
            raise TypeError(f"tf.raw_ops.{call.__name__}: {error}; its arguments are {keys}") from None
        inputs = [given[_python_name(op, a.name)] for a in op.inputs]
        attrs = {a: given[_python_name(op, a)] for a in op.attrs if _python_name(op, a) in given}
        made = _apply_op(op.name, inputs, attrs, given.get("name"))
        return _structured(op, made)

    call.__name__ = call.__qualname__ = op.name.replace(">", "_")
    call.__doc__ = _documentation(op)
    call.__signature__ = signature  # type: ignore[attr-defined]  # what inspect.signature and help() show
    return call


def _signature(op: _OpDef) -> _inspect.Signature:
    """Inputs, required attrs, others, name; the attrs that follow from the inputs are left out."""
    implied = {attr for a in op.inputs for attr in (a.type_attr, a.number_attr, a.type_list_attr)}
    attrs = sorted((a for a in op.attrs.values() if a.name not in implied), key=lambda a: not a.required)
    keyword = _inspect.Parameter.KEYWORD_ONLY
    parameters = [_inspect.Parameter(_python_name(op, a.name), keyword) for a in op.inputs]
    parameters += [
        _inspect.Parameter(
            _python_name(op, a.name), keyword, default=_inspect.Parameter.empty if a.required else a.default
        )
        for a in attrs
    ]
    return _inspect.Signature([*parameters, _inspect.Parameter("name", keyword, default=None)])


def _python_name(op: _OpDef, name: str) -> str:
    """Returns the argument's name: as in TensorFlow's `tf.raw_ops`, keywords of Python end in an underscore."""
    return op.python_names.get(name, f"{name}_" if _keyword.iskeyword(name) else name)


def _documentation(op: _OpDef) -> str:
    parameters = _signature(op).parameters
    lines = [f"{_python_name(op, a.name)}: an input{', a list' if a.is_list else ''}." for a in op.inputs]
    for attr in op.attrs.values():
        if _python_name(op, attr.name) in parameters:
            allowed = f", one of {', '.join(map(str, attr.allowed))}" if attr.allowed else ""
            lines.append(f"{_python_name(op, attr.name)}: an attr of kind {attr.kind}{allowed}.")
    return "\n".join([op.doc, "", *lines])


def _structured(op: _OpDef, made: _Any) -> _Any:
    """Returns the result of `apply_op`, with several outputs as a named tuple."""
    if isinstance(made, _Operation) or len(op.outputs) == 1:
        return made
    ranges = _arg_ranges(op.outputs, made[0].op.attrs) if made else {a.name: range(0) for a in op.outputs}
    parts = [[made[i] for i in ranges[a.name]] if a.is_list else made[ranges[a.name][0]] for a in op.outputs]
    return _namedtuple(op.name.replace(">", "_").lstrip("_"), [a.name for a in op.outputs])(*parts)


def _find(name: str) -> _OpDef | None:
    found = _registry.find(name)
    if found is None and "_" in name:
        found = next((op for op in _registry.all_ops() if op.name.replace(">", "_") == name), None)
    return found


@_functools.cache
def _cached(op: _OpDef) -> _Callable[..., _Any]:
    return _function(op)


def __getattr__(name: str) -> _Any:
    op = None if name.startswith("__") else _find(name)
    if op is None:
        missing = {op.replace(">", "_"): why for op, why in _registry.missing().items()}
        why = missing.get(name.replace(">", "_"), "names are those of registered ops")
        raise AttributeError(f"tf.raw_ops has no op {name!r}; {why}")
    return _cached(op)


def __dir__() -> list[str]:
    return [op.name.replace(">", "_") for op in _registry.all_ops()]
