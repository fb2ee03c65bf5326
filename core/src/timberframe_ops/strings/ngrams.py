"""StringNGrams: neighbouring strings of rows, joined."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.shapes import Shape


def _shape(c: InferenceContext) -> Sequence[Shape]:
    if any(width < 1 for width in c.attrs["ngram_widths"]):
        raise c.late_error(f"ngram_widths are {list(c.attrs['ngram_widths'])}; they must be at least 1")
    return [(None,), c.shapes[1]]


def _padding(attrs: Attrs, width: int) -> int:
    """Returns how many strings are added at each end for ngrams of a width: none of them consists of these alone."""
    return width - 1 if attrs["pad_width"] < 0 else min(attrs["pad_width"], width - 1)


def _joined(attrs: Attrs, row: Sequence[bytes], width: int) -> list[bytes]:
    """Returns all of `width` neighbouring strings of a row with what is added at its ends."""
    added = _padding(attrs, width)
    padded = [attrs["left_pad"].encode()] * added + list(row) + [attrs["right_pad"].encode()] * added
    separator = attrs["separator"].encode()
    return [separator.join(padded[i : i + width]) for i in range(len(padded) - width + 1)]


def _of_row(attrs: Attrs, row: Sequence[bytes]) -> list[bytes]:
    made = [text for width in attrs["ngram_widths"] for text in _joined(attrs, row, width)]
    if made or not row or not attrs["preserve_short_sequences"]:
        return made
    if attrs["pad_width"] < 0:
        raise InvalidArgumentError(
            f"pad_width is {attrs['pad_width']} and ngram_widths are empty; preserve_short_sequences needs one"
        )
    return _joined(attrs, row, len(row) + 2 * attrs["pad_width"])


def _check_splits(splits: Sequence[int], count: int) -> None:
    """Raises where splits do not divide so many strings into rows."""
    if splits[0] != 0:
        raise InvalidArgumentError(f"data_splits begin with {splits[0]}; 0 is required")
    for before, after in itertools.pairwise(splits):
        if not before <= after <= count:
            raise InvalidArgumentError(f"data_splits have {after} after {before}; [{before}, {count}] is allowed")
    if splits[-1] != count:
        raise InvalidArgumentError(f"data_splits end with {splits[-1]}; {count}, the number of strings, is required")


def _reference(attrs: Attrs, data: np.ndarray, data_splits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    texts, splits = data.reshape(-1).tolist(), data_splits.reshape(-1).tolist()
    if any(width < 1 for width in attrs["ngram_widths"]):
        raise InvalidArgumentError(f"ngram_widths are {list(attrs['ngram_widths'])}; they must be at least 1")
    rows: list[list[bytes]] = []
    if splits:
        _check_splits(splits, len(texts))
        rows = [_of_row(attrs, texts[i:j]) for i, j in itertools.pairwise(splits)]
    flat = [text for row in rows for text in row] if splits else [b""] * len(texts)
    made = np.empty(len(flat), object)
    made[:] = flat
    ends = np.cumsum([0, *map(len, rows)])[: len(splits)]
    return made, ends.astype(data_splits.dtype).reshape(data_splits.shape)


_TEXTS = ["ab", "", "ä", "c d", "e", "f"]
_ATTRS = {
    "separator": "|", "ngram_widths": (2,), "left_pad": "", "right_pad": "", "pad_width": 0,
    "preserve_short_sequences": False,
}  # fmt: skip


def _samples() -> Iterator[Sample]:
    texts = Arg(values=np.array([t.encode() for t in _TEXTS], object), dtype="string")
    for splits in ([0, 4, 4, 6], [0, 6], [0, 1, 2, 3, 4, 5, 6]):
        for widths in ((1,), (3,), (2, 1), ()):
            yield Sample([texts, Arg(values=splits)], {**_ATTRS, "ngram_widths": widths})
            padded = {"left_pad": "<", "right_pad": ">", "ngram_widths": widths}
            yield Sample([texts, Arg(values=splits)], {**_ATTRS, **padded, "pad_width": -1})
            yield Sample(
                [texts, Arg(values=splits)],
                {**_ATTRS, **padded, "pad_width": 1, "preserve_short_sequences": True},
            )
    yield Sample([Arg(values=np.zeros(0, object), dtype="string"), Arg(values=[0, 0])], _ATTRS)


def _errors() -> list[ErrorSample]:
    texts = Arg(values=np.array([b"a", b"b", b"c"], object), dtype="string")
    return [
        ErrorSample([texts, Arg(values=[1, 3])], "begin with 1; 0 is required", _ATTRS),
        ErrorSample([texts, Arg(values=[0, 2, 1, 3])], "have 1 after 2", _ATTRS),
        ErrorSample([texts, Arg(values=[0, 5, 3])], r"have 5 after 0; \[0, 3\] is allowed", _ATTRS),
        ErrorSample([texts, Arg(values=[0, 2])], "end with 2; 3, the number of strings", _ATTRS),
        ErrorSample([texts, Arg(values=[0, 3])], "must be at least 1", {**_ATTRS, "ngram_widths": (0,)}),
        ErrorSample(
            [texts, Arg(values=[0, 3])],
            "pad_width is -1",
            {**_ATTRS, "ngram_widths": (), "pad_width": -1, "preserve_short_sequences": True},
        ),
    ]


define_op(
    "StringNGrams",
    inputs=["data: string", "data_splits: Tsplits"],
    outputs=["ngrams: string", "ngrams_splits: Tsplits"],
    attrs=[
        "separator: string", "ngram_widths: list(int)", "left_pad: string", "right_pad: string", "pad_width: int",
        "preserve_short_sequences: bool", "Tsplits: {int32, int64} = DT_INT64",
    ],
    doc="The strings of each row of data, which lies between two splits, joined with as many neighbours as each width "
    "says, row by row and width by width, and where each row of them begins. pad_width strings, or one less than the "
    "width where it is negative, are added at both ends of a row. preserve_short_sequences: a row that is too short "
    "for all widths is joined as a whole.",
    shape=_shape,
    reference=_reference,
    gradient=NotDifferentiable("strings have no derivative"),
    samples=_samples,
    errors=_errors,
    on_host=True,
)  # fmt: skip
