"""Losses that look at a few classes drawn at random, and what draws them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from timberframe.api.arrays import concat, reshape, shape, stop_gradient
from timberframe.api.composites import embedding_lookup
from timberframe.api.cross_entropy import sigmoid_cross_entropy_with_logits, softmax_cross_entropy_with_logits_v2
from timberframe.api.framework import name_scope
from timberframe.api.random_seeds import seed_attrs
from timberframe.api.reduction import reduce_sum
from timberframe.api.selection import cast
from timberframe_core.dtypes import int64
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor

NAMESPACES = {
    "nn": (
        "all_candidate_sampler", "compute_accidental_hits", "fixed_unigram_candidate_sampler",
        "log_uniform_candidate_sampler", "nce_loss", "sampled_softmax_loss", "uniform_candidate_sampler",
    ),
    "random": (
        "all_candidate_sampler", "fixed_unigram_candidate_sampler", "log_uniform_candidate_sampler",
        "uniform_candidate_sampler",
    ),
}  # fmt: skip


def _sampler(
    op: str, true_classes: Any, num_true: int, num_sampled: int, unique: bool, seed: Any, name: Any, **attrs: Any
) -> tuple[Tensor, Tensor, Tensor]:
    common = {"num_true": num_true, "num_sampled": num_sampled, "unique": unique}
    made = apply_op(op, [cast(true_classes, int64)], {**common, **attrs, **seed_attrs(seed)}, name)
    return made[0], made[1], made[2]


def log_uniform_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: int | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Draws classes of [0, range_max), class k with probability log((k + 2) / (k + 1)) / log(range_max + 1).

    It suits classes in the order of how frequent they are. true_classes: [batch, num_true]. unique: no class twice.
    Returns the classes [num_sampled], and how often the true ones and those drawn are expected among them.
    """
    op = "LogUniformCandidateSampler"
    return _sampler(op, true_classes, num_true, num_sampled, unique, seed, name, range_max=range_max)


def uniform_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: int | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Draws classes of [0, range_max), all equally probable; otherwise as `log_uniform_candidate_sampler`."""
    op = "UniformCandidateSampler"
    return _sampler(op, true_classes, num_true, num_sampled, unique, seed, name, range_max=range_max)


def fixed_unigram_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int, vocab_file: str = "",
    distortion: float = 1.0, num_reserved_ids: int = 0, num_shards: int = 1, shard: int = 0,
    unigrams: Sequence[float] = (), seed: int | None = None, name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Draws classes of [0, range_max) as often as given weights say; otherwise as `log_uniform_candidate_sampler`.

    unigrams: the weights; or vocab_file: a file with one in the last column of each line, separated by a comma.
    distortion: the power that is taken of them; 0 makes all classes equally probable. num_reserved_ids: classes of
    weight 0 before the others. num_shards, shard: of several samplers this one has the classes whose number, modulo
    num_shards, is `shard`.
    """
    attrs = {
        "range_max": range_max, "vocab_file": vocab_file, "distortion": distortion, "unigrams": list(unigrams),
        "num_reserved_ids": num_reserved_ids, "num_shards": num_shards, "shard": shard,
    }  # fmt: skip
    op = "FixedUnigramCandidateSampler"
    return _sampler(op, true_classes, num_true, num_sampled, unique, seed, name, **attrs)


def all_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, seed: int | None = None, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns all num_sampled classes, each of which is expected once; otherwise as `log_uniform_candidate_sampler`."""
    return _sampler("AllCandidateSampler", true_classes, num_true, num_sampled, unique, seed, name)


def compute_accidental_hits(
    true_classes: Any, sampled_candidates: Any, num_true: int, seed: int | None = None, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns where a true class was drawn: rows, places among those drawn, and weights of the least float."""
    attrs = {"num_true": num_true, **seed_attrs(seed)}
    inputs = [cast(true_classes, int64), cast(sampled_candidates, int64)]
    made = apply_op("ComputeAccidentalHits", inputs, attrs, name)
    return made[0], made[1], made[2]


