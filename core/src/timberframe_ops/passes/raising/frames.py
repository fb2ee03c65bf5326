"""Frames: which loop each operation of a graph belongs to."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.ops.definition.opdef import Role


def is_loop_merge(op: Operation) -> bool:
    """Returns whether a Merge joins a loop variable's first value with those of later iterations."""
    return op.op_def.role == "merge" and any(t.op.op_def.role == "next_iteration" for t in op.inputs)


class Frame:
    """A loop, or at the root the graph around all loops.

    operations: its own, without those of inner loops, in order. enters and exits, which are among them, carry values
    over its edge. plain_merges: Merges of inner frames that were no loops, which pass on what entered.
    """

    def __init__(self, name: str, parent: Frame | None) -> None:
        self.name = name
        self.parent = parent
        self.operations: list[Operation] = []
        self.enters: list[Operation] = []
        self.exits: list[Operation] = []
        self.plain_merges: set[Operation] = set()
        self.children: dict[str, Frame] = {}

    def with_role(self, role: Role) -> list[Operation]:
        """Returns its operations of these types."""
        return [op for op in self.operations if op.op_def.role == role]

    def everything(self) -> Iterator[Operation]:
        """Yields its operations and those of inner loops."""
        yield from self.operations
        for child in self.children.values():
            yield from child.everything()

    def encloses(self, other: Frame) -> bool:
        """Returns whether `other` is this frame or one inside."""
        frame: Frame | None = other
        while frame is not None and frame is not self:
            frame = frame.parent
        return frame is self

    @property
    def repeats(self) -> bool:
        """Whether there may be more than one iteration: not where what decides it has a value in the first one only."""
        if self.with_role("loop_condition"):
            return True
        sources = [op.inputs[1].op for exit in self.exits for op in [exit.inputs[0].op] if op.op_def.role == "switch"]
        once = sources and all(s in self.enters and not s.attrs["is_constant"] for s in sources)
        return not once and bool(self.with_role("next_iteration"))


def find_frames(order: Sequence[Operation], fed: Container[Tensor]) -> Frame:
    """Returns the root frame of these operations, which are in topological order but for the edges that close loops.

    A frame without a second iteration is no loop; what is in it counts as being around it. InvalidArgumentError where
    an operation uses values of two loops neither of which is inside the other.
    """
    root = Frame("", None)
    frames: dict[Operation, Frame] = {}
    for op in order:
        around = _surrounding(op, frames, root, fed)
        if op.op_def.role == "enter":
            name = op.attrs["frame_name"]
            frames[op] = around.children.setdefault(name, Frame(name, around))
            frames[op].enters.append(op)
        else:
            frames[op] = around
            if op.op_def.role == "exit":
                around.exits.append(op)
        frames[op].operations.append(op)
    _dissolve(root, {op: i for i, op in enumerate(order)})
    return root


def _surrounding(op: Operation, frames: dict[Operation, Frame], root: Frame, fed: Container[Tensor]) -> Frame:
    """Returns the innermost of the frames from which the operation gets values."""
    chosen, by = root, None
    sources = [] if op.outputs and all(t in fed for t in op.outputs) else [t.op for t in op.inputs if t not in fed]
    for source in (*sources, *op.control_inputs):
        frame = frames.get(source)
        if frame is None:
            continue  # the edge that closes a loop
        if source.op_def.role == "exit":
            if frame.parent is None:
                raise InvalidArgumentError(
                    f"{source.type} '{source.name}': is not inside a loop; its value must come from an Enter",
                    source.name,
                )
            frame = frame.parent
        if chosen.encloses(frame):
            chosen, by = frame, source
        elif not frame.encloses(chosen):
            assert by is not None
            raise InvalidArgumentError(
                f"{op.type} '{op.name}': has inputs from different frames, '{by.name}' of '{chosen.name}' and "
                f"'{source.name}' of '{frame.name}'; all must be of one loop",
                op.name,
            )
    return chosen


def _dissolve(frame: Frame, position: dict[Operation, int]) -> None:
    """Moves the operations of inner frames that are no loops into the frames around them."""
    for name, child in list(frame.children.items()):
        _dissolve(child, position)
        if not child.repeats:
            del frame.children[name]
            frame.operations.extend(child.operations)
            frame.plain_merges.update(child.plain_merges, (op for op in child.operations if is_loop_merge(op)))
            for inner in child.children.values():
                inner.parent = frame
                frame.children[f"{name}/{inner.name}"] = inner
    frame.operations.sort(key=position.__getitem__)
