"""Saver: writes the variables of a session to checkpoints, and restores them."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Any

from timberframe.api.framework import GraphKeys
from timberframe.api.partitioned_variables import PartitionedVariable, grouped
from timberframe.api.variable_functions import variable_of
from timberframe.api.variables import Variable
from timberframe.saving.bundle_writer import write_bundle
from timberframe.saving.files import file_errors, replace_file
from timberframe.saving.formats import open_checkpoint
from timberframe.saving.meta_graph import build_meta_graph
from timberframe.saving.reader import MissingCheckpointError
from timberframe.saving.restoring import restore_values
from timberframe.saving.session_values import check_session, current_values
from timberframe.train.checkpoint_state import get_checkpoint_mtimes, remove_checkpoint, update_checkpoint_state
from timberframe.train.meta_graph_export import export_meta_graph
from timberframe_core.arguments import instance, listed
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError, WrongStateError
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graphdef import messages

VarList = Mapping[str, Any] | Sequence[Any] | None


class Saver:
    """Saves variables to checkpoints and restores them.

    var_list: variables, or a map from names in the checkpoint to variables; by default all global variables of the
    current graph. max_to_keep: how many checkpoints stay, None or 0 for all. keep_checkpoint_every_n_hours: besides
    these, one for each period of that length. reshape: restores values of another shape with the same number of
    elements. defer_build: the variables are looked up at first use. allow_empty: without variables nothing is saved,
    which else is an error. pad_step_number: steps in file names have eight digits. save_relative_paths: the file
    `checkpoint` names checkpoints relative to itself. saver_def: a SaverDef that gives max_to_keep and
    keep_checkpoint_every_n_hours. The others are TensorFlow's and change nothing.

    A checkpoint has the files that TensorFlow writes, version 2. It is complete or not there, whenever the process
    ends; old ones are removed after a new one is complete.
    """

    def __init__(
        self,
        var_list: VarList = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        saver_def: Any = None,
        builder: Any = None,
        defer_build: bool = False,
        allow_empty: bool = False,
        write_version: int = 2,
        pad_step_number: bool = False,
        save_relative_paths: bool = False,
        filename: str | None = None,
    ) -> None:
        instance(max_to_keep, (int, NoneType), "Saver: max_to_keep", "an int")
        instance(keep_checkpoint_every_n_hours, (int, float), "Saver: keep_checkpoint_every_n_hours", "a number")
        self.saver_def = messages.SaverDef(
            max_to_keep=max_to_keep or 0, keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours, sharded=sharded
        )
        self.saver_def.version = 2
        if saver_def is not None:
            self.saver_def = messages.as_message(saver_def, messages.SaverDef, "saver_def")
        self._var_list = var_list
        self._reshape = reshape
        self._allow_empty = allow_empty
        self._pad_step_number = pad_step_number
        self._save_relative_paths = save_relative_paths
        self._variables: dict[str, Variable | PartitionedVariable] | None = None
        self._last_checkpoints: list[tuple[str, float]] = []
        self._keep_after = time.time() + self.saver_def.keep_checkpoint_every_n_hours * 3600
        if not defer_build:
            self.build()

    def build(self) -> None:
        """Looks up the variables, if that has not been done."""
        if self._variables is None:
            found = by_name(self._var_list)
            if self._var_list is None:  # programs read what a saver without a list saves, as TensorFlow has it
                self._var_list = list(found.values())
            self._variables = found
            if not self._variables and not self._allow_empty:
                self._variables = None
                raise InvalidArgumentError("Saver: there are no variables to save; make them first or set allow_empty")

    @property
    def variables(self) -> dict[str, Variable | PartitionedVariable]:
        """The variables by the names that they have in checkpoints."""
        self.build()
        assert self._variables is not None
        return self._variables

    # Saving

    def save(
        self,
        sess: Any,
        save_path: str,
        global_step: Any = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> str | None:
        """Writes a checkpoint and returns its path: save_path, with a hyphen and the step where global_step is given.

        global_step: a number, or a tensor or variable. latest_filename: the file that names the latest, instead of
        `checkpoint`. write_meta_graph: also writes the graph. write_state: updates the file `checkpoint` and removes
        old checkpoints. Returns None where there is nothing to save.

        Raises FailedPreconditionError that names all variables without a value, ResourceExhaustedError where the disk
        is full, PermissionDeniedError where it may not be written to.
        """
        variables = self.variables
        session = check_session(sess, list(variables.values()))
        instance(save_path, (str, os.PathLike), "Saver: save_path", "a path")
        folder, family = os.path.split(os.fspath(save_path))
        latest = "checkpoint" if latest_filename is None else latest_filename
        _check_names(family, latest, numbered=global_step is not None)
        path = self.prefix(session, save_path, global_step)
        with file_errors(f"Saver: checkpoint '{path}' cannot be written"):
            if variables:
                write_bundle(path, current_values(session, variables), family)
            if write_meta_graph and not session.graph.eager:
                self._write_graph(session, f"{path}.{meta_graph_suffix}")
            if variables and write_state:
                self._record(path)
                self._write_state(folder, path, latest)
                self._remove_old(meta_graph_suffix)
        return path if variables else None

    def prefix(self, sess: Any, save_path: Any, global_step: Any = None) -> str:
        """Returns the path of the checkpoint that `save` writes for a step."""
        path: str = os.fspath(save_path)
        if global_step is None:
            return path
        fetched = hasattr(global_step, "graph") and not global_step.graph.eager
        step = int(sess.run(global_step) if fetched else global_step)
        return f"{path}-{step:08d}" if self._pad_step_number else f"{path}-{step}"

    def _write_graph(self, session: Any, path: str) -> None:
        meta = build_meta_graph(session.graph, saver_def=self.saver_def)
        replace_file(Path(path), meta.SerializeToString(deterministic=True))

    def _record(self, path: str) -> None:
        if self.saver_def.max_to_keep:
            self._last_checkpoints = [c for c in self._last_checkpoints if c[0] != path]
            self._last_checkpoints.append((path, time.time()))

    def _write_state(self, folder: str, path: str, latest: str) -> None:
        kept = self._last_checkpoints[-self.saver_def.max_to_keep :] if self.saver_def.max_to_keep else [(path, 0.0)]
        paths, stamps = [p for p, _ in kept], [t or time.time() for _, t in kept]
        if self._save_relative_paths:
            path, paths = os.path.relpath(path, folder or "."), [os.path.relpath(p, folder or ".") for p in paths]
            folder = os.path.abspath(folder or ".")  # by which they stay as they are
        update_checkpoint_state(folder or ".", path, paths, latest, stamps, self._keep_after)

    def _remove_old(self, meta_graph_suffix: str) -> None:
        if not self.saver_def.max_to_keep:
            return
        while len(self._last_checkpoints) > self.saver_def.max_to_keep:
            path, saved = self._last_checkpoints.pop(0)
            if saved > self._keep_after:
                self._keep_after += self.saver_def.keep_checkpoint_every_n_hours * 3600
            else:
                remove_checkpoint(path, meta_graph_suffix=meta_graph_suffix)

    # Restoring

    def restore(self, sess: Any, save_path: str) -> None:
        """Gives the variables their values of a checkpoint: all of them or, after an error, none.

        No initializer needs to have run. Raises MissingCheckpointError (a NotFoundError and ValueError) where there is
        no such checkpoint, NotFoundError where it lacks variables, InvalidArgumentError that lists all other shapes and
        dtypes, DataLossError for damaged files.
        """
        if save_path is None:
            raise MissingCheckpointError(
                "Saver: the path to restore is None, as latest_checkpoint returns it for a folder without checkpoints; "
                "a path that Saver.save returned is required"
            )
        instance(save_path, (str, os.PathLike), "Saver: save_path", "a path")
        variables = self.variables
        session = check_session(sess, list(variables.values()))
        with file_errors(f"Saver: checkpoint '{save_path}' cannot be read"):
            if not variables:
                return
            restore_values(session, open_checkpoint(os.fspath(save_path)), variables, self._reshape)

    # What was saved

    @property
    def last_checkpoints(self) -> list[str]:
        """The paths of the checkpoints that max_to_keep counts, the oldest first; without a limit none."""
        return [path for path, _ in self._last_checkpoints]

    def set_last_checkpoints(self, last_checkpoints: Sequence[str]) -> None:
        """Sets the checkpoints that max_to_keep counts, the oldest first."""
        self._last_checkpoints = [(path, float("inf")) for path in last_checkpoints]

    def set_last_checkpoints_with_time(self, last_checkpoints_with_time: Sequence[tuple[str, float]]) -> None:
        """Sets the checkpoints that max_to_keep counts, with the times at which they were saved."""
        self._last_checkpoints = [(path, float(saved)) for path, saved in last_checkpoints_with_time]

    def recover_last_checkpoints(self, checkpoint_paths: Sequence[str]) -> None:
        """Counts these checkpoints for max_to_keep, as far as they exist: in a process that continues with them."""
        times = {p: get_checkpoint_mtimes([p]) for p in checkpoint_paths}
        self.set_last_checkpoints_with_time([(p, found[0]) for p, found in times.items() if found])

    # As a message

    def as_saver_def(self) -> Any:
        """Returns its SaverDef."""
        return self.saver_def

    def to_proto(self, export_scope: str | None = None) -> Any:
        """Returns its SaverDef."""
        return self.saver_def

    @staticmethod
    def from_proto(saver_def: Any, import_scope: str | None = None) -> Saver:
        """Returns a Saver of all global variables (of a scope) with the settings of a SaverDef,
        or those it has by default.
        """
        prefix = f"{import_scope}/" if import_scope else ""
        found = get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, prefix or None)
        named: dict[str, Any] = {}
        for v in found:
            if v.save_slice_info is None:
                named[v.op.name.removeprefix(prefix)] = v
            else:
                named.setdefault(v.save_slice_info.full_name.removeprefix(prefix), []).append(v)
        return Saver(named, saver_def=saver_def, allow_empty=True)

    def export_meta_graph(
        self, filename: str | None = None, collection_list: Sequence[str] | None = None, as_text: bool = False,
        export_scope: str | None = None, clear_devices: bool = False, clear_extraneous_savers: bool = False,
        strip_default_attrs: bool = False, save_debug_info: bool = False,
    ) -> Any:  # fmt: skip
        """`tf.train.export_meta_graph` with this Saver's settings."""
        return export_meta_graph(
            filename, saver_def=self.saver_def, collection_list=collection_list, as_text=as_text,
            export_scope=export_scope, clear_devices=clear_devices, clear_extraneous_savers=clear_extraneous_savers,
            strip_default_attrs=strip_default_attrs, save_debug_info=save_debug_info,
        )  # fmt: skip


