"""Staging areas: elements that some runs put in and others get. The ops find an area by its name, without a handle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from timberframe_core.ops.definition.opdef import InferenceContext, NotDifferentiable, define_op
from timberframe_core.shapes import Shape, format_shape

_STATE = NotDifferentiable("what a staging area holds is no function of tensors")
_LIMITS = ("capacity: int >= 0 = 0", "memory_limit: int >= 0 = 0")
_NAMES = ("container: string = ''", "shared_name: string = ''")
_WHICH = "of the area of that shared_name (the node's name where it is empty)"


def _components(c: InferenceContext) -> Sequence[Shape]:
    return [None] * len(c.attrs["dtypes"])


def _peeked(c: InferenceContext) -> Sequence[Shape]:
    if c.shapes[0] not in (None, ()):
        raise c.error(f"index has shape {format_shape(c.shapes[0])}; it must be a scalar")
    return _components(c)


def _define(
    name: str, doc: str, shape: Any, inputs: Sequence[str], output: str, dtypes: str = "dtypes: list(type) >= 1"
) -> None:
    define_op(
        name,
        inputs=inputs,
        outputs=[output] if output else [],
        attrs=[*_LIMITS, dtypes, *_NAMES],
        doc=doc,
        shape=shape,
        gradient=_STATE,
        on_host=True,
        blocks=name in ("Stage", "Unstage", "StagePeek"),
        stateful=True,
    )


_define(
    "Stage",
    f"Adds an element {_WHICH}; waits while there are `capacity` elements, or would be more than `memory_limit` bytes "
    "(0: any number).",
    lambda c: [],
    ["values: dtypes"],
    "",
)
_define("Unstage", f"Takes the first element {_WHICH}; waits until there is one.", _components, [], "values: dtypes")
_define(
    "StagePeek",
    f"Gives the element at an index {_WHICH}, which stays; waits until there are as many.",
    _peeked,
    ["index: int32"],
    "values: dtypes",
)
_define("StageSize", f"Gives the number of elements {_WHICH}.", lambda c: [()], [], "size: int32", "dtypes: list(type)")
_define("StageClear", f"Drops the elements {_WHICH}.", lambda c: [], [], "", "dtypes: list(type)")
