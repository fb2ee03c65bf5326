"""tf.train.Checkpoint: saves variables under the names of the attributes that lead to them, in TensorFlow's files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from timberframe.api.variables import Variable
from timberframe.saving.bundle_writer import Saved, write_bundle
from timberframe.saving.files import file_errors
from timberframe.saving.formats import open_checkpoint
from timberframe.saving.object_graph import OBJECT_GRAPH, ObjectGraph
from timberframe.saving.session_values import check_session, current_values
from timberframe.saving.trackable import Trackable, is_tracked
from timberframe.train.checkpoint_state import update_checkpoint_state
from timberframe.train.checkpoint_status import (
    CheckpointLoadStatus,
    InitializationOnlyStatus,
    NamesInCheckpoint,
    ObjectsInCheckpoint,
)
from timberframe_core.dtypes import string
from timberframe_core.errors import InvalidTypeError
from timberframe_core.graph.defaults import get_default_session
from timberframe_core.graph.graph import get_default_graph


class Checkpoint(Trackable):
    """Saves and restores the variables of objects, each under the path of attributes that leads to it.

    kwargs: variables, optimizers, layers, other Checkpoints, and lists and dicts of these; each becomes an attribute.
    Attributes may be set later, too. The files are TensorFlow's, and so are all names in them, those of an optimizer's
    slots included: TensorFlow restores them, and its are restored here.
    """

    _untracked = ("_save_counter",)

    def __init__(self, **kwargs: Any) -> None:
        self._save_counter: Any = None
        self._count: Any = None
        for name, value in sorted(kwargs.items()):
            if not is_tracked(value) and not isinstance(value, list | dict):
                raise InvalidTypeError(
                    f"Checkpoint: {name} is a {type(value).__name__}; a variable, optimizer, layer, Checkpoint, or a "
                    "list or dict of these is required"
                )
            setattr(self, name, value)

    def _tracked(self) -> dict[str, Any]:
        own = super()._tracked()
        return own if self._save_counter is None else {**own, "save_counter": self._save_counter}

    @property
    def save_counter(self) -> Any:
        """The variable that counts the calls of `save`; made when it is first asked for."""
        if self._save_counter is None:
            self._save_counter = Variable(np.int64(0), trainable=False, name="save_counter")
        return self._save_counter

    def write(self, file_prefix: str, session: Any = None) -> str:
        """Writes a checkpoint of this path, which it returns; it counts nothing, and updates no file `checkpoint`.

        session: of the variables in a graph; the default one if None. Raises FailedPreconditionError that names all
        variables without a value.
        """
        path: str = os.fspath(file_prefix)
        with _used(session) as used:
            graph = ObjectGraph(self)
            variables = graph.variables()
            checked = check_session(used, list(variables.values()), "Checkpoint")
            message = graph.message().SerializeToString(deterministic=True)
            tensors = current_values(checked, variables, "Checkpoint")
        tensors[OBJECT_GRAPH] = Saved(string, (), lambda: np.array(message, object))
        with file_errors(f"Checkpoint: '{path}' cannot be written"):
            write_bundle(path, tensors)
        return path

    def save(self, file_prefix: str, session: Any = None) -> str:
        """Writes a checkpoint of the path file_prefix, a hyphen and how many were saved; returns the path.

        It is the latest one that the file `checkpoint` of the folder names.
        """
        path = self.write(f"{os.fspath(file_prefix)}-{self.count(session)}", session)
        folder, name = os.path.split(path)
        update_checkpoint_state(os.path.abspath(folder), name, [name])
        return path

    def count(self, session: Any = None) -> int:
        """Adds one to `save_counter`, and returns it."""
        with _used(session) as used:
            if used is None:
                return int(self.save_counter.assign_add(1).numpy())
            if self._save_counter is None:
                used.run(self.save_counter.initializer)
            if self._count is None:
                self._count = self.save_counter.assign_add(1)
            return int(used.run(self._count))

    def restore(self, save_path: str | None) -> CheckpointLoadStatus | InitializationOnlyStatus:
        """Gives variables the values of a checkpoint: of this class, here or in TensorFlow, or of a Saver, by names.

        In eager execution at once, and those that are made later when they are made; in a graph when the status that is
        returned is asked to. The status also says what was not restored. save_path: None restores nothing.
        """
        if save_path is None:
            self.save_counter  # noqa: B018 - so that it is initialized with the others
            return InitializationOnlyStatus(self)
        reader = open_checkpoint(os.fspath(save_path))
        known = ObjectsInCheckpoint if reader.has_tensor(OBJECT_GRAPH) else NamesInCheckpoint
        found = known(self, reader)
        if get_default_graph().eager:
            found.go_on()
        self.save_counter  # noqa: B018 - as above
        return CheckpointLoadStatus(found)


@contextmanager
def _used(session: Any) -> Iterator[Any]:
    """The session that is meant, whose graph is the default one in the block; None in eager execution."""
    if session is None and get_default_graph().eager:
        yield None
        return
    used = check_session(get_default_session() if session is None else session, [], "Checkpoint")
    with used.graph.as_default():
        yield used
