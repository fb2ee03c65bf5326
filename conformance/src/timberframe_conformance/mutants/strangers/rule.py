"""The level at which a bug must be noticed: that of the networks which call what it concerns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from timberframe_conformance.case import LEVELS
from timberframe_conformance.levels.requirement import Requirement, kind_of, plain, requirements

PARTS = {
    "memory": "core", "copies": "core", "queue": "core", "programs": "core", "failures": "training",
    "traces": "training",
}  # fmt: skip
"""Parts of a device that are about no op, with their levels.

Every network uses the first ones. That errors of the driver arrive, and that traces tell the truth, is asked of a
device on which people train: see `Device.inject_failure`.
"""


def level_of_bug(
    op: str, types: Mapping[str, str], attrs: Mapping[str, Any], example: Sequence[Any] | None = None
) -> str:
    """Returns the lowest level whose networks call the op in these dtypes, with these attrs and inputs of this kind.

    types, attrs: those that the bug is limited to; every other may have any value. example: the shapes of inputs, or
    {"values": ...} where they decide, for a bug that needs inputs of this kind; None: any.
    """
    for level in LEVELS[:-1]:
        if any(_calls(r, op, types, attrs, example) for r in requirements(level)):
            return level
    return LEVELS[-1]


def _calls(
    r: Requirement, op: str, types: Mapping[str, str], attrs: Mapping[str, Any], example: Sequence[Any] | None
) -> bool:
    own = dict(r.types)
    return (
        r.op == op
        and all(own.get(n) == dtype for n, dtype in types.items())
        and all(r.attrs[n] == plain(v) for n, v in attrs.items() if n in r.attrs)
        and (example is None or kind_of(_described(example)) in {kind_of(list(x)) for x in r.inputs})
    )


def _described(example: Any) -> Any:
    """Returns an example in the form of the levels' data."""
    if isinstance(example, list):
        return [_described(x) for x in example]
    return example if isinstance(example, dict) else {"shape": list(example)}


def highest(levels: Sequence[str]) -> str:
    """Returns the last of some levels."""
    return max(levels, key=LEVELS.index)
