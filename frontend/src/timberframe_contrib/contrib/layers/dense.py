"""Layers in which each output depends on all inputs, and biases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from timberframe import layers as tf_layers
from timberframe.api.contraction import tensordot
from timberframe.api.framework import GraphKeys, add_to_collections
from timberframe.api.initializers import zeros_initializer
from timberframe.api.nn import bias_add as nn_bias_add
from timberframe.api.unary import elu as nn_elu
from timberframe.api.unary import relu as nn_relu
from timberframe.api.unary import relu6 as nn_relu6
from timberframe.api.variable_scope import get_variable, variable_scope
from timberframe.layers.base import known_size
from timberframe_contrib.contrib.framework import add_arg_scope, model_variable
from timberframe_contrib.contrib.layers.base import called, finished, opened_scope
from timberframe_contrib.contrib.layers.utils import channel_dimension, get_variable_collections
from timberframe_contrib.contrib.layers.weights import xavier_initializer
from timberframe_core.graph.apply import convert_to_tensor


@add_arg_scope
def fully_connected(
    inputs: Any,
    num_outputs: int,
    activation_fn: Callable[[Any], Any] | None = nn_relu,
    normalizer_fn: Callable[..., Any] | None = None,
    normalizer_params: Mapping[str, Any] | None = None,
    weights_initializer: Any = xavier_initializer(),
    weights_regularizer: Callable[[Any], Any] | None = None,
    biases_initializer: Any = zeros_initializer,
    biases_regularizer: Callable[[Any], Any] | None = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """activation_fn(inputs . weights + biases) along the last axis; with a normalizer_fn there are no biases.

    The variables are `weights` and `biases` in scope `fully_connected`.
    """
    with opened_scope(scope, "fully_connected", inputs, reuse) as opened:
        layer = tf_layers.Dense(
            num_outputs, None, normalizer_fn is None and biases_initializer is not None, weights_initializer,
            biases_initializer, weights_regularizer, biases_regularizer, trainable=trainable, _scope=opened,
            _reuse=reuse,
        )  # fmt: skip
        outputs = called(layer, inputs, variables_collections)
        return finished(
            outputs, normalizer_fn, normalizer_params, activation_fn, outputs_collections, opened.name
        )  # fmt: skip


elu = partial(fully_connected, activation_fn=nn_elu)
linear = partial(fully_connected, activation_fn=None)
relu = partial(fully_connected, activation_fn=nn_relu)
relu6 = partial(fully_connected, activation_fn=nn_relu6)


def legacy_fully_connected(
    x: Any,
    num_output_units: int,
    activation_fn: Callable[[Any], Any] | None = None,
    weight_init: Any = xavier_initializer(),
    bias_init: Any = zeros_initializer(),
    name: str | None = None,
    weight_collections: Any = (GraphKeys.WEIGHTS,),
    bias_collections: Any = (GraphKeys.BIASES,),
    output_collections: Any = (GraphKeys.ACTIVATIONS,),
    trainable: bool = True,
    weight_regularizer: Callable[[Any], Any] | None = None,
    bias_regularizer: Callable[[Any], Any] | None = None,
) -> Any:
    """activation_fn(x . weights + bias) along the last axis, with variables `weights` and `bias`.

    Without bias_init there is no bias. The collections are of the variables and of the outputs.
    """
    with variable_scope(name, "fully_connected", [x]):
        x = convert_to_tensor(x)
        made = [("weights", [known_size("legacy_fully_connected", x.shape, -1), num_output_units], weight_init,
                 weight_regularizer, weight_collections)]  # fmt: skip
        if bias_init is not None:
            made.append(("bias", [num_output_units], bias_init, bias_regularizer, bias_collections))
        variables = [
            get_variable(variable, shape, x.dtype, initializer, regularizer, trainable,
                         [GraphKeys.GLOBAL_VARIABLES, *(collections or ())])
            for variable, shape, initializer, regularizer, collections in made
        ]  # fmt: skip
        outputs = tensordot(x, variables[0], 1)
        if bias_init is not None:
            outputs = nn_bias_add(outputs, variables[1])
        outputs = outputs if activation_fn is None else activation_fn(outputs)
        add_to_collections(list(output_collections), outputs)
        return outputs


legacy_linear = partial(legacy_fully_connected, activation_fn=None)
legacy_relu = partial(legacy_fully_connected, activation_fn=nn_relu)


@add_arg_scope
def bias_add(
    inputs: Any,
    activation_fn: Callable[[Any], Any] | None = None,
    initializer: Any = zeros_initializer(),
    regularizer: Callable[[Any], Any] | None = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    data_format: str = "NHWC",
    scope: Any = None,
) -> Any:
    """activation_fn(inputs + biases), the biases one for each channel, in scope `BiasAdd`."""
    with variable_scope(scope, "BiasAdd", [inputs], reuse=reuse) as opened:
        given = convert_to_tensor(inputs)
        biases = model_variable(
            "biases", [channel_dimension(given.shape, data_format, 2)], given.dtype, initializer, regularizer,
            trainable, get_variable_collections(variables_collections, "biases"),
        )  # fmt: skip
        outputs = nn_bias_add(given, biases, data_format)
        return finished(outputs, None, None, activation_fn, outputs_collections, opened.name)
