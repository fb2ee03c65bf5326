"""Connectionist temporal classification: losses and decoders of sequences without alignment."""

from __future__ import annotations

from typing import Any

from timberframe.api.arrays import transpose
from timberframe.api.reduction import renamed
from timberframe.api.selection import cast
from timberframe.api.sparse import sparse_tensor
from timberframe_core.dtypes import float32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.sparse_tensor import SparseTensor

NAMESPACES = {"nn": ("ctc_beam_search_decoder", "ctc_greedy_decoder", "ctc_loss")}


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
    """The negative log probability of each row of labels under logits, over all alignments: [batch].

    labels: an int32 SparseTensor [batch, labels]. inputs (logits is another name): [time, batch, classes], or [batch,
    time, classes] without time_major; the last class is the blank. sequence_length: int32 [batch], at most the time.
    preprocess_collapse_repeated: equal labels that follow each other count once. ctc_merge_repeated: an output that
    repeats is one label. ignore_longer_outputs_than_inputs: rows that need more steps than they have are left out,
    with a loss of 0; else they are an error.
    """
    given = sparse_tensor(labels, "tf.nn.ctc_loss: labels")
    found = renamed("logits", logits, "inputs", inputs)
    if found is None or sequence_length is None:
        raise InvalidArgumentError("tf.nn.ctc_loss: logits and sequence_length are required")
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
    """The most probable class at each step of logits [time, batch, classes], without blanks.

    Returns a list of one int64 SparseTensor [batch, labels], and the negative sums of the logits [batch, 1].
    merge_repeated: equal ones that follow each other count once. blank_index: the last class if None.
    """
    attrs = {"merge_repeated": merge_repeated, "blank_index": blank_index}
    indices, values, shape, sums = apply_op("CTCGreedyDecoder", [inputs, sequence_length], attrs)
    return [SparseTensor(indices, values, shape)], sums


def ctc_beam_search_decoder(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1, merge_repeated: bool = True
) -> tuple[list[SparseTensor], Tensor]:
    """The most probable sequences of labels under logits [time, batch, classes], whose last class is the blank.

    Returns top_paths int64 SparseTensors [batch, labels], the best first, and their log probabilities [batch,
    top_paths]. beam_width: how many prefixes are kept at each step. merge_repeated: equal labels that follow each other
    in a result count once.
    """
    attrs = {"beam_width": beam_width, "top_paths": top_paths, "merge_repeated": merge_repeated}
    made = apply_op("CTCBeamSearchDecoder", [inputs, sequence_length], attrs)
    return [SparseTensor(*made[i : 3 * top_paths : top_paths]) for i in range(top_paths)], made[-1]
