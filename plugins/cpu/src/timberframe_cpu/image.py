"""The image of a program: the block of int64 words that the C runner walks through (see csrc/runner/program.h).

It has four sections: tensors, lists of pointers to them, parameters of loops and branches, and steps. An image is made
once for a cluster, relative to addresses that are not known yet, and linked for each instance by a few whole-array
operations, so that an instance for another arena costs microseconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from timberframe_cpu.allocator import ALIGNMENT, aligned_array
from timberframe_sdk import MAX_RANK, Value, as_dtype
from timberframe_sdk.execution.constants import leave_in_file
from timberframe_sdk.native import TENSOR, Native, tensor_row

TENSOR_WORDS = TENSOR.itemsize // 8
DATA_WORD, SHAPE_WORD = 1, 4
_STEP_WORDS = 6
_MOST_COPIED = 1 << 20
"""Bytes of the largest constants that are copied to where a cache line begins; copied ones are in memory twice."""


def address(a: np.ndarray) -> int:
    """Returns where an array's elements lie."""
    pointer: int = a.__array_interface__["data"][0]
    return pointer


@dataclass(slots=True)
class Segment:
    """Steps that run one after the other: the top level, a condition, a body or a branch.

    Each list has one entry a step. inputs, outputs: positions in the list of pointers. parameters: position among the
    parameters, or ``~position`` in the section of control flow.
    """

    functions: list[int] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    parameters: list[int] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)
    weights: list[int] = field(default_factory=list)

    def columns(self) -> tuple[list[int], ...]:
        return self.functions, self.inputs, self.outputs, self.parameters, self.nodes, self.weights


@dataclass(frozen=True, slots=True)
class Word:
    """A word of control flow's parameters: `kind` says what `value` is and so which address is added.

    plain; tensor: a tensor's number; first, end: a segment's number; arena: an offset; control: a position there.
    """

    kind: str
    value: int


NULL = Word("plain", 0)


