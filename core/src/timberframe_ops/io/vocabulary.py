"""GenerateVocabRemapping: where the words of one vocabulary file stand in another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from timberframe_core.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.shapes import Shape, format_shape


def _shape(c: InferenceContext) -> Sequence[Shape]:
    for i, name in enumerate(("new_vocab_file", "old_vocab_file")):
        if c.shapes[i] not in (None, ()):
            raise c.error(f"{name} has shape {format_shape(c.shapes[i])}; it must be a scalar")
    if c.attrs["new_vocab_offset"] < 0:
        raise c.error(f"new_vocab_offset is {c.attrs['new_vocab_offset']}; it must not be negative")
    return [(c.attrs["num_new_vocab"],), ()]


def _words(path: bytes, size: int) -> list[bytes]:
    """Returns the lines of a file, or the first `size` of them (-1: all); carriage returns are dropped."""
    try:
        with open(path, "rb") as file:
            lines = file.read().replace(b"\r", b"").split(b"\n")
    except OSError as error:
        raise NotFoundError(f"vocabulary file '{path.decode(errors='replace')}' cannot be read: {error}") from None
    if not lines[-1]:
        del lines[-1]
    if len(lines) < size:
        raise InvalidArgumentError(
            f"vocabulary file '{path.decode(errors='replace')}' has {len(lines)} lines; {size} are required"
        )
    return lines if size < 0 else lines[:size]


def _reference(attrs: Attrs, new_vocab_file: np.ndarray, old_vocab_file: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    offset, count = attrs["new_vocab_offset"], attrs["num_new_vocab"]
    if not count:
        return np.zeros(0, np.int64), np.array(0, np.int32)
    new = _words(bytes(new_vocab_file.item()), offset + count)[offset:]
    old = _words(bytes(old_vocab_file.item()), attrs["old_vocab_size"])
    numbers: dict[bytes, int] = {}
    for number, word in enumerate(old):
        if numbers.setdefault(word, number) != number:
            raise FailedPreconditionError(
                f"the old vocabulary has '{word.decode(errors='replace')}' in lines {numbers[word]} and {number}; each "
                "word must be there once"
            )
    remapping = np.array([numbers.get(word, -1) for word in new], np.int64)
    return remapping, np.array((remapping >= 0).sum(), np.int32)


define_op(
    "GenerateVocabRemapping",
    inputs=("new_vocab_file: string", "old_vocab_file: string"),
    outputs=("remapping: int64", "num_present: int32"),
    attrs=("new_vocab_offset: int >= 0", "num_new_vocab: int >= 0", "old_vocab_size: int >= -1 = -1"),
    doc="For the num_new_vocab lines of one file from new_vocab_offset on: their line numbers in another one, -1 for "
    "those that it lacks; and how many it has. Of the old file the first old_vocab_size lines count, -1 being all.",
    shape=_shape,
    reference=_reference,
    gradient=NotDifferentiable("files are not functions of tensors"),
    on_host=True,
)
