"""Embeddings of `tf.contrib.layers`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timberframe.api.composites import embedding_lookup
from timberframe.api.framework import convert_to_tensor
from timberframe.api.variable_scope import variable_scope
from timberframe.contrib.framework import model_variable
from timberframe_core.errors import InvalidArgumentError


def embed_sequence(
    ids: Any,
    vocab_size: int | None = None,
    embed_dim: int | None = None,
    unique: bool = False,
    initializer: Any = None,
    regularizer: Callable[[Any], Any] | None = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: Any = None,
) -> Any:
    """The rows of the variable `embeddings` [vocab_size, embed_dim], in scope `EmbedSequence`, that ids name.

    ids: [batch, time] of integers; the result is [batch, time, embed_dim]. With reuse vocab_size and embed_dim may be
    left out. unique is TensorFlow's and changes nothing.
    """
    if not (reuse or (vocab_size and embed_dim)):
        raise InvalidArgumentError(
            f"embed_sequence: vocab_size is {vocab_size} and embed_dim {embed_dim}; both are required without reuse"
        )
    with variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        shape = [vocab_size, embed_dim] if vocab_size and embed_dim else None
        table = model_variable("embeddings", shape, None, initializer, regularizer, trainable)
        return embedding_lookup(table, convert_to_tensor(ids))
