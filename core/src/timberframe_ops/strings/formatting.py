"""StringFormat: values in texts, as `tf.print` shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.shapes import Shape
from timberframe_ops.array.checks import element_text

_ESCAPES = {9: "\\t", 10: "\\n", 13: "\\r", 34: '\\"', 39: "\\'", 92: "\\\\"}


def nested_text(x: np.ndarray, summarize: int) -> str:
    """Returns the elements in brackets, of each dimension the first and last `summarize` (all if negative)."""
    ends = x.size if summarize < 0 else min(summarize, x.size)
    return _nested(x, 0, x.ndim, ends)


def _nested(x: Any, depth: int, rank: int, ends: int) -> str:
    if depth == rank:
        return _one(x)
    count = len(x)
    shown = [_nested(x[i], depth + 1, rank, ends) for i in range(min(ends, count))]
    if count > 2 * ends:
        shown.append("...")
    shown += [_nested(x[i], depth + 1, rank, ends) for i in range(max(ends, count - ends), count)]
    between = " " if depth == rank - 1 else "\n" * (rank - depth - 1) + " " * (depth + 1)
    first = between if shown[:1] == ["..."] else ""
    return f"[{first}{between.join(shown)}]"


def _one(x: Any) -> str:
    value = x[()] if isinstance(x, np.ndarray) else x
    if not isinstance(value, bytes):
        return element_text(value)
    text = "".join(_ESCAPES.get(b, chr(b) if b > 31 and b != 127 else f"\\{b:03o}") for b in value)
    return f'"{text.encode("latin-1").decode(errors="backslashreplace")}"'


def _format(attrs: Attrs, *inputs: np.ndarray) -> np.ndarray:
    pieces = attrs["template"].split(attrs["placeholder"]) if attrs["placeholder"] else [attrs["template"]]
    if len(pieces) - 1 != len(inputs):
        raise InvalidArgumentError(
            f"template {attrs['template']!r} has {len(pieces) - 1} placeholders for {len(inputs)} inputs; "
            "each needs one"
        )
    texts = [nested_text(np.asarray(x), attrs["summarize"]) for x in inputs]
    whole = pieces[0] + "".join(t + p for t, p in zip(texts, pieces[1:], strict=True))
    return np.array(whole.encode(), object)


def _shape(c: InferenceContext) -> Sequence[Shape]:
    return [()]


define_op(
    "StringFormat",
    inputs=["inputs: T"],
    outputs=["output: string"],
    attrs=["T: list(type) >= 0", "template: string = '%s'", "placeholder: string = '%s'", "summarize: int = 3"],
    doc="The template with each input in place of a placeholder: of each dimension the first and last `summarize` "
    "elements (-1: all).",
    shape=_shape,
    reference=_format,
    gradient=NotDifferentiable("a text has no derivative"),
    on_host=True,
)
