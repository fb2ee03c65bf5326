"""Ops that draw a few of many classes, for losses that look at no others: TensorFlow's candidate_sampling_ops."""

from __future__ import annotations

import numpy as np

from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.shapes import Shape, format_shape

_DRAWN = NotDifferentiable("what is drawn is no function of tensors")


def _sampler_shape(c: InferenceContext) -> list[Shape]:
    shape, count = c.shapes[0], c.attrs["num_sampled"]
    most = c.attrs.get("range_max", count)
    if shape is not None and (len(shape) != 2 or shape[1] not in (None, c.attrs["num_true"])):
        raise c.error(
            f"true_classes has shape {format_shape(shape)}; [batch, num_true = {c.attrs['num_true']}] is required"
        )
    if c.attrs["unique"] and count > most:
        raise c.error(f"num_sampled is {count} with unique; it must be at most range_max, {most}")
    return [(count,), (None if shape is None else shape[0], c.attrs["num_true"]), (count,)]


_RANGE, _SEEDS = ("range_max: int >= 1",), ("seed: int = 0", "seed2: int = 0")
_UNIGRAMS = (
    "vocab_file: string = ''", "distortion: float = 1.0", "num_reserved_ids: int = 0", "num_shards: int >= 1 = 1",
    "shard: int >= 0 = 0", "unigrams: list(float) = []",
)  # fmt: skip

for _name, _attrs, _doc in (
    (
        "LogUniformCandidateSampler",
        _RANGE,
        "Draws num_sampled classes of [0, range_max), of probability log((k + 2) / (k + 1)) / log(range_max + 1) for "
        "class k; with `unique` each at most once.",
    ),
    (
        "UniformCandidateSampler",
        _RANGE,
        "Draws num_sampled classes of [0, range_max), all equally probable; with `unique` each at most once.",
    ),
    (
        "FixedUnigramCandidateSampler",
        (*_RANGE, *_UNIGRAMS),
        "Draws num_sampled classes of [0, range_max) as often as their weights to the power `distortion` say; with "
        "`unique` each at most once. The weights are `unigrams`, or the last columns of the lines of vocab_file; "
        "num_reserved_ids classes of weight 0 come before. Of several shards the classes are those whose number "
        "modulo num_shards is `shard`.",
    ),
    ("AllCandidateSampler", (), "All num_sampled classes, each of which is expected once."),
):
    define_op(
        _name,
        inputs=["true_classes: int64"],
        outputs=["sampled_candidates: int64", "true_expected_count: float", "sampled_expected_count: float"],
        attrs=["num_true: int >= 1", "num_sampled: int >= 1", "unique: bool", *_attrs, *_SEEDS],
        doc=f"{_doc} Gives the classes, and how often the true classes and those drawn are expected among them.",
        shape=_sampler_shape,
        gradient=_DRAWN,
        on_host=True,
        stateful=True,
    )


def _hits(attrs: Attrs, true_classes: np.ndarray, sampled: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows, _, drawn = np.nonzero(true_classes[:, :, None] == sampled)
    weights = np.full(len(rows), -np.finfo(np.float32).max, np.float32)
    return rows.astype(np.int32), drawn.astype(np.int64), weights


define_op(
    "ComputeAccidentalHits",
    inputs=["true_classes: int64", "sampled_candidates: int64"],
    outputs=["indices: int32", "ids: int64", "weights: float"],
    attrs=["num_true: int >= 1", "seed: int = 0", "seed2: int = 0"],
    doc="Where a true class was drawn: the rows, the places among those drawn, and as weights the least float.",
    shape=lambda c: [(None,)] * 3,
    reference=_hits,
    gradient=_DRAWN,
    on_host=True,
)
