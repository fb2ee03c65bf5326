"""Connectionist temporal classification: losses and decoders of sequences without alignment."""

from __future__ import annotations

from typing import Any

from timberframe.api.arrays import transpose
from timberframe.api.framework import name_scope
from timberframe.api.indexing import sequence_mask
from timberframe.api.reduction import renamed
from timberframe.api.selection import cast
from timberframe.api.sparse import sparse_tensor
from timberframe_core.dtypes import float32, int32, int64
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.sparse_tensor import SparseTensor

NAMESPACES = {
    "nn": (
        "collapse_repeated", "ctc_beam_search_decoder", "ctc_beam_search_decoder_v2", "ctc_greedy_decoder", "ctc_loss",
        "ctc_loss_v2",
    ),
}  # fmt: skip


def ctc_loss(
    labels: Any,
    inputs: Any = None,
    sequence_length: Any = None,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
    time_major: bool = True,
    logits: Any = None,
) -> Tensor:
    """Returns the negative log probability of each row of labels under logits, over all alignments: [batch].

    labels: an int32 SparseTensor [batch, labels]. inputs (logits is another name): [time, batch, classes], or [batch,
    time, classes] without time_major; the last class is the blank. sequence_length: int32 [batch], at most the time.
    preprocess_collapse_repeated: equal labels that follow each other count once. ctc_merge_repeated: an output that
    repeats is one label. ignore_longer_outputs_than_inputs: rows that need more steps than they have are left out,
    with a loss of 0; else they are an error.
    """
    given = sparse_tensor(labels, "tf.nn.ctc_loss: labels")
    found = renamed("logits", logits, "inputs", inputs)
    if found is None or sequence_length is None:
        missing = "logits" if found is None else "sequence_length"
        raise InvalidArgumentError(f"tf.nn.ctc_loss: {missing} not given; logits and sequence_length are required")
    x = convert_to_tensor(found, name="logits")
    kind = x.dtype
    if not time_major:
        x = transpose(x, [1, 0, 2])
    attrs = {
        "preprocess_collapse_repeated": preprocess_collapse_repeated, "ctc_merge_repeated": ctc_merge_repeated,
        "ignore_longer_outputs_than_inputs": ignore_longer_outputs_than_inputs,
    }  # fmt: skip
    wide = cast(x, float32) if kind.size < 4 else x
    loss, _ = apply_op("CTCLoss", [wide, given.indices, given.values, sequence_length], attrs)
    made: Tensor = loss if wide is x else cast(loss, kind)
    return made


def ctc_greedy_decoder(
    inputs: Any, sequence_length: Any, merge_repeated: bool = True, blank_index: int | None = None
) -> tuple[list[SparseTensor], Tensor]:
    """Returns the most probable class at each step of logits [time, batch, classes], without blanks.

    Returns a list of one int64 SparseTensor [batch, labels], and the negative sums of the logits [batch, 1].
    merge_repeated: equal ones that follow each other count once. blank_index: the last class if None.
    """
    attrs = {"merge_repeated": merge_repeated, "blank_index": blank_index}
    indices, values, shape, sums = apply_op("CTCGreedyDecoder", [inputs, sequence_length], attrs)
    return [SparseTensor(indices, values, shape)], sums


def ctc_beam_search_decoder(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1, merge_repeated: bool = True
) -> tuple[list[SparseTensor], Tensor]:
    """Returns the most probable sequences of labels under logits [time, batch, classes], whose last class is the blank.

    Returns top_paths int64 SparseTensors [batch, labels], the best first, and their log probabilities [batch,
    top_paths]. beam_width: how many prefixes are kept at each step. merge_repeated: equal labels that follow each other
    in a result count once.
    """
    attrs = {"beam_width": beam_width, "top_paths": top_paths, "merge_repeated": merge_repeated}
    made = apply_op("CTCBeamSearchDecoder", [inputs, sequence_length], attrs)
    return [SparseTensor(*made[i : 3 * top_paths : top_paths]) for i in range(top_paths)], made[-1]


def ctc_beam_search_decoder_v2(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[SparseTensor], Tensor]:
    """`ctc_beam_search_decoder` in whose results equal labels may follow each other."""
    return ctc_beam_search_decoder(inputs, sequence_length, beam_width, top_paths, merge_repeated=False)


def ctc_loss_v2(
    labels: Any,
    logits: Any,
    label_length: Any,
    logit_length: Any,
    logits_time_major: bool = True,
    unique: Any = None,
    blank_index: int | None = None,
    name: str | None = None,
) -> Tensor:
    """`ctc_loss` of labels that may be dense, and with a blank of any number: [batch].

    labels: integers [batch, labels], of which the first label_length [batch] of each row count, or a SparseTensor, with
    which label_length may be None. logits: [time, batch, classes], or [batch, time, classes] without logits_time_major.
    logit_length: [batch]. unique: what TensorFlow computes of the labels beforehand; changes nothing. blank_index: the
    number of the blank, also from the last one, -1; 0 by default, and required for a SparseTensor.
    """
    with name_scope(name, "ctc_loss", [logits]):
        if isinstance(labels, SparseTensor):
            if blank_index is None:
                raise InvalidArgumentError("tf.nn.ctc_loss_v2: labels are sparse; blank_index is required")
            places, numbers, shape = labels.indices, cast(labels.values, int32), labels.dense_shape
        else:
            dense = convert_to_tensor(labels, name="labels")
            shape = apply_op("Shape", [dense], {"out_type": int64})
            counted = sequence_mask(label_length, shape[1])
            places = apply_op("Where", [counted])
            numbers = cast(apply_op("GatherNd", [dense, places]), int32)
        x = convert_to_tensor(logits, name="logits")
        classes = apply_op("Shape", [x])[-1]
        blank: Any = convert_to_tensor(blank_index or 0, int32)
        if (blank_index or 0) < 0:
            blank = blank + classes
        order = apply_op("ConcatV2", [[_range(0, blank), _range(blank + 1, classes), [blank]], 0])
        numbers = numbers - cast(apply_op("Greater", [numbers, blank]), int32)
        sparse = SparseTensor(places, numbers, shape)
        return ctc_loss(sparse, apply_op("GatherV2", [x, order, -1]), logit_length, time_major=logits_time_major)


def _range(start: Any, end: Any) -> Tensor:
    made: Tensor = apply_op("Range", [start, end, 1])
    return made


def collapse_repeated(labels: Any, seq_length: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Returns the labels [batch, labels] without those that equal the one before, and how many are left in each row.

    seq_length: how many labels of each row count. Rows are filled with zeros up to the longest that is left.
    """
    with name_scope(name, "collapse_repeated_labels", [labels, seq_length]):
        given = convert_to_tensor(labels, name="labels")
        differs = apply_op("NotEqual", [given[:, 1:], given[:, :-1]])
        first = apply_op("OnesLike", [apply_op("Equal", [given[:, :1], given[:, :1]])])
        kept = apply_op("ConcatV2", [[first, differs], 1])
        sizes = apply_op("Shape", [given])
        kept = apply_op("LogicalAnd", [kept, sequence_mask(seq_length, sizes[1])])
        counts = apply_op("Sum", [cast(kept, int32), 1])
        places = apply_op("Where", [sequence_mask(counts)])
        longest = apply_op("Max", [counts, 0])
        values = apply_op("GatherNd", [given, apply_op("Where", [kept])])
        shape = apply_op("Pack", [[cast(sizes[0], int64), cast(longest, int64)]])
        made: Tensor = apply_op("ScatterNd", [places, values, shape])
        return made, cast(counts, convert_to_tensor(seq_length).dtype)
