"""Embeddings of `tf.contrib.layers`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timberframe.api.arrays import concat, reshape, shape
from timberframe.api.composites import embedding_lookup
from timberframe.api.framework import convert_to_tensor, name_scope
from timberframe.api.indexing import gather
from timberframe.api.reduction import reduce_mean
from timberframe.api.search import unique
from timberframe.api.sparse_embeddings import embedding_lookup_sparse
from timberframe.api.sparse_embeddings import safe_embedding_lookup_sparse as safe_embedding_lookup_sparse
from timberframe.api.variable_scope import variable_scope
from timberframe_contrib.contrib.framework import model_variable
from timberframe_contrib.contrib.layers.shaping import dense_to_sparse
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.sparse_tensor import SparseTensor


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
    """Returns the rows of the variable `embeddings` [vocab_size, embed_dim], in scope `EmbedSequence`, that ids name.

    ids: [batch, time] of integers; the result is [batch, time, embed_dim]. With reuse vocab_size and embed_dim may be
    left out. unique is TensorFlow's and changes nothing.
    """
    if not (reuse or (vocab_size and embed_dim)):
        raise InvalidArgumentError(
            f"embed_sequence: vocab_size is {vocab_size} and embed_dim {embed_dim}; both are required without reuse"
        )
    with variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        sizes = [vocab_size, embed_dim] if vocab_size and embed_dim else None
        table = model_variable("embeddings", sizes, None, initializer, regularizer, trainable)
        return embedding_lookup(table, convert_to_tensor(ids))


def bow_encoder(
    ids: Any,
    vocab_size: int,
    embed_dim: int,
    sparse_lookup: bool = True,
    initializer: Any = None,
    regularizer: Callable[[Any], Any] | None = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: Any = None,
) -> Any:
    """Returns the mean of the rows of `embeddings` that each example's ids name, [batch,
    embed_dim], in scope `BowEncoder`.

    ids: [batch, length] of integers, or a SparseTensor of them. sparse_lookup: whether ids that are -1 are left out;
    without it they must all be rows.
    """
    if isinstance(ids, SparseTensor) and not sparse_lookup:
        raise InvalidArgumentError("bow_encoder: ids is a SparseTensor; it requires sparse_lookup")
    with variable_scope(scope, "BowEncoder", [ids], reuse=reuse):
        table = model_variable("embeddings", [vocab_size, embed_dim], None, initializer, regularizer, trainable)
        if not sparse_lookup:
            return reduce_mean(embedding_lookup(table, convert_to_tensor(ids)), 1)
        sparse = ids if isinstance(ids, SparseTensor) else dense_to_sparse(ids, -1)
        return embedding_lookup_sparse(table, sparse, None, combiner="mean")


def embedding_lookup_unique(params: Any, ids: Any, partition_strategy: str = "mod", name: str | None = None) -> Any:
    """`tf.nn.embedding_lookup`, which gathers a row once however often ids name it."""
    with name_scope(name, "EmbeddingLookupUnique", [params, ids]):
        given = convert_to_tensor(ids)
        distinct, places = unique(reshape(given, [-1]))
        found = gather(embedding_lookup(params, distinct, partition_strategy), places)
        outputs = reshape(found, concat([shape(given), shape(found)[1:]], 0))
        outputs.set_shape(given.shape.concatenate(found.shape[1:]))
        return outputs
