"""What the layers of `tf.contrib.layers` have in common: names of variables, collections, what follows a layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from timberframe.api.framework import add_to_collections
from timberframe.api.variable_scope import VariableScope, variable_scope
from timberframe.layers.base import Layer
from timberframe_contrib.contrib.framework import add_model_variable
from timberframe_contrib.contrib.layers.utils import collect_named_outputs, get_variable_collections
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import convert_to_tensor

_NAMES = {
    "kernel": "weights", "bias": "biases", "depthwise_kernel": "depthwise_weights",
    "pointwise_kernel": "pointwise_weights",
}  # fmt: skip
"""What variables are called here, by their names in `tf.layers`."""

LAYOUTS = ("NWC", "NCW", "NHWC", "NCHW", "NDHWC", "NCDHW")
"""Orders of axes, of one to three spatial ones."""


def _get_renamed(getter: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
    """Returns a getter of variables that gives them the names of this package and makes them the model's."""
    scope, separator, last = name.rpartition("/")
    made = getter(f"{scope}{separator}{_NAMES.get(last, last)}", *args, **kwargs)
    add_model_variable(made)
    return made


@contextmanager
def opened_scope(scope: Any, default: str, inputs: Any, reuse: Any) -> Iterator[VariableScope]:
    """A variable scope in which the variables of `tf.layers` have the names of this package."""
    with variable_scope(scope, default, [inputs], reuse=reuse, custom_getter=_get_renamed) as opened:
        yield opened


def called(layer: Layer, inputs: Any, collections: Any, **arguments: Any) -> Any:
    """Returns a layer's outputs; its variables join collections, all or by their names here."""
    outputs = layer(convert_to_tensor(inputs), **arguments)
    for variable in layer.variables if collections else ():
        names = get_variable_collections(collections, variable.op.name.rpartition("/")[2])
        if names:
            add_to_collections(names, variable)
    return outputs


def finished(outputs: Any, normalizer: Any, parameters: Any, activation: Any, collections: Any, alias: str) -> Any:
    """Normalised, activated, and added to collections under the name of the layer's scope."""
    if normalizer is not None:
        outputs = normalizer(outputs, **(parameters or {}))
    return collect_named_outputs(collections, alias, outputs if activation is None else activation(outputs))


def layout(data_format: str | None) -> str:
    """Returns the name in `tf.layers` of an order of axes."""
    if data_format is not None and data_format not in LAYOUTS:
        raise InvalidArgumentError(
            f"tf.contrib.layers: data_format is {data_format!r}; one of {', '.join(LAYOUTS)} is required"
        )
    return "channels_first" if (data_format or "").startswith("NC") else "channels_last"