def nce_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    partition_strategy: str = "mod",
    name: str | None = "nce_loss",
) -> Any:
    """Noise-contrastive estimation (Gutmann and Hyvärinen 2010): the true classes against some drawn; [batch].

    weights: [num_classes, size], biases: [num_classes], labels: [batch, num_true], inputs: [batch, size].
    sampled_values: what a sampler gave; by default num_sampled classes of `log_uniform_candidate_sampler`.
    remove_accidental_hits: a true class that was drawn does not count as wrong.
    """
    with name_scope(name, "nce_loss", [weights, biases, labels, inputs]):
        logits, truth = _sampled_logits(
            weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values,
            remove_accidental_hits, partition_strategy, None,
        )  # fmt: skip
        return reduce_sum(sigmoid_cross_entropy_with_logits(labels=truth, logits=logits), 1)


def sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    partition_strategy: str = "mod",
    name: str | None = "sampled_softmax_loss",
    seed: int | None = None,
) -> Any:
    """Returns cross entropy of softmax over the true classes and some drawn (Jean et al. 2014); [batch].

    It is for training alone. The arguments are those of `nce_loss`.
    """
    with name_scope(name, "sampled_softmax_loss", [weights, biases, labels, inputs]):
        logits, truth = _sampled_logits(
            weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values,
            remove_accidental_hits, partition_strategy, seed,
        )  # fmt: skip
        return softmax_cross_entropy_with_logits_v2(labels=stop_gradient(truth), logits=logits)


def _sampled_logits(
    weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: int, num_classes: int, num_true: int,
    sampled_values: Any, remove_hits: bool, partition_strategy: str, seed: int | None,
) -> tuple[Any, Any]:  # fmt: skip
    """Logits of the true classes and those drawn, less the logarithm of how often each is expected; and labels."""
    truth, given = cast(convert_to_tensor(labels), int64), convert_to_tensor(inputs)
    if sampled_values is None:
        sampled_values = log_uniform_candidate_sampler(truth, num_true, num_sampled, True, num_classes, seed)
    drawn, true_count, drawn_count = (stop_gradient(convert_to_tensor(x)) for x in sampled_values)
    flat, drawn = reshape(truth, [-1]), cast(drawn, int64)
    ids, rows = concat([flat, drawn], 0), shape(flat)[0]
    all_weights = embedding_lookup(weights, ids, partition_strategy)
    all_biases = embedding_lookup(biases, ids, partition_strategy)
    size = given.shape.as_list()[-1]
    true_weights = reshape(all_weights[:rows], [-1, num_true, shape(given)[-1] if size is None else size])
    products = apply_op("Mul", [apply_op("ExpandDims", [given, 1]), true_weights])
    true_logits: Any = apply_op("Sum", [products, [2]])
    true_logits = true_logits + reshape(all_biases[:rows], [-1, num_true])
    drawn_logits: Any = apply_op("MatMul", [given, all_weights[rows:]], {"transpose_b": True}) + all_biases[rows:]
    if remove_hits:
        where, which, least = compute_accidental_hits(truth, drawn, num_true)
        places = apply_op("Pack", [[where, cast(which, where.dtype)]], {"axis": 1})
        least = cast(least, drawn_logits.dtype)
        drawn_logits = drawn_logits + apply_op("ScatterNd", [places, least, shape(drawn_logits)])
    true_logits = true_logits - apply_op("Log", [cast(true_count, given.dtype)])
    drawn_logits = drawn_logits - apply_op("Log", [cast(drawn_count, given.dtype)])
    parts = [apply_op("OnesLike", [true_logits]) / num_true, apply_op("ZerosLike", [drawn_logits])]
    return concat([true_logits, drawn_logits], 1), concat(parts, 1)