class Image:
    """Collects the sections; `finish` closes them, then `link` makes the words of an instance."""

    def __init__(self) -> None:
        self.pointers: list[int] = []
        self.control: list[Word] = []
        self.segments: list[Segment] = []
        self.persistent = 0
        self._row_numbers: dict[tuple[int, tuple[int, ...]], int] = {}
        self._rows: list[tuple[Any, ...]] = []
        self._tensors: list[int] = []
        self._arena_tensors: list[int] = []
        self._arena_offsets: list[int] = []
        self._constants: dict[int, int] = {}
        self._addresses: list[tuple[int, int]] = []
        self._words: list[int] = []
        self._word_positions: dict[int, int] = {}
        self._keep: list[Any] = []

    def keep(self, thing: Any) -> None:
        """Makes the image hold on to something that its words refer to."""
        self._keep.append(thing)

    def tensor(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> int:
        """Returns the number of a new tensor whose address is given later, by a slot or a loop."""
        if len(shape) > MAX_RANK:  # kernels of such tensors go by their parameters, in which dimensions are merged
            shape = (math.prod(shape),)
        key = dtype.num, shape
        row = self._row_numbers.get(key)
        if row is None:
            row = self._row_numbers[key] = len(self._rows)
            self._rows.append(tensor_row(as_dtype(dtype).number, 0, shape))
        self._tensors.append(row)
        return len(self._tensors) - 1

    def arena_tensor(self, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int) -> int:
        """Returns the number of a new tensor that lies in the arena."""
        tensor = self.tensor(dtype, shape)
        self._arena_tensors.append(tensor)
        self._arena_offsets.append(offset)
        return tensor

    def constant(self, value: Value) -> int:
        """Returns the number of a constant's tensor, one for all uses of the array."""
        tensor = self._constants.get(id(value.constant))
        if tensor is None:
            array = np.require(value.constant, value.dtype, ["C", "A"])
            if address(array) % ALIGNMENT and ALIGNMENT <= array.nbytes <= _MOST_COPIED:
                given, array = array, aligned_array(array.dtype, array.shape)
                np.copyto(array, given)
            if array is not value.constant:
                leave_in_file(value.constant)
            tensor = self._constants[id(value.constant)] = self.tensor(value.dtype, value.shape)
            self._addresses.append((tensor, address(array)))
            self.keep((array, value.constant))
            self.persistent += value.nbytes
        return tensor

    def parameters(self, kernel: Native) -> int:
        """Position of a kernel's parameters; nodes that share a Native share them."""
        position = self._word_positions.get(id(kernel))
        if position is None:
            position = self._word_positions[id(kernel)] = len(self._words)
            self._words.extend(kernel.parameters)
            self.keep(kernel)
        return position

    def finish(self) -> None:
        """Lays the sections out and notes which words are addresses."""
        tensors = np.array(self._rows, TENSOR).view(np.int64).reshape(-1, TENSOR_WORDS)[self._tensors]
        for tensor, where in self._addresses:
            tensors[tensor, DATA_WORD] = where
        arena = np.array(self._arena_tensors, np.int64)
        tensors[arena, DATA_WORD] = self._arena_offsets
        pointer_start = tensors.size
        control_start = pointer_start + len(self.pointers)
        step_start = control_start + len(self.control)
        steps, parameters_inside = self._steps(pointer_start, control_start)
        control, relative, in_arena = self._control_words(control_start, step_start)
        pointers = np.array(self.pointers, np.int64) * TENSOR.itemsize
        self._template = np.concatenate([tensors.ravel(), pointers, control, steps.ravel()])
        rows = step_start + _STEP_WORDS * np.arange(len(steps))
        self._relative = np.concatenate(
            [np.arange(pointer_start, control_start), relative, rows + 1, rows + 2, rows[parameters_inside] + 3]
        )
        self._in_arena = np.concatenate([arena * TENSOR_WORDS + DATA_WORD, in_arena])

    def _steps(self, pointer_start: int, control_start: int) -> tuple[np.ndarray, np.ndarray]:
        by_segment = [np.array(s.columns(), np.int64) for s in self.segments]
        steps = np.concatenate(by_segment, axis=1).T.copy()
        self._parameters = np.array(self._words or [0], np.int64)
        inside = steps[:, 3] < 0
        steps[:, 1:3] = 8 * (pointer_start + steps[:, 1:3])
        steps[:, 3] = np.where(inside, 8 * (control_start + ~steps[:, 3]), address(self._parameters) + 8 * steps[:, 3])
        return steps, inside

    def _control_words(self, control_start: int, step_start: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        starts = np.cumsum([0] + [len(s.functions) for s in self.segments])
        first_steps = (8 * (step_start + _STEP_WORDS * starts)).tolist()

        def resolve(word: Word) -> int:
            match word.kind:
                case "tensor":
                    return word.value * TENSOR.itemsize
                case "control":
                    return 8 * (control_start + word.value)
                case "first":
                    return int(first_steps[word.value])
                case "end":
                    return int(first_steps[word.value + 1])
            return word.value

        words = np.array([resolve(w) for w in self.control], np.int64)
        kinds = [w.kind for w in self.control]
        relative = [control_start + i for i, k in enumerate(kinds) if k not in ("plain", "arena")]
        in_arena = [control_start + i for i, k in enumerate(kinds) if k == "arena"]
        return words, np.array(relative, np.int64), np.array(in_arena, np.int64)

    def link(self, arena: int) -> np.ndarray:
        """Returns the words of an instance whose arena begins at this address."""
        words = self._template.copy()
        words[self._relative] += address(words)
        words[self._in_arena] += arena
        return words

    def relink(self, words: np.ndarray, distance: int) -> None:
        """Moves an instance to an arena that begins `distance` bytes further on."""
        words[self._in_arena] += distance

    def steps_address(self, words: np.ndarray) -> int:
        """Returns where the steps of the top level begin, which is the first segment."""
        return address(words) + 8 * (len(words) - _STEP_WORDS * sum(len(s.functions) for s in self.segments))
