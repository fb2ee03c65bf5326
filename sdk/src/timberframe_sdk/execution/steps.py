"""What a KernelExecutable is made of: its launches, prepared inputs, and what one run in flight owns."""

from __future__ import annotations

import math
from dataclasses import dataclass

from timberframe_core.plugin.contracts import Array, KernelNode, Preparation, Value
from timberframe_sdk.allocator import Buffer
from timberframe_sdk.launching import Launch


@dataclass
class Step:
    """One launch: which slots go to the launcher, and whether it decides shapes of outputs."""

    node: KernelNode
    launch: Launch
    slots: list[int]
    decides_shapes: bool


@dataclass
class PreparedInput:
    """An input whose form a launcher gets, and the slot of that."""

    node: KernelNode
    given: Preparation
    slot: int

    @property
    def source(self) -> Value:
        return self.node.inputs[self.given.input]

    @property
    def constant_bytes(self) -> int:
        return self.given.dtype.itemsize * math.prod(self.given.shape) if self.source.kind == "const" else 0


class Instance:
    """What one run in flight owns: an arena and the table of arrays. One whose run failed is dropped."""

    __slots__ = ("arena", "slots")

    def __init__(self, slots: list[Array | None], arena: Buffer) -> None:
        self.slots = slots
        self.arena = arena
