"""Restoring variables: everything is checked before anything is assigned."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from timberframe.api.partitioned_variables import PartitionedVariable, parts_of
from timberframe.saving.reader import CheckpointReader
from timberframe.saving.session_values import Savable
from timberframe_core.errors import InvalidArgumentError, MissingNameError, OpError
from timberframe_core.runtime.session import BaseSession
from timberframe_core.shapes import format_shape, num_elements

_SHOWN = 10


def restore_values(
    session: BaseSession, reader: CheckpointReader, variables: Mapping[str, Savable], reshape: bool = False
) -> None:
    """Gives variables their values of a checkpoint, all or none.

    variables: by the name that each has in the checkpoint. reshape: another shape with the same number of elements is
    accepted, too. Raises NotFoundError where names are missing, InvalidArgumentError that lists every mismatch of dtype
    or shape, and DataLossError for damaged values; all variables then keep theirs.
    """
    check_fit(reader, variables, reshape)
    if variables:
        values = ((reader.read(name), variable) for name, variable in variables.items())
        arrays = [_as_declared(array, variable) if reshape else array for array, variable in values]
        divided = [x for array, v in zip(arrays, variables.values(), strict=True) for x in values_of_parts(array, v)]
        session.assign_variables(parts_of(variables.values()), divided)


def values_of_parts(array: np.ndarray, variable: Savable) -> list[np.ndarray]:
    """Returns the values of the parts of a partitioned variable, or the one value of another."""
    if not isinstance(variable, PartitionedVariable):
        return [array]
    ends = np.cumsum([v.shape.as_list()[variable.axis] for v in variable])[:-1]
    return np.split(array, ends, variable.axis)


def check_fit(reader: CheckpointReader, variables: Mapping[str, Savable], reshape: bool = False) -> None:
    """Raises an error that lists everything in which the variables differ from the checkpoint."""
    missing = [name for name in variables if name not in reader.entries]
    wrong = [
        text for name, v in variables.items() if name in reader.entries for text in _differs(reader, name, v, reshape)
    ]
    if not missing and not wrong:
        return
    restored = "variable" if len(variables) == 1 else f"{len(variables)} variables"
    facts = [*([f"it lacks {', '.join(map(repr, missing))}"] if missing else []), *wrong]
    unused = [name for name in sorted(reader.entries) if name not in variables]
    has = ""
    if missing:
        more = f" and {len(unused) - _SHOWN} more" if len(unused) > _SHOWN else ""
        has = f"; of other names it has {', '.join(unused[:_SHOWN]) or 'none'}{more}"
    kind: type[OpError] = InvalidArgumentError if wrong else MissingNameError
    raise kind(
        f"checkpoint '{reader.path}': does not suit the {restored} to restore: {'; '.join(facts)}{has}. "
        "No variable was changed. It may be of another model; "
        "var_list can name the variables to restore, or map names of the checkpoint to them"
    )


def _differs(reader: CheckpointReader, name: str, variable: Savable, reshape: bool) -> list[str]:
    entry, declared = reader.entries[name], variable.shape
    found = []
    if entry.dtype is not variable.dtype:
        found.append(f"'{name}' is {entry.dtype.name} in it and {variable.dtype.name} in the graph")
    same_size = reshape and declared.is_fully_defined() and declared.num_elements() == num_elements(entry.shape)
    if not declared.is_compatible_with(list(entry.shape)) and not same_size:
        found.append(f"'{name}' has shape {format_shape(entry.shape)} in it and {declared} in the graph")
    return found


def _as_declared(array: np.ndarray, variable: Savable) -> np.ndarray:
    shape = variable.shape
    return array.reshape([size or 0 for size in shape]) if shape.is_fully_defined() else array
