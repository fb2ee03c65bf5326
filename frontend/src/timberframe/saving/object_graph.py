"""Object graphs: which objects hang together by which names, and what their variables are called in a checkpoint.

The names, and the message under OBJECT_GRAPH in which a checkpoint has the graph, are TensorFlow's.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from timberframe.api.partitioned_variables import PartitionedVariable
from timberframe.api.variables import Variable
from timberframe.saving.trackable import Trackable, tracked_by
from timberframe_core.graphdef import messages

OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
_VALUE = "VARIABLE_VALUE"


class ObjectGraph:
    """What hangs at an object. objects: each once, by its number; paths: by which names each is first reached."""

    def __init__(self, root: Any) -> None:
        self.objects: list[Any] = []
        self.paths: list[str] = []
        self.children: list[dict[str, int]] = []
        self.slots: list[tuple[int, int, str, int]] = []
        """The numbers of the object that keeps a slot and of the variable, the slot's name, and its own number."""
        self._numbers: dict[int, int] = {}
        self._waiting: deque[int] = deque()
        self._add(root, "")
        while self._waiting:
            number = self._waiting.popleft()
            for name, part in tracked_by(self.objects[number]).items():
                path = f"{self.paths[number]}/{_escaped(name)}".lstrip("/")
                self.children[number][name] = self._add(part, path)
        self._add_slots()

    def _add(self, value: Any, path: str) -> int:
        known = self._numbers.get(id(value))
        if known is not None:
            return known
        number = self._numbers[id(value)] = len(self.objects)
        self.objects.append(value)
        self.paths.append(path)
        self.children.append({})
        self._waiting.append(number)
        return number

    def _add_slots(self) -> None:
        found = list(enumerate(self.objects))
        variables = [(i, v) for i, v in found if is_variable(v)]
        for owner, keeper in found:
            if isinstance(keeper, Trackable):
                for i, variable in variables:
                    for name, slot in keeper._slots_of(variable).items():
                        path = f"{self.paths[i]}/.OPTIMIZER_SLOT/{self.paths[owner]}/{_escaped(name)}"
                        self.slots.append((owner, i, name, self._add(slot, path)))

    def variables(self) -> dict[str, Variable | PartitionedVariable]:
        """Returns all variables, by their names in a checkpoint."""
        return {f"{p}/.ATTRIBUTES/{_VALUE}": v for p, v in zip(self.paths, self.objects, strict=True) if is_variable(v)}

    def message(self) -> Any:
        """Returns the TrackableObjectGraph."""
        graph = messages.TrackableObjectGraph()
        for value, path, children in zip(self.objects, self.paths, self.children, strict=True):
            node = graph.nodes.add()
            for name, number in children.items():
                node.children.add(node_id=number, local_name=name)
            if is_variable(value):
                key = f"{path}/.ATTRIBUTES/{_VALUE}"
                node.attributes.add(name=_VALUE, full_name=full_name(value), checkpoint_key=key)
        for owner, variable, name, slot in self.slots:
            graph.nodes[owner].slot_variables.add(
                original_variable_node_id=variable, slot_name=name, slot_variable_node_id=slot
            )
        return graph


def is_variable(value: Any) -> bool:
    """Returns whether an object is a variable, which has a value to save."""
    return isinstance(value, Variable | PartitionedVariable)


def full_name(variable: Any) -> str:
    """Returns the name that a Saver would use."""
    name: str = variable.name if isinstance(variable, PartitionedVariable) else variable.op.name
    return name


def key_of(node: Any) -> str | None:
    """Returns the name in the checkpoint of the value of a node of a TrackableObjectGraph; None where it has none."""
    return next((a.checkpoint_key for a in node.attributes if a.name == _VALUE), None)


def _escaped(name: str) -> str:
    return name.replace(".", "..").replace("/", ".S")
