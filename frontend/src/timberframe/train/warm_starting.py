"""Warm starts: initializers that give the values of a checkpoint."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from timberframe.api.framework import GraphKeys, get_collection
from timberframe.api.selection import where_v2
from timberframe.api.variables import Variable
from timberframe.gfile import GFile
from timberframe.train.checkpoint_utils import init_from_checkpoint, load_variable, start_from
from timberframe_core.dtypes import bool_
from timberframe_core.errors import InvalidArgumentError, NotFoundError
from timberframe_core.graph.apply import constant_op


class VocabInfo(NamedTuple):
    """Vocabularies of a variable that has a row for each word, now and in a checkpoint.

    new_vocab, old_vocab: files with a word in each line, of which the first new_vocab_size and old_vocab_size count,
    all for -1. num_oov_buckets: rows after those of the words. backup_initializer: of the rows of words that are not
    in the old vocabulary, zeros by default. axis: that of the words, 0 or 1.
    """

    new_vocab: str
    new_vocab_size: int
    num_oov_buckets: int
    old_vocab: str
    old_vocab_size: int = -1
    backup_initializer: Any = None
    axis: int = 0

    def positions(self) -> np.ndarray:
        """Returns the old row of each new one, -1 where there is none."""
        before = {word: i for i, word in enumerate(_words(self.old_vocab, self.old_vocab_size))}
        rows = [before.get(word, -1) for word in _words(self.new_vocab, self.new_vocab_size)]
        return np.array(rows + [-1] * self.num_oov_buckets)


def _words(path: str, size: int) -> list[str]:
    try:
        with GFile(path) as file:
            lines: list[str] = file.read().splitlines()
    except OSError as e:
        raise NotFoundError(f"VocabInfo: vocabulary file '{path}' cannot be read ({e})") from None
    return lines if size == -1 else lines[:size]


def warm_start(
    ckpt_to_initialize_from: Any,
    vars_to_warm_start: Any = ".*",
    var_name_to_vocab_info: Mapping[str, VocabInfo] | None = None,
    var_name_to_prev_var_name: Mapping[str, str] | None = None,
) -> None:
    """Makes the initializers of the default graph's variables give the values of a checkpoint.

    ckpt_to_initialize_from: the checkpoint, or a folder with checkpoints. vars_to_warm_start: a regular expression that
    names of trainable variables match at their start, a list of expressions for names of any variables, a list of
    variables, or None for none. var_name_to_prev_var_name: their names in the checkpoint, where these differ.
    var_name_to_vocab_info: the vocabularies of variables whose rows are those of words, where these differ.
    """
    renamed, vocabularies = dict(var_name_to_prev_var_name or {}), dict(var_name_to_vocab_info or {})
    chosen = {v.op.name: v for v in _chosen(vars_to_warm_start)}
    for what, given in (("var_name_to_prev_var_name", renamed), ("var_name_to_vocab_info", vocabularies)):
        if unknown := given.keys() - chosen.keys():
            raise InvalidArgumentError(
                f"warm_start: {what} has {', '.join(sorted(unknown))}, which vars_to_warm_start does not choose; it "
                "must"
            )
    for name, info in vocabularies.items():
        values = load_variable(ckpt_to_initialize_from, renamed.get(name, name))
        _map_words(chosen.pop(name), values, info)
    if chosen:
        init_from_checkpoint(ckpt_to_initialize_from, {renamed.get(name, name): v for name, v in chosen.items()})


def _map_words(variable: Variable, values: np.ndarray, info: VocabInfo) -> None:
    """Makes a variable begin with the rows of a checkpoint's values, those of its own words."""
    positions, shape = info.positions(), variable.shape.as_list()
    fits = values.ndim == 2 and info.axis in (0, 1) and values.shape[1 - info.axis] == shape[1 - info.axis]
    if not fits or len(positions) != shape[info.axis]:
        raise InvalidArgumentError(
            f"warm_start: variable '{variable.op.name}' of shape {shape} has {len(positions)} words along axis "
            f"{info.axis}, and the checkpoint's value has shape {list(values.shape)}; matrices with one row for each "
            "word "
            "are required"
        )
    if positions.max(initial=-1) >= values.shape[info.axis]:
        raise InvalidArgumentError(
            f"warm_start: the old vocabulary of '{variable.op.name}' has more words than the checkpoint's value of "
            "shape "
            f"{list(values.shape)} has rows; give old_vocab_size"
        )
    known = np.expand_dims(positions >= 0, 1 - info.axis)
    rows = np.where(known, np.take(values, np.maximum(positions, 0), info.axis), 0).astype(values.dtype)

    def make() -> Any:
        start = constant_op(rows, variable.dtype)
        if info.backup_initializer is None:
            return start
        others = info.backup_initializer(shape, dtype=variable.dtype)
        return where_v2(constant_op(known, bool_), start, others)

    start_from(variable, make)


def _chosen(which: Any) -> list[Variable]:
    if which is None:
        return []
    if isinstance(which, str):
        return _matching(GraphKeys.TRAINABLE_VARIABLES, which)
    if all(isinstance(item, str) for item in which):
        return list(dict.fromkeys(v for item in which for v in _matching(GraphKeys.GLOBAL_VARIABLES, item)))
    return list(which)


def _matching(collection: str, pattern: str) -> list[Variable]:
    return [v for v in get_collection(collection) if re.match(pattern, v.op.name)]
