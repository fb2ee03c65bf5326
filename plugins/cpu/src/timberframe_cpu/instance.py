"""Instances: what the runs of a program that are in flight at the same time do not share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import ref

from timberframe_cpu.image import SHAPE_WORD, TENSOR_WORDS, address
from timberframe_cpu.library import ffi, lib
from timberframe_sdk import Array
from timberframe_sdk.allocator import Buffer
from timberframe_sdk.transaction import StandingLease

if TYPE_CHECKING:
    from timberframe_cpu.program import CpuExecutable


class Instance:
    """What one run in flight owns: the words of a program, and an arena while it runs."""

    __slots__ = ("arena", "bound", "lease", "linked_at", "program", "slots", "words")

    def __init__(self, executable: CpuExecutable, arena: Buffer) -> None:
        emitter = executable.emitter
        self.lease: StandingLease | None = None
        """The one whose variables' memory the slots have."""
        self.bound: Sequence[ref[Array]] = ()
        """The arrays of the last run whose memory the slots of variables have, of an executable that updates some."""
        self.arena: Buffer | None = arena
        self.linked_at = address(arena.handle)
        self.words = emitter.image.link(self.linked_at)
        self.slots = ffi.new("void *[]", len(emitter.slots) + 1)
        self.program = ffi.new("tf_program *")
        lib.tf_program_init(
            self.program, emitter.image.steps_address(self.words), len(emitter.image.segments[0].functions),
            address(self.words), address(emitter.slots), len(emitter.slots), executable.device.threads,
        )  # fmt: skip

    def move(self, executable: CpuExecutable, arena: Buffer) -> None:
        """Puts an arena in place of the one that went back to the pool."""
        self.arena = arena
        start = address(arena.handle)
        if start != self.linked_at:
            executable.emitter.image.relink(self.words, start - self.linked_at)
            self.linked_at = start

    def true_shape(self, tensor: int, rank: int) -> tuple[int, ...]:
        """Returns a tensor's shape as its kernel left it."""
        start = TENSOR_WORDS * tensor + SHAPE_WORD
        return tuple(self.words[start : start + rank].tolist())
