"""Where in images the features are."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe.api.arrays import concat, reshape, transpose
from timberframe.api.initializers import constant_initializer
from timberframe.api.reduction import reduce_sum
from timberframe.api.softmax import softmax
from timberframe.api.variable_scope import variable_scope
from timberframe_contrib.contrib.framework import add_arg_scope, model_variable
from timberframe_contrib.contrib.layers.base import layout
from timberframe_contrib.contrib.layers.utils import get_variable_collections
from timberframe_core.dtypes import float32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import convert_to_tensor


@add_arg_scope
def spatial_softmax(
    features: Any,
    temperature: float | None = None,
    name: str | None = None,
    variables_collections: Any = None,
    trainable: bool = True,
    data_format: str = "NHWC",
) -> Any:
    """Levine et al. 2016: the expected place of each channel's features, [batch, 2 * channels] from -1 to 1.

    For each channel first the place along the height, then along the width. The weights are the softmax of the features
    over all pixels, divided by the variable `temperature`, which begins with 1 by default.
    """
    with variable_scope(name, "spatial_softmax", [features]):
        given = convert_to_tensor(features)
        sizes: Any = given.shape.as_list() if given.shape.ndims == 4 else [None] * 4
        if None in sizes[1:]:
            raise InvalidArgumentError(
                f"tf.contrib.layers.spatial_softmax: the features have shape {given.shape}; images of known height, "
                "width and channels are required"
            )
        if layout(data_format) == "channels_last":
            given, sizes = transpose(given, [0, 3, 1, 2]), [sizes[i] for i in (0, 3, 1, 2)]
        batch, channels, height, width = sizes
        factor = model_variable(
            "temperature", [], float32, constant_initializer(1.0 if temperature is None else temperature),
            trainable=trainable,
            collections=get_variable_collections(variables_collections, "temperature") if trainable else None,
        )  # fmt: skip
        weights: Any = softmax(reshape(given, [-1, height * width]) / factor)
        rows, columns = np.meshgrid(np.linspace(-1, 1, height), np.linspace(-1, 1, width), indexing="ij")
        places = [
            reduce_sum(weights * convert_to_tensor(p.ravel(), float32), 1, keepdims=True) for p in (rows, columns)
        ]
        found = reshape(concat(places, 1), [-1, 2 * channels])
        found.set_shape([batch, 2 * channels])
        return found
