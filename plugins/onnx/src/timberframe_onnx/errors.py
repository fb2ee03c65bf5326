"""What a model cannot be imported for."""

from __future__ import annotations

from collections.abc import Sequence

from timberframe_core import errors


class InvalidModelError(errors.InvalidArgumentError):
    """A file or message that is no valid model."""


class UnsupportedModelError(errors.UnimplementedError):
    """A valid model with nodes that cannot be imported.

    nodes: a line for each, with domain, opset, node and reason. by_shapes: whether it may be imported for shapes of its
    inputs that are fixed: nothing is in the way but sizes, ranks and values that are known only when it runs.
    """

    def __init__(self, nodes: Sequence[str], by_shapes: bool = False) -> None:
        self.nodes = tuple(nodes)
        self.by_shapes = by_shapes
        listed = "\n".join(f"  {line}" for line in nodes)
        super().__init__(f"{len(nodes)} node(s) of the model are not supported:\n{listed}")


class Unsupported(Exception):  # noqa: N818 - it ends the translation of one node; the model's error names all nodes
    """A translator raises it for a node that it cannot translate; the text is the reason."""


class UnknownBeforeRun(Unsupported):
    """A translator raises it where it needs something that only a run, or the shapes of inputs, can tell.

    what: as "the rank of its input".
    """

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is not known before the model runs; it must be")
