"""ParseSequenceExampleV2: the features of SequenceExample messages."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe.host_ops.examples import VALUE_KINDS, labelled_messages, parsed
from timberframe_core.dtypes import DType
from timberframe_core.graphdef import messages
from timberframe_core.plugin.host_ops import HostCall, host_op
from timberframe_core.shapes import Shape

Steps = list[list[Any]]
"""For each step of a sequence its values."""


@host_op("ParseSequenceExampleV2")
def _parse(call: HostCall) -> list[np.ndarray]:
    serialized, names, *rest = call.inputs
    sparse_keys, dense_keys, ragged, list_sparse_keys, list_dense_keys, list_ragged, may_lack, *defaults = rest
    if ragged.size or list_ragged.size:
        raise call.error("ragged keys are given; ragged tensors are not here, they must be empty")
    attrs, single = call.attrs, serialized.ndim == 0
    found = labelled_messages(call, messages.SequenceExample, serialized, names)
    contexts = [(label, m.context.feature) for label, m in found]
    lists = [(label, m.feature_lists.feature_list) for label, m in found]
    context = parsed(
        call, contexts, single, zip(sparse_keys, attrs["context_sparse_types"], strict=True),
        zip(dense_keys, attrs["Tcontext_dense"], attrs["context_dense_shapes"], defaults, strict=True),
    )  # fmt: skip
    sparse_lists = [
        _sparse_lists(_all_steps(call, lists, k.decode(), d, True), d, single)
        for k, d in zip(list_sparse_keys, attrs["feature_list_sparse_types"], strict=True)
    ]
    dense_lists = [
        _dense_lists(call, k.decode(), _all_steps(call, lists, k.decode(), d, bool(lack)), d, s, single)
        for k, d, s, lack in zip(
            list_dense_keys,
            attrs["feature_list_dense_types"],
            attrs["feature_list_dense_shapes"],
            may_lack,
            strict=True,
        )
    ]
    return [
        *context, *(part for parts in zip(*sparse_lists, strict=True) for part in parts),
        *(x for x, _ in dense_lists), *(n for _, n in dense_lists),
    ]  # fmt: skip


def _all_steps(call: HostCall, lists: list[tuple[str, Any]], key: str, dtype: DType, may_lack: bool) -> list[Steps]:
    """Returns the steps of a sequence in each message."""
    wanted, made = VALUE_KINDS[dtype.name], []
    for label, features in lists:
        if key not in features and not may_lack:
            raise call.error(f"{label}: sequence '{key}' is missing; allow_missing lets it be empty")
        steps = []
        for i, feature in enumerate(features[key].feature if key in features else ()):
            held = feature.WhichOneof("kind")
            if held not in (None, wanted):
                raise call.error(f"{label}: step {i} of sequence '{key}' has a {held}; a {wanted} is required")
            steps.append(list(getattr(feature, wanted).value))
        made.append(steps)
    return made


def _sparse_lists(found: list[Steps], dtype: DType, single: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    places = [(b, t, j) for b, s in enumerate(found) for t, step in enumerate(s) for j in range(len(step))]
    values = np.array([x for steps in found for step in steps for x in step], dtype.numpy)
    sizes = [
        len(found), max((len(s) for s in found), default=0), max((len(x) for s in found for x in s), default=0),
    ]  # fmt: skip
    first = 1 if single else 0
    return np.array(places, np.int64).reshape(-1, 3)[:, first:], values, np.array(sizes[first:], np.int64)


def _dense_lists(
    call: HostCall, key: str, found: list[Steps], dtype: DType, shape: Shape, single: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Steps padded to the longest sequence, and the lengths."""
    sizes = [d or 0 for d in shape or ()]
    count = int(np.prod(sizes, dtype=np.int64))
    lengths = [len(steps) for steps in found]
    made = np.full((len(found), max(lengths, default=0), count), b"" if dtype.name == "string" else 0, dtype.numpy)
    for b, steps in enumerate(found):
        for t, step in enumerate(steps):
            if len(step) != count:
                raise call.error(f"step {t} of sequence '{key}' has {len(step)} values; its shape needs {count}")
            made[b, t] = step
    whole = made.reshape(*made.shape[:2], *sizes)
    numbers = np.array(lengths, np.int64)
    return (whole[0], numbers[0]) if single else (whole, numbers)