def by_name(var_list: VarList) -> dict[str, Variable | PartitionedVariable]:
    """Variables by their names in a checkpoint; InvalidArgumentError for two of one name and what is no variable."""
    if var_list is None and get_default_graph().eager:
        raise WrongStateError("Saver: var_list is None in eager execution; a list or dict of variables is required")
    if var_list is None:
        var_list = get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES)
    if isinstance(var_list, Mapping):
        pairs: list[tuple[Any, Any]] = list(var_list.items())
    else:
        pairs = [(None, v) for v in listed(var_list, "Saver: var_list", "variables")]
    found: dict[str, Variable | PartitionedVariable] = {}
    parts: dict[str, list[Variable]] = {}
    for given, variable in pairs:
        variable = grouped(given, variable) if isinstance(variable, list | tuple) else variable_of(variable)
        if not isinstance(variable, Variable | PartitionedVariable):
            raise InvalidTypeError(f"Saver: var_list has a {type(variable).__name__}; tf.Variable is required")
        if given is None and isinstance(variable, Variable) and variable.save_slice_info is not None:
            parts.setdefault(variable.save_slice_info.full_name, []).append(variable)
            continue
        name = _own_name(variable) if given is None else given
        if name in found and found[name] is not variable:
            raise InvalidArgumentError(f"Saver: two variables have the name '{name}'; names in a checkpoint are unique")
        found[name] = variable
    found.update((name, grouped(name, held)) for name, held in parts.items())
    return found


def _own_name(variable: Variable | PartitionedVariable) -> str:
    return variable.name if isinstance(variable, PartitionedVariable) else variable.op.name


def _check_names(family: str, latest: str, numbered: bool) -> None:
    if not family:
        raise InvalidArgumentError(
            "Saver: save_path names a folder; a file name such as 'model.ckpt' is required in it"
        )
    if os.path.split(latest)[0]:
        raise InvalidArgumentError(f"Saver: latest_filename is '{latest}'; it must have no folder in it")
    if latest == family and not numbered:
        raise InvalidArgumentError(f"Saver: latest_filename and save_path are both '{latest}'; they must differ")
