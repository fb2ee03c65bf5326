"""`tf.print` and `tf.strings.format`."""

from __future__ import annotations

import collections
import logging as _logging
import pprint
import sys
from collections.abc import Sequence
from typing import Any

from timberframe.api.variables import Variable
from timberframe_core import logging, nest
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.graph.sparse_tensor import SparseTensor

__all__ = ["print"]

NAMESPACES = {"strings": ("format",)}

_DEFAULT_STREAM = sys.stderr

_TENSORS = (Tensor, Variable, SparseTensor)


def format(template: str, inputs: Any, placeholder: str = "{}", summarize: int = 3, name: str | None = None) -> Tensor:
    """Returns the template with each of inputs in place of a placeholder: a string scalar.

    inputs: a tensor, or a list of them. summarize: how many elements of each dimension are shown at its beginning and
    end, all if negative.
    """
    given = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    count = template.count(placeholder)
    if count != len(given):
        raise InvalidArgumentError(
            f"tf.strings.format: template has {count} placeholders for {len(given)} inputs; each needs one"
        )
    attrs = {"template": template, "placeholder": placeholder, "summarize": summarize}
    made: Tensor = apply_op("StringFormat", [[convert_to_tensor(x) for x in given]], attrs, name)
    return made


def print(
    *inputs: Any,
    output_stream: Any = _DEFAULT_STREAM,
    summarize: int = 3,
    sep: str = " ",
    end: str = "\n",
    name: str | None = None,
) -> Operation:
    """Returns an operation that prints tensors, and structures of tensors and other values, whenever it is run.

    output_stream: sys.stderr, sys.stdout, a function or level of tf.logging or of Python's, or "file://path".
    summarize: how many elements of each dimension are shown at its beginning and end, all if -1.
    """
    stream = _stream(output_stream)
    one = inputs[0] if len(inputs) == 1 else None
    if isinstance(one, Tensor) and one.dtype.name == "string" and one.shape.ndims == 0:
        text = one
    else:
        placeholder = _free_placeholder(" ".join(pprint.pformat(_without_tensors(_sorted(x))) for x in inputs))
        tensors: list[Any] = []
        template = sep.join(_template(_sorted(x), placeholder, tensors) for x in inputs)
        template = template.replace(f"'{placeholder}'", placeholder)
        text = format(template, tensors, placeholder, summarize, None if name is None else f"{name}_format")
    made: Operation = apply_op("PrintV2", [text], {"output_stream": stream, "end": end}, name)
    return made


def _stream(given: Any) -> str:
    if isinstance(given, str) and given.startswith("file://"):
        return given
    if given is sys.stdout:
        return "stdout"
    if given is sys.stderr or given is sys.__stderr__ or given is _DEFAULT_STREAM:
        return "stderr"
    for word, levels in (
        ("info", (logging.INFO, logging.info, _logging.info)),
        ("warning", (logging.WARN, logging.warning, logging.warn, _logging.warning)),
        ("error", (logging.ERROR, logging.error, _logging.error)),
    ):
        if any(given is x or (isinstance(x, int) and given == x) for x in levels):
            return f"log({word})"
    raise InvalidArgumentError(
        f"tf.print: output_stream is {given!r}; sys.stdout, sys.stderr, a function of tf.logging or 'file://path' is "
        "required"
    )


def _sorted(given: Any) -> Any:
    return collections.OrderedDict(sorted(given.items())) if isinstance(given, collections.OrderedDict) else given


def _without_tensors(given: Any) -> Any:
    return nest.map_structure(lambda x: "" if isinstance(x, _TENSORS) else x, given)


def _free_placeholder(text: str) -> str:
    """Returns a placeholder that the text does not have."""
    placeholder = "{}"
    while placeholder in text:
        placeholder += "0"
    return placeholder


def _template(given: Any, placeholder: str, tensors: list[Any]) -> str:
    """Returns the text of a structure with placeholders for the tensors in it, which are added to the list."""
    if isinstance(given, str):
        return given
    leaves: Sequence[Any] = nest.flatten(given)
    shown = []
    for leaf in leaves:
        if isinstance(leaf, SparseTensor):
            tensors += [leaf.indices, leaf.values, leaf.dense_shape]
            shown.append(f"SparseTensor(indices={placeholder}, values={placeholder}, shape={placeholder})")
        elif isinstance(leaf, _TENSORS):
            tensors.append(leaf)
            shown.append(placeholder)
        else:
            shown.append(leaf)
    return pprint.pformat(nest.pack_sequence_as(given, shown))
