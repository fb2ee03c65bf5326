"""Warm starts: initializers that give the values of a checkpoint."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from timberframe.api.framework import GraphKeys, get_collection
from timberframe.api.state import Variable
from timberframe.train.checkpoint_utils import init_from_checkpoint
from timberframe_core.errors import InvalidArgumentError, UnimplementedError


def warm_start(
    ckpt_to_initialize_from: Any,
    vars_to_warm_start: Any = ".*",
    var_name_to_vocab_info: Any = None,
    var_name_to_prev_var_name: Mapping[str, str] | None = None,
) -> None:
    """Makes the initializers of the default graph's variables give the values of a checkpoint.

    ckpt_to_initialize_from: the checkpoint, or a folder with checkpoints. vars_to_warm_start: a regular expression that
    names of trainable variables match at their start, a list of expressions for names of any variables, a list of
    variables, or None for none. var_name_to_prev_var_name: their names in the checkpoint, where these differ.
    var_name_to_vocab_info must be None.
    """
    if var_name_to_vocab_info:
        raise UnimplementedError("warm_start: var_name_to_vocab_info is given; vocabularies are not mapped")
    renamed = dict(var_name_to_prev_var_name or {})
    chosen = _chosen(vars_to_warm_start)
    unknown = renamed.keys() - {v.op.name for v in chosen}
    if unknown:
        raise InvalidArgumentError(
            f"warm_start: var_name_to_prev_var_name has {', '.join(sorted(unknown))}, which vars_to_warm_start "
            "does not choose; it must"
        )
    if chosen:
        assignment: dict[str, Any] = {renamed.get(v.op.name, v.op.name): v for v in chosen}
        init_from_checkpoint(ckpt_to_initialize_from, assignment)


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
