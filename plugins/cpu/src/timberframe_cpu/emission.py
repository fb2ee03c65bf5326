"""Turns a prepared cluster into the image of a program."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np

from timberframe_cpu.image import NULL, Image, Segment, Word
from timberframe_cpu.kernel_builder import Launch
from timberframe_cpu.launchers import NativeLauncher
from timberframe_cpu.library import lib
from timberframe_cpu.preparation import Control, Prepared
from timberframe_sdk import KernelNode, Value, role

_BYTES = np.dtype(np.uint8)
_WHOLE = 1 << 60  # TF_WHOLE of program.h


@dataclass(slots=True)
class PythonPiece:
    """A launcher at the top level, for which the program is cut. workspace: its offset in the arena."""

    node: KernelNode
    launch: Launch
    workspace: int


Piece = tuple[int, int] | PythonPiece


class _Scope:
    """One cluster while it is emitted: its plan at `base` in the arena, and the tensors of its values."""

    def __init__(self, image: Image, prepared: Prepared, base: int, tensors: dict[int, int]) -> None:
        self.prepared = prepared
        self.base = base
        self.tensors = tensors
        self._image = image

    def tensor(self, value: Value) -> int:
        found = self.tensors.get(value.id)
        if found is None:
            if value.kind == "const":
                found = self._image.constant(value)
            else:
                offset = self.base + self.prepared.plan.offsets[value.id]
                found = self._image.arena_tensor(value.dtype, value.shape, offset)
            self.tensors[value.id] = found
        return found


class Emitter:
    """The image of a cluster, with the nodes by number, the messages of their errors, and the pieces of the top level.

    slots: values whose memory each run brings, in the order of the runner's slots. whole: positions of the nodes that
    must not be cut short, because they overwrite a variable.
    """

    def __init__(self, prepared: Prepared, slots: Sequence[Value], whole: Set[int] = frozenset()) -> None:
        self.image = Image()
        self.nodes: list[KernelNode] = []
        self.reasons: list[tuple[str, ...]] = []
        self.pieces: list[Piece] = []
        self.calls_python = False
        """Whether native steps call Python launchers."""
        self.tensors = {v.id: self.image.tensor(v.dtype, v.shape) for v in slots}
        words = np.array([(self.tensors[v.id], _alignment_mask(v)) for v in slots], np.int32)
        self.slots = words.reshape(-1, 2)
        top = Segment()
        self.image.segments.append(top)
        self._top(top, _Scope(self.image, prepared, 0, self.tensors), whole)
        self.image.finish()

    def _top(self, segment: Segment, scope: _Scope, whole: Set[int]) -> None:
        begin = 0
        for position, (node, launch) in enumerate(zip(scope.prepared.nodes, scope.prepared.launches, strict=True)):
            if launch is None or launch.native is not None:
                self._node(segment, scope, position, node, launch)
                if position in whole:
                    segment.weights[-1] += _WHOLE
                continue
            if len(segment.functions) > begin:
                self.pieces.append((begin, len(segment.functions)))
                begin = len(segment.functions)
            self._number(node, ())
            self.pieces.append(PythonPiece(node, launch, scope.prepared.plan.workspaces.get(position, 0)))
        if len(segment.functions) > begin:
            self.pieces.append((begin, len(segment.functions)))

    def _number(self, node: KernelNode, reasons: tuple[str, ...]) -> int:
        node.index = len(self.nodes)
        self.nodes.append(node)
        self.reasons.append(reasons)
        return node.index

    def _segment(self, scope: _Scope) -> int:
        segment = Segment()
        number = len(self.image.segments)
        self.image.segments.append(segment)
        for position, (node, launch) in enumerate(zip(scope.prepared.nodes, scope.prepared.launches, strict=True)):
            self._node(segment, scope, position, node, launch)
        return number

    def _node(self, segment: Segment, scope: _Scope, position: int, node: KernelNode, launch: Launch | None) -> None:
        native = launch and launch.native
        number = self._number(node, native.reasons if native else ())
        tensor, pointers = scope.tensor, self.image.pointers
        first = len(pointers)
        pointers += [tensor(node.inputs[i]) for i in (range(len(node.inputs)) if launch is None else launch.passed)]
        second = len(pointers)
        pointers += [tensor(v) for v in node.outputs]
        if launch is None:
            workspace = scope.base + scope.prepared.plan.workspaces[position]
            function, parameters = self._control(scope, node, scope.prepared.controls[position], workspace)
        else:
            if launch.workspace_bytes:
                offset = scope.base + scope.prepared.plan.workspaces[position]
                pointers.append(self.image.arena_tensor(_BYTES, (launch.workspace_bytes,), offset))
            if native:
                function, parameters = native.function, self.image.parameters(native)
            else:
                function, parameters = self._callback(node, launch)
        segment.functions.append(function)
        segment.inputs.append(first)
        segment.outputs.append(second)
        segment.parameters.append(parameters)
        segment.nodes.append(number)
        segment.weights.append(1 if launch is None else launch.weight)

    def _callback(self, node: KernelNode, launch: Launch) -> tuple[int, int]:
        self.calls_python = True
        launcher = NativeLauncher(node, launch)
        self.image.keep(launcher)
        return lib.tf_python_address(), self._add_control([Word("plain", launcher.number)])

    def _add_control(self, words: list[Word]) -> int:
        position = len(self.image.control)
        self.image.control += words
        return ~position

    def _control(self, scope: _Scope, node: KernelNode, control: Control, workspace: int) -> tuple[int, int]:
        if role(node.op) == "loop":
            return lib.tf_while_address(), self._loop(scope, node, control, workspace)
        choose = lib.tf_case_address if role(node.op) == "case" else lib.tf_if_address
        return choose(), self._branches(scope, node, control, workspace)

    def _loop(self, scope: _Scope, node: KernelNode, control: Control, workspace: int) -> int:
        """Emits condition and body; the parameters are struct loop of control_flow.c."""
        image = self.image
        condition, body = (
            _Scope(image, p, workspace + base, {}) for p, base in zip(control.bodies, control.bases, strict=True)
        )
        for i, value in enumerate(node.inputs):
            same = scope.tensor(value) if i >= len(node.outputs) else image.tensor(value.dtype, value.shape)
            for inner in (condition, body):
                inner.tensors[inner.prepared.cluster.inputs[i].id] = same
        followers: list[int | None] = []
        for variable in control.variables:
            follower = None
            for value in variable.in_place:
                body.tensors[value.id] = body.tensor(variable.state)
            if variable.result is not None and not variable.in_place:
                follower = image.tensor(variable.state.dtype, variable.state.shape)
                if variable.written:
                    body.tensors[variable.result.id] = follower
            followers.append(follower)
        predicate = condition.prepared.cluster.outputs[0]
        if predicate.kind == "temp":
            tensor = image.arena_tensor(predicate.dtype, predicate.shape, workspace + control.predicate)
            condition.tensors[predicate.id] = tensor
        segments = self._segment(condition), self._segment(body)
        words = [Word("plain", len(control.variables))]
        words += [Word(kind, s) for s in segments for kind in ("first", "end")]
        words.append(Word("tensor", condition.tensor(predicate)))
        for variable, follower in zip(control.variables, followers, strict=True):
            words.append(Word("tensor", body.tensor(variable.state)))
            if follower is None or variable.result is None:
                words += [NULL, NULL, NULL]
            else:
                copied = NULL if variable.written else Word("tensor", body.tensor(variable.result))
                words += [Word("tensor", follower), copied, Word("arena", workspace + variable.buffer)]
            words.append(Word("plain", variable.state.nbytes))
            words.append(Word("plain", int(bool(variable.in_place))))
        return self._add_control(words)

    def _branches(self, scope: _Scope, node: KernelNode, control: Control, workspace: int) -> int:
        """Emits the branches; the parameters are struct choice of control_flow.c, with its copies before it."""
        words = [Word("plain", len(control.bodies))]
        for prepared, base in zip(control.bodies, control.bases, strict=True):
            cluster = prepared.cluster
            inputs = {v.id: scope.tensor(x) for v, x in zip(cluster.inputs, node.inputs[1:], strict=True)}
            inner = _Scope(self.image, prepared, workspace + base, inputs)
            written = set()
            for result, output in zip(cluster.outputs, node.outputs, strict=True):
                if result.kind == "temp" and result.id not in inner.tensors:
                    inner.tensors[result.id] = scope.tensor(output)
                    written.add(output.id)
            segment = self._segment(inner)
            copies = [
                (Word("tensor", inner.tensor(result)), Word("plain", i), Word("plain", result.nbytes))
                for i, (result, output) in enumerate(zip(cluster.outputs, node.outputs, strict=True))
                if output.id not in written
            ]
            position = ~self._add_control([w for copy in copies for w in copy])
            words += [
                Word("first", segment),
                Word("end", segment),
                Word("control", position),
                Word("plain", len(copies)),
            ]
        return self._add_control(words)


def _alignment_mask(value: Value) -> int:
    """Bits that are zero in the address of an aligned element; complex ones align like their parts."""
    size = value.dtype.alignment
    return size - 1
