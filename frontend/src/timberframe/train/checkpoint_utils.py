"""Looking into checkpoints, and starting variables from them."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from timberframe.api.variable_store import VariableStore
from timberframe.api.variables import Variable, outermost
from timberframe.saving.formats import exists, open_checkpoint
from timberframe.saving.reader import CheckpointReader, MissingCheckpointError
from timberframe.saving.restoring import check_fit
from timberframe.train.checkpoint_state import latest_checkpoint
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, constant_op
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.operation import Tensor


def NewCheckpointReader(filepattern: str) -> CheckpointReader:  # noqa: N802 - TensorFlow's name
    """Returns a reader of the checkpoint of this path, whether ours, TensorFlow's or a .safetensors file."""
    return open_checkpoint(os.fspath(filepattern))


def load_checkpoint(ckpt_dir_or_file: str) -> CheckpointReader:
    """Returns a reader of the checkpoint of this path, or of the latest one of a folder."""
    path = os.fspath(ckpt_dir_or_file)
    if os.path.isdir(path) and not exists(path):
        latest = latest_checkpoint(path)
        if latest is None:
            raise MissingCheckpointError(
                f"folder '{path}': its file 'checkpoint' names no checkpoint; give the path of a checkpoint"
            )
        path = latest
    return open_checkpoint(path)


def list_variables(ckpt_dir_or_file: str) -> list[tuple[str, list[int]]]:
    """Returns names and shapes of the tensors of a checkpoint, sorted by name."""
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


def load_variable(ckpt_dir_or_file: str, name: str) -> np.ndarray:
    """Returns the value of a tensor of a checkpoint; ``name:0`` means the same as ``name``."""
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))


def init_from_checkpoint(ckpt_dir_or_file: str, assignment_map: Mapping[str, Any]) -> None:
    """Makes the initializers of variables give the values of a checkpoint, which are read now.

    assignment_map: a name in the checkpoint -> a variable or the name of one; or a scope in the checkpoint, with a
    slash at its end, -> a scope of variables. ``/`` is the scope of all. Raises as `Saver.restore` does where they do
    not suit, and InvalidArgumentError for variables that do not exist.
    """
    reader = load_checkpoint(ckpt_dir_or_file)
    store = VariableStore.of(outermost(get_default_graph()))
    chosen: list[tuple[str, Variable]] = []
    for source, target in assignment_map.items():
        if source.endswith("/"):
            chosen.extend(_in_scope(store, source, target))
        else:
            variable = store.find(target) if isinstance(target, str) else target
            if not isinstance(variable, Variable):
                raise InvalidArgumentError(
                    f"init_from_checkpoint: '{target}' is no variable that get_variable made; name one or give it"
                )
            chosen.append((source, variable))
    for source, variable in chosen:
        check_fit(reader, {source: variable})
    for source, variable in chosen:
        start_from(variable, functools.partial(constant_op, reader.read(source), variable.dtype))


def _in_scope(store: VariableStore, source: str, target: Any) -> list[tuple[str, Variable]]:
    if not isinstance(target, str) or not target.endswith("/"):
        raise InvalidArgumentError(
            f"init_from_checkpoint: scope '{source}' goes to {target!r}; a scope with a slash at its end is required"
        )
    before, scope = source.removeprefix("/"), target.removeprefix("/")
    found = [(before + name.removeprefix(scope), v) for name, v in store.items() if name.startswith(scope)]
    if not found:
        raise InvalidArgumentError(
            f"init_from_checkpoint: scope '{target}' has no variables that get_variable made; make them first"
        )
    return found


def start_from(variable: Variable, make: Callable[[], Tensor]) -> None:
    """Makes a variable's initializer give the tensor that a function makes."""
    graph = variable.graph
    with graph.as_default(), graph.control_dependencies(None), graph.name_scope("init_from_checkpoint"):
        start = make()
        with variable.on_its_device():
            initializer = apply_op("AssignVariableOp", [variable.handle, start], {"validate_shape": True})
    variable.initial_value, variable.initializer = start, initializer
