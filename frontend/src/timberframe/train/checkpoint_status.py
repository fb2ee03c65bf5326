"""What a tf.train.Checkpoint has restored, and has not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from timberframe.api.partitioned_variables import parts_of
from timberframe.saving.object_graph import OBJECT_GRAPH, ObjectGraph, full_name, is_variable, key_of
from timberframe.saving.reader import CheckpointReader
from timberframe.saving.restoring import restore_values
from timberframe.saving.session_values import check_session
from timberframe.saving.trackable import Trackable, tracked_by
from timberframe_core.graph.defaults import get_default_session
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graphdef import messages


class _InCheckpoint(ABC):
    """Which of the objects at a root a checkpoint has values for."""

    def __init__(self, root: Any, reader: CheckpointReader) -> None:
        self.root, self.reader = root, reader
        self._restored: set[Any] = set()

    @abstractmethod
    def variables(self) -> dict[str, Any]:
        """Returns the variables that it has values for, by their names in it."""

    @abstractmethod
    def unused(self) -> list[str]:
        """Returns what is in the checkpoint, and not at the root."""

    def missing(self) -> list[str]:
        """Returns what is at the root, and not in the checkpoint."""
        found = set(self.variables().values())
        known = ObjectGraph(self.root).variables()
        return [key for key, v in known.items() if v not in found and not key.startswith("save_counter/")]

    def go_on(self) -> None:
        """Restores, in eager execution, what has been made since."""
        self.restore({key: v for key, v in self.variables().items() if v not in self._restored}, None)

    def restore(self, variables: dict[str, Any], session: Any) -> None:
        """Gives these variables their values, all or none."""
        used = check_session(session, list(variables.values()), "Checkpoint") if variables else session
        restore_values(used, self.reader, variables)
        self._restored.update(variables.values())


class ObjectsInCheckpoint(_InCheckpoint):
    """A checkpoint with an object graph: what has the same path from the root is the same."""

    def __init__(self, root: Any, reader: CheckpointReader) -> None:
        super().__init__(root, reader)
        data = reader.read(OBJECT_GRAPH).item()
        what = f"checkpoint '{reader.path}': its object graph"
        self._nodes: Any = messages.as_message(data, messages.TrackableObjectGraph, what).nodes

    def _matched(self) -> dict[int, Any]:
        """Objects by the numbers of their nodes."""
        found = {0: self.root}
        waiting = [0]
        while waiting:
            number = waiting.pop(0)
            parts = tracked_by(found[number])
            for child in self._nodes[number].children:
                if child.local_name in parts and child.node_id not in found:
                    found[child.node_id] = parts[child.local_name]
                    waiting.append(child.node_id)
        for number, keeper in list(found.items()):
            for slot in self._nodes[number].slot_variables:
                variable = found.get(slot.original_variable_node_id)
                if isinstance(keeper, Trackable) and variable is not None:
                    made = keeper._slots_of(variable).get(slot.slot_name)
                    if made is not None:
                        found[slot.slot_variable_node_id] = made
        return found

    def go_on(self) -> None:
        """Restores what has been made since; objects that lack some of the checkpoint then go on when they get it."""
        super().go_on()
        found = self._matched()
        for value in found.values():
            if isinstance(value, Trackable):
                value._restoration = self if len(found) < len(self._nodes) else None

    def variables(self) -> dict[str, Any]:
        nodes = ((key_of(self._nodes[number]), value) for number, value in self._matched().items())
        return {key: value for key, value in nodes if key is not None and is_variable(value)}

    def unused(self) -> list[str]:
        found = self._matched()
        return [_label(n, node) for n, node in enumerate(self._nodes) if n not in found]


def _label(number: int, node: Any) -> str:
    return key_of(node) or f"object {number} ({', '.join(c.local_name for c in node.children) or 'without parts'})"


class NamesInCheckpoint(_InCheckpoint):
    """A checkpoint of a tf.train.Saver: variables have their own names in it."""

    def variables(self) -> dict[str, Any]:
        named = {full_name(v): v for v in ObjectGraph(self.root).variables().values()}
        return {name: v for name, v in named.items() if self.reader.has_tensor(name)}

    def unused(self) -> list[str]:
        return sorted(self.reader.entries.keys() - self.variables().keys())


class CheckpointLoadStatus:
    """What `tf.train.Checkpoint.restore` returns: restores in a graph, and says whether all was restored."""

    def __init__(self, checkpoint: _InCheckpoint) -> None:
        self._checkpoint = checkpoint

    def assert_consumed(self) -> CheckpointLoadStatus:
        """AssertionError unless all of the checkpoint is in the program, and all of the program in the checkpoint."""
        unused = self._checkpoint.unused()
        if unused:
            raise AssertionError(
                f"Unresolved object in checkpoint '{self._checkpoint.reader.path}': {', '.join(unused)}; "
                "the program has no such attributes, or has not made them yet"
            )
        return self.assert_existing_objects_matched()

    def assert_existing_objects_matched(self) -> CheckpointLoadStatus:
        """AssertionError unless all variables that the program has made are in the checkpoint."""
        missing = self._checkpoint.missing()
        if missing:
            raise AssertionError(
                f"Some Python objects were not bound to values of checkpoint '{self._checkpoint.reader.path}': "
                f"{', '.join(missing)}; the checkpoint is of another program"
            )
        return self

    def assert_nontrivial_match(self) -> CheckpointLoadStatus:
        """AssertionError unless something besides the root is in both."""
        if not self._checkpoint.variables():
            raise AssertionError(f"Nothing except the root object matched checkpoint '{self._checkpoint.reader.path}'")
        return self

    def expect_partial(self) -> CheckpointLoadStatus:
        """Itself: that not all is restored needs no warning."""
        return self

    def run_restore_ops(self, session: Any = None) -> None:
        """Restores in a session of a graph, the default one if None; does nothing in eager execution."""
        if session is not None or not get_default_graph().eager:
            used = _session(session)
            with used.graph.as_default():
                self._checkpoint.restore(self._checkpoint.variables(), used)

    def initialize_or_restore(self, session: Any = None) -> None:
        """`run_restore_ops`, and runs the initializers of the variables that the checkpoint does not have."""
        self.run_restore_ops(session)
        restored = set(self._checkpoint.variables().values())
        _initialize(self._checkpoint.root, restored, session)


class InitializationOnlyStatus:
    """The status where there is no checkpoint: it can only initialize."""

    def __init__(self, root: Any) -> None:
        self._root = root

    def assert_consumed(self) -> InitializationOnlyStatus:
        """AssertionError."""
        raise AssertionError("No checkpoint specified (save_path=None); nothing is being restored.")

    assert_existing_objects_matched = assert_nontrivial_match = assert_consumed

    def expect_partial(self) -> InitializationOnlyStatus:
        """Itself."""
        return self

    def run_restore_ops(self, session: Any = None) -> None:
        """AssertionError."""
        self.assert_consumed()

    def initialize_or_restore(self, session: Any = None) -> None:
        """Runs the initializers of all variables; in eager execution they have values."""
        _initialize(self._root, set(), session)


def _session(given: Any) -> Any:
    return check_session(get_default_session() if given is None else given, [], "Checkpoint")


def _initialize(root: Any, others: set[Any], session: Any) -> None:
    """Runs the initializers of the variables at a root that are not among others."""
    if session is None and get_default_graph().eager:
        return
    used = _session(session)
    with used.graph.as_default():
        left = [v for v in ObjectGraph(root).variables().values() if v not in others]
        used.run([v.initializer for v in parts_of(left)])
