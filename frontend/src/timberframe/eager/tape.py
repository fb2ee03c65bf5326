"""GradientTape: records what is computed from watched tensors and variables, and differentiates it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from timberframe.eager.graph_tape import GraphTape
from timberframe_core import logging, nest
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError, WrongStateError
from timberframe_core.gradients.reverse import UnconnectedGradients, is_differentiable
from timberframe_core.gradients.tape import Tape, gradients_of_records
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.indexed_slices import IndexedSlices
from timberframe_core.graph.operation import Tensor
from timberframe_core.shapes import compatible, format_shape


class GradientTape:
    """Records the operations of a `with` block on what it watches, so that `gradient` can differentiate them.

    persistent: `gradient` may be called more than once; else what was recorded goes with the first call.
    watch_accessed_variables: trainable variables are watched when they are read; else only what `watch` was given.
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent = persistent
        self._watches_variables = watch_accessed_variables
        self._tape: Any = None
        self._recording = False

    # Recording

    def __enter__(self) -> GradientTape:
        if self._recording:
            raise WrongStateError("GradientTape: it is recording already; a tape can be entered again after its block")
        if self._tape is None or not self._persistent:
            self._tape = self._new()
        self._start()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._recording:
            self._stop()

    def _new(self) -> Any:
        if get_default_graph().eager:
            return Tape(self._watches_variables, self._persistent)
        return GraphTape(self._watches_variables)

    def _start(self) -> None:
        self._recording = True
        graph: Any = get_default_graph()
        if isinstance(self._tape, GraphTape):
            self._tape.begin()
        elif graph.eager:
            graph.tapes = (*graph.tapes, self._tape)

    def _stop(self) -> None:
        self._recording = False
        graph: Any = get_default_graph()
        if isinstance(self._tape, GraphTape):
            self._tape.end()
        elif graph.eager:
            graph.tapes = tuple(t for t in graph.tapes if t is not self._tape)

    def watch(self, tensor: Any) -> None:
        """Records what is computed from a tensor, a variable, or a structure of these."""
        if self._tape is None:
            raise WrongStateError("GradientTape: watch() is called outside of its block; tensors are watched inside")
        for x in nest.flatten(tensor):
            element = _element(x, "watch")
            if not is_differentiable(element):
                logging.warning("GradientTape: a tensor of dtype %s is watched; it has no gradient", element.dtype.name)
            self._tape.watch(element)

    def watched_variables(self) -> tuple[Any, ...]:
        """Returns the variables that are watched, in the order in which they were first used."""
        if self._tape is None:
            return ()
        if isinstance(self._tape, GraphTape):
            return tuple(self._tape.variables())
        found = [h.spec.variable and h.spec.variable() for h in self._tape.handles if h.eager]
        return tuple(v for v in found if v is not None)

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Does not record what the block does."""
        if not self._recording:
            raise WrongStateError("GradientTape: stop_recording() is called outside of its block; nothing is recorded")
        self._stop()
        try:
            yield
        finally:
            self._start()

    def reset(self) -> None:
        """Forgets what was recorded and watched."""
        recording = self._recording
        if recording:
            self._stop()
        self._tape = self._new()
        if recording:
            self._start()

    # Differentiating

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
    ) -> Any:
        """Returns the derivatives of the sum of `target` with respect to `sources`, in the structure of the sources.

        target: a tensor or a structure of tensors. sources: watched tensors and variables, in any structure; None
        stands for one that is not watched or that the target does not depend on, or zeros by unconnected_gradients.
        output_gradients: for each target the gradient to begin with, by default ones.
        Raises WrongStateError where a tape that is not persistent is used a second time.
        """
        tape = self._used()
        unconnected = UnconnectedGradients(unconnected_gradients)
        given = nest.flatten(sources)
        elements = [_element(x, "gradient: a source") for x in given]
        targets = [convert_to_tensor(t) for t in nest.flatten(target)]
        seeds = None if output_gradients is None else [output_gradients]
        if seeds is not None and nest.is_nested(target):
            seeds = nest.flatten(output_gradients)
        if seeds is not None and len(seeds) != len(targets):
            raise InvalidArgumentError(
                f"GradientTape.gradient: output_gradients has {len(seeds)} entries; "
                f"{len(targets)} targets need one each"
            )
        watched = [x if tape.is_tracked(x) else None for x in elements]
        if isinstance(tape, GraphTape):
            found = tape.gradients(targets, watched, seeds)
        else:
            found = _eager_gradients(tape, targets, watched, seeds)
        if unconnected is UnconnectedGradients.ZERO:
            found = [_zeros(x) if g is None else g for g, x in zip(found, given, strict=True)]
        if not self._persistent:
            self._tape = None
        return nest.pack_sequence_as(sources, found)

    def _used(self) -> Any:
        if self._tape is None:
            raise WrongStateError(
                "GradientTape.gradient: the tape has nothing recorded, or was used before; "
                "GradientTape(persistent=True) can be used more than once"
            )
        if self._recording:
            if self._persistent:
                logging.warning(
                    "GradientTape.gradient is called inside the block of a persistent tape, which then records the "
                    "backward pass too; this is slow and only needed for higher derivatives"
                )
            else:
                self._stop()
        return self._tape

    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """Returns the derivatives of each element of `target`, of shape target.shape + source.shape.

        It takes one backward pass for each element. parallel_iterations and experimental_use_pfor change nothing.
        """
        y = convert_to_tensor(target)
        size = _known_size(y, "jacobian")
        flat = nest.flatten(sources)
        persistent, self._persistent = self._persistent, True
        try:
            rows = [self._row(y, i, size, flat, unconnected_gradients) for i in range(size)]
        finally:
            self._persistent = persistent
        if not persistent:
            self._tape = None
        shape = list(y.static_shape or ())
        made: list[Any] = []
        for column in zip(*rows, strict=True) if rows else [()] * len(flat):
            if not column or any(g is None for g in column):
                made.append(None)
                continue
            whole = [convert_to_tensor(g) for g in column]
            made.append(apply_op("Reshape", [apply_op("Pack", [whole]), [*shape, *(whole[0].static_shape or ())]]))
        return nest.pack_sequence_as(sources, made)

    def _row(self, y: Tensor, i: int, size: int, sources: Sequence[Any], unconnected: Any) -> list[Any]:
        chosen = np.zeros(size, y.dtype.numpy)
        chosen[i] = 1
        seed = convert_to_tensor(chosen.reshape([d or 0 for d in y.static_shape or ()]), y.dtype)
        found: list[Any] = self.gradient(y, list(sources), seed, unconnected)
        return found

    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """For each row the derivatives of its elements of `target` with respect to its elements of `source`.

        Row i of the target must depend on row i of the source alone. Shape: [rows, *target.shape[1:],
        *source.shape[1:]]. It takes one backward pass for each element of a row.
        """
        y, x = convert_to_tensor(target), convert_to_tensor(source)
        rows = (y.static_shape or (None,))[0]
        if rows is None or not x.static_shape or x.static_shape[0] != rows:
            raise InvalidArgumentError(
                f"GradientTape.batch_jacobian: target has shape {format_shape(y.static_shape)} and source "
                f"{format_shape(x.static_shape)}; their first sizes must be known and equal"
            )
        inner = [d or 0 for d in (y.static_shape or ())[1:]]
        count = int(np.prod(inner, dtype=np.int64))
        persistent, self._persistent = self._persistent, True
        columns: list[Any] = []
        try:
            for i in range(count):
                chosen = np.zeros((rows, count), y.dtype.numpy)
                chosen[:, i] = 1
                seed = convert_to_tensor(chosen.reshape([rows, *inner]), y.dtype)
                columns.append(self.gradient(y, source, seed, unconnected_gradients))
        finally:
            self._persistent = persistent
        if not persistent:
            self._tape = None
        if any(c is None for c in columns):
            return None
        stacked = apply_op("Pack", [[convert_to_tensor(c) for c in columns]], {"axis": 1})
        return apply_op("Reshape", [stacked, [rows, *inner, *(d or 0 for d in x.static_shape[1:])]])


def _eager_gradients(
    tape: Tape, targets: Sequence[Tensor], sources: Sequence[Tensor | None], seeds: Sequence[Any] | None
) -> list[Any]:
    wanted = [x for x in sources if x is not None]
    first = [_seed(y, g) for y, g in zip(targets, seeds or [None] * len(targets), strict=True)]
    found = iter(gradients_of_records(tape.records, targets, wanted, first))
    return [None if x is None else next(found) for x in sources]


def _seed(target: Tensor, given: Any) -> Any:
    if not is_differentiable(target):
        return None
    if given is None:
        return apply_op("OnesLike", [target])
    if isinstance(given, IndexedSlices):
        return given
    seed = convert_to_tensor(given, target.dtype)
    if not compatible(seed.static_shape, target.static_shape):
        raise InvalidArgumentError(
            f"GradientTape.gradient: an output gradient has shape {format_shape(seed.static_shape)}; "
            f"it must have the target's, {format_shape(target.static_shape)}"
        )
    return seed


def _element(value: Any, what: str) -> Tensor:
    """Returns the tensor to differentiate: of a variable its handle, so that all its reads count."""
    handle = getattr(value, "handle", None)
    if isinstance(handle, Tensor):
        return handle
    if not isinstance(value, Tensor):
        raise InvalidTypeError(
            f"GradientTape.{what} is {value!r} of type {type(value).__name__}; a tensor or variable is required"
        )
    return value


def _zeros(source: Any) -> Any:
    return apply_op("ZerosLike", [convert_to_tensor(source)])


def _known_size(y: Tensor, function: str) -> int:
    shape = y.static_shape
    if shape is None or None in shape:
        raise InvalidArgumentError(
            f"GradientTape.{function}: the target has shape {format_shape(shape)}; every size must be known"
        )
    return int(np.prod([d or 0 for d in shape], dtype=np.int64))
