"""By which functions the executor carries out the ops on datasets and iterators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from timberframe.pipelines.base import Pipeline
from timberframe_core.dtypes import DType
from timberframe_core.plugin.host_ops import HostCall

_MADE = "pipelines"
"""Under which the state of a run has those that it has made."""

FUNCTIONS: dict[str, Callable[[HostCall], list[Any]]] = {}
"""What each op does, by its name."""


def op(*names: str) -> Callable[[Callable[[HostCall], list[Any]]], Callable[[HostCall], list[Any]]]:
    """Registers what ops of these names do."""

    def register(run: Callable[[HostCall], list[Any]]) -> Callable[[HostCall], list[Any]]:
        FUNCTIONS.update(dict.fromkeys(names, run))
        return run

    return register


def dataset(*names: str) -> Callable[[Callable[[HostCall], Pipeline]], Callable[[HostCall], Pipeline]]:
    """Registers what makes the pipeline of ops of these names."""

    def register(make: Callable[[HostCall], Pipeline]) -> Callable[[HostCall], Pipeline]:
        def run(call: HostCall) -> list[Any]:
            made = make(call)
            call.run_state.setdefault(_MADE, []).append(made)
            return [(made, None)]

        FUNCTIONS.update(dict.fromkeys(names, run))
        return make

    return register


def is_shared(call: HostCall, pipeline: Pipeline) -> bool:
    """Returns whether an earlier run has made a pipeline, so that others may draw its seeds, as in eager execution."""
    return all(made is not pipeline for made in call.run_state.get(_MADE, ()))


def elements(call: HostCall) -> tuple[Sequence[DType], Sequence[Any]]:
    """Returns the dtypes and shapes of the components of the elements that the node gives."""
    return call.attrs["output_types"], call.attrs["output_shapes"]
