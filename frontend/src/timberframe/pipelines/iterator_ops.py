"""What the executor does for the ops on iterators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe.pipelines.base import Pipeline, input_pipeline, scalar
from timberframe.pipelines.iterators import IteratorResource
from timberframe.pipelines.registry import elements, is_shared, op
from timberframe_core.dtypes import DType
from timberframe_core.errors import FailedPreconditionError, InvalidArgumentError, OutOfRangeError
from timberframe_core.plugin.host_ops import HostCall
from timberframe_core.plugin.waiting import CancelToken
from timberframe_core.runtime.host_ops.optional import OptionalValue


@op("Iterator", "IteratorV2")
def _make_iterator(call: HostCall) -> list[Any]:
    _iterator(call)
    return []


def _iterator(call: HostCall, **more: Any) -> IteratorResource:
    dtypes, shapes = elements(call)
    name = call.made.partition(" ")[2]
    found = call.resources.get_or_make(call.made, lambda: IteratorResource(name, dtypes, shapes, **more))
    _check_dtypes(call, found, dtypes)
    return found


def _check_dtypes(call: HostCall, iterator: IteratorResource, dtypes: Sequence[DType]) -> None:
    if iterator.dtypes != tuple(dtypes):
        given, required = ([d.name for d in x] for x in (iterator.dtypes, dtypes))
        raise call.error(f"{iterator} gives elements of dtypes {given}; {required} are required")


@op("OneShotIterator")
def _one_shot(call: HostCall) -> list[Any]:
    if call.resources.find(call.made) is not None:
        return []
    function = call.function()

    def make(cancel: CancelToken) -> Pipeline:
        (found,) = function.prepare()((), cancel)
        assert isinstance(found, Pipeline)
        return found

    _iterator(call, factory=make)
    return []


@op("MakeIterator")
def _initialize(call: HostCall) -> list[Any]:
    pipeline = input_pipeline(call)
    _held(call).begin(pipeline, is_shared(call, pipeline))
    return []


def _held(call: HostCall) -> IteratorResource:
    """Returns the iterator that the call's handle means."""
    key = call.handle()
    found = call.run_state.get(("iterator", key)) or call.resources.find(key)
    if not isinstance(found, IteratorResource):
        raise call.error(f"{key} does not exist; its handle must be made first", FailedPreconditionError)
    return found


@op("IteratorGetNext", "IteratorGetNextSync")
def _next(call: HostCall) -> list[Any]:
    iterator = _held(call)
    element, fresh = iterator.next(call.cancel)
    if element is None:
        raise call.error(
            "End of sequence; catch tf.errors.OutOfRangeError where the elements may end, or repeat() the dataset",
            OutOfRangeError,
        )
    if len(element) != len(call.dtypes):
        raise call.error(f"{iterator} gives elements of {len(element)} components; {len(call.dtypes)} are required")
    if fresh and call.device.host_memory:
        return [_owned(x, call) for x in element]
    return [(x, None) for x in element]


def _owned(array: Any, call: HostCall) -> tuple[Any, Any]:
    """Returns an array that nobody else has, where it need not be copied again."""
    return array, call.device if array.flags.c_contiguous and array.flags.aligned else None


@op("IteratorGetNextAsOptional")
def _next_as_optional(call: HostCall) -> list[Any]:
    element, _ = _held(call).next(call.cancel)
    return [(OptionalValue(None if element is None else tuple((x, None) for x in element)), None)]


@op("IteratorToStringHandle")
def _to_string(call: HostCall) -> list[Any]:
    return [(np.array(_held(call).handle.encode(), object), None)]


@op("IteratorFromStringHandle", "IteratorFromStringHandleV2")
def _from_string(call: HostCall) -> list[Any]:
    handle = scalar(call, 0, "string_handle").decode(errors="replace")
    found = call.resources.find(handle)
    if not isinstance(found, IteratorResource):
        raise call.error(
            f"string_handle is {handle!r}, which stands for no iterator of this session", InvalidArgumentError
        )
    if call.attrs["output_types"]:
        _check_dtypes(call, found, call.attrs["output_types"])
    call.run_state["iterator", call.made] = found
    return []
