"""What the executor does for the ops on datasets and iterators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from timberframe.pipelines import batches, caches, files, functions, generators, nested, order, sources, threads
from timberframe.pipelines.base import Captured, Context, Pipeline, input_pipeline, scalar
from timberframe.pipelines.iterators import IteratorResource
from timberframe.pipelines.shuffling import Shuffle
from timberframe_core.dtypes import DType
from timberframe_core.errors import FailedPreconditionError, InvalidArgumentError, OutOfRangeError
from timberframe_core.plugin.host_ops import HostCall
from timberframe_core.plugin.waiting import CancelToken
from timberframe_core.runtime.functions import Streams
from timberframe_core.runtime.host_ops.optional import OptionalValue

RUN: dict[str, Callable[[HostCall], list[Any]]] = {}
"""What each op does, by its name."""


def _op(*names: str) -> Callable[[Callable[[HostCall], list[Any]]], Callable[[HostCall], list[Any]]]:
    def register(run: Callable[[HostCall], list[Any]]) -> Callable[[HostCall], list[Any]]:
        RUN.update(dict.fromkeys(names, run))
        return run

    return register


def _dataset(*names: str) -> Callable[[Callable[[HostCall], Pipeline]], Callable[[HostCall], Pipeline]]:
    """Registers what makes a pipeline."""

    def register(make: Callable[[HostCall], Pipeline]) -> Callable[[HostCall], Pipeline]:
        RUN.update(dict.fromkeys(names, lambda call: [(make(call), None)]))
        return make

    return register


def _elements(call: HostCall) -> tuple[Sequence[DType], Sequence[Any]]:
    return call.attrs["output_types"], call.attrs["output_shapes"]


# Sources


@_dataset("TensorDataset")
def _tensors(call: HostCall) -> Pipeline:
    return sources.Tensors(call, call.inputs, call.attrs["Toutput_types"])


_dataset("TensorSliceDataset")(sources.slices)
_dataset("RangeDataset")(sources.numbers)
_dataset("RandomDataset", "ExperimentalRandomDataset")(sources.RandomNumbers)


@_dataset("TextLineDataset")
def _lines(call: HostCall) -> Pipeline:
    return files.Lines(call, call.inputs[0], call.inputs[1], scalar(call, 2, "buffer_size"))


@_dataset("TFRecordDataset")
def _records(call: HostCall) -> Pipeline:
    return files.Records(call, call.inputs[0], call.inputs[1], scalar(call, 2, "buffer_size"))


@_dataset("FixedLengthRecordDataset", "FixedLengthRecordDatasetV2")
def _fixed(call: HostCall) -> Pipeline:
    compression = call.inputs[5] if len(call.inputs) > 5 else ""
    header, size, footer, buffer = (
        scalar(call, i, name)
        for i, name in enumerate(("header_bytes", "record_bytes", "footer_bytes", "buffer_size"), 1)
    )
    return files.FixedRecords(call, call.inputs[0], compression, buffer, header=header, size=size, footer=footer)


@_dataset("GeneratorDataset")
def _generator(call: HostCall) -> Pipeline:
    attrs, values = call.attrs, iter(call.inputs)
    made = []
    for i, name in enumerate(("init", "next", "finalize")):
        types = attrs[f"T{name}_func_args"]
        given = [next(values) for t in types if t.name != "resource"]
        declared = 0 if not i else len(call.function(i).function.inputs) - len(types)
        made.append(Captured(call, i, declared, given, types))
    return generators.Generator(call, (made[0], made[1], made[2]), *_elements(call))


# Order and number


@_dataset("RepeatDataset")
def _repeat(call: HostCall) -> Pipeline:
    return order.Repeat(call, input_pipeline(call), scalar(call, 1, "count"))


@_dataset("TakeDataset")
def _take(call: HostCall) -> Pipeline:
    return order.Take(call, input_pipeline(call), scalar(call, 1, "count"))


@_dataset("SkipDataset")
def _skip(call: HostCall) -> Pipeline:
    return order.Skip(call, input_pipeline(call), scalar(call, 1, "count"))


@_dataset("ShardDataset")
def _shard(call: HostCall) -> Pipeline:
    return order.Shard(call, input_pipeline(call), scalar(call, 1, "num_shards"), scalar(call, 2, "index"))


@_dataset("ConcatenateDataset")
def _concatenate(call: HostCall) -> Pipeline:
    return order.Concatenate(call, [input_pipeline(call, 0), input_pipeline(call, 1)])


@_dataset("ZipDataset")
def _zip(call: HostCall) -> Pipeline:
    return order.Zip(call, [input_pipeline(call, i) for i in range(len(call.inputs))])


@_dataset("ShuffleDataset")
def _shuffle(call: HostCall) -> Pipeline:
    seeds = scalar(call, 2, "seed"), scalar(call, 3, "seed2")
    size, again = scalar(call, 1, "buffer_size"), call.attrs["reshuffle_each_iteration"]
    return Shuffle(call, input_pipeline(call), size, seeds, again)


@_dataset("ShuffleAndRepeatDataset")
def _shuffle_and_repeat(call: HostCall) -> Pipeline:
    return order.Repeat(call, _shuffle(call), scalar(call, 4, "count"))


@_dataset("CacheDataset")
def _cache(call: HostCall) -> Pipeline:
    return caches.Cache(call, input_pipeline(call), scalar(call, 1, "filename").decode())


@_dataset("IgnoreErrorsDataset", "ExperimentalIgnoreErrorsDataset")
def _ignore(call: HostCall) -> Pipeline:
    return caches.IgnoreErrors(call, input_pipeline(call))


@_dataset("ModelDataset", "OptimizeDataset", "OptionsDataset", "FinalizeDataset")
def _unchanged(call: HostCall) -> Pipeline:
    return input_pipeline(call)


@_dataset("PrefetchDataset")
def _prefetch(call: HostCall) -> Pipeline:
    size = scalar(call, 1, "buffer_size")
    if size < -1:
        raise call.error(f"buffer_size is {size}; it must be zero or more, or -1")
    return threads.Prefetch(call, input_pipeline(call), size)


# Batches


@_dataset("BatchDataset", "BatchDatasetV2")
def _batch(call: HostCall) -> Pipeline:
    drop = len(call.inputs) > 2 and scalar(call, 2, "drop_remainder")
    return batches.Batch(call, input_pipeline(call), scalar(call, 1, "batch_size"), drop)


@_dataset("PaddedBatchDataset", "PaddedBatchDatasetV2")
def _padded(call: HostCall) -> Pipeline:
    count = call.attrs["N"]
    shapes, values = call.inputs[2 : 2 + count], call.inputs[2 + count : 2 + 2 * count]
    drop = len(call.inputs) > 2 + 2 * count and bool(call.inputs[-1])
    size = scalar(call, 1, "batch_size")
    return batches.PaddedBatch(call, input_pipeline(call), size, drop, shapes, values)


@_dataset("UnbatchDataset", "ExperimentalUnbatchDataset")
def _unbatch(call: HostCall) -> Pipeline:
    return batches.Unbatch(call, input_pipeline(call), *_elements(call))


@_dataset("WindowDataset")
def _window(call: HostCall) -> Pipeline:
    size, shift, stride, drop = (
        scalar(call, i, name) for i, name in enumerate(("size", "shift", "stride", "drop_remainder"), 1)
    )
    return nested.Window(call, input_pipeline(call), size, shift, stride, drop)


# Functions


def _captured(call: HostCall, source: Pipeline, skip: int = 0) -> tuple[Captured, list[Any]]:
    """The function of the node with what it was given besides elements, and the inputs after that.

    skip: how many inputs of the function precede the components of an element.
    """
    types = call.attrs["Targuments"]
    count = sum(t.name != "resource" for t in types)
    given = call.inputs[1 + skip :]
    return Captured(call, 0, skip + len(source.dtypes), given[:count], types), list(given[count:])


@_dataset("MapDataset")
def _map(call: HostCall) -> Pipeline:
    source = input_pipeline(call)
    return functions.Map(call, source, _captured(call, source)[0], *_elements(call))


@_dataset("ParallelMapDataset", "ParallelMapDatasetV2")
def _parallel_map(call: HostCall) -> Pipeline:
    source = input_pipeline(call)
    function, (calls,) = _captured(call, source)
    if int(calls) < 1 and int(calls) != -1:
        raise call.error(f"num_parallel_calls is {int(calls)}; it must be greater than zero, or -1")
    return threads.ParallelMap(call, source, function, *_elements(call), calls=int(calls))


@_dataset("MapAndBatchDataset", "ExperimentalMapAndBatchDataset")
def _map_and_batch(call: HostCall) -> Pipeline:
    source = input_pipeline(call)
    function, (size, calls, drop) = _captured(call, source)
    dtypes, shapes = _elements(call)
    rows = [None if s is None else s[1:] for s in shapes]
    mapped = threads.ParallelMap(call, source, function, dtypes, rows, calls=int(calls))
    return batches.Batch(call, mapped, int(size), bool(drop))


@_dataset("FilterDataset")
def _filter(call: HostCall) -> Pipeline:
    source = input_pipeline(call)
    return functions.Filter(call, source, _captured(call, source)[0])


@_dataset("TakeWhileDataset", "ExperimentalTakeWhileDataset")
def _take_while(call: HostCall) -> Pipeline:
    source = input_pipeline(call)
    return functions.TakeWhile(call, source, _captured(call, source)[0])


@_dataset("FlatMapDataset")
def _flat_map(call: HostCall) -> Pipeline:
    source = input_pipeline(call)
    return nested.Interleave(call, source, _captured(call, source)[0], 1, 1, *_elements(call))


@_dataset(
    "InterleaveDataset", "ParallelInterleaveDatasetV2", "ParallelInterleaveDatasetV3", "ParallelInterleaveDatasetV4",
    "ParallelInterleaveDataset", "ExperimentalParallelInterleaveDataset", "LegacyParallelInterleaveDatasetV2",
)  # fmt: skip
def _interleave(call: HostCall) -> Pipeline:
    source = input_pipeline(call)
    function, (cycle, block, *_) = _captured(call, source)
    cycle = int(cycle) if int(cycle) != -1 else threads.processors()
    return nested.Interleave(call, source, function, cycle, int(block), *_elements(call))


@_dataset("DirectedInterleaveDataset", "ExperimentalDirectedInterleaveDataset")
def _directed(call: HostCall) -> Pipeline:
    parts = [input_pipeline(call, i) for i in range(len(call.inputs))]
    return nested.DirectedInterleave(call, parts[0], parts[1:], call.attrs.get("stop_on_empty_dataset", False))


@_dataset("ScanDataset", "ExperimentalScanDataset")
def _scan(call: HostCall) -> Pipeline:
    source, count = input_pipeline(call), len(call.attrs["Tstate"])
    function, _ = _captured(call, source, count)
    return functions.Scan(call, source, function, call.inputs[1 : 1 + count], *_elements(call))


@_dataset("GroupByWindowDataset", "ExperimentalGroupByWindowDataset")
def _group(call: HostCall) -> Pipeline:
    source, values = input_pipeline(call), iter(call.inputs[1:])
    made = []
    for i, (name, declared) in enumerate((("key", len(source.dtypes)), ("reduce", 2), ("window_size", 1))):
        types = call.attrs[f"T{name}_func_other_arguments"]
        made.append(Captured(call, i, declared, [next(values) for t in types if t.name != "resource"], types))
    return nested.GroupByWindow(call, source, (made[0], made[1], made[2]), *_elements(call))


# Whole datasets


def _context(call: HostCall) -> Context:
    context = Context(f"{call.path}/", Streams())
    context.cancel = call.cancel
    return context


@_op("ReduceDataset")
def _reduce(call: HostCall) -> list[Any]:
    source, count = input_pipeline(call), len(call.attrs["Tstate"])
    function, _ = _captured(call, source, count)
    context = _context(call)
    try:
        return list(functions.reduce(source, context, function, call.inputs[1 : 1 + count]))
    finally:
        context.streams.close()


@_op("DatasetToSingleElement")
def _single(call: HostCall) -> list[Any]:
    context = _context(call)
    cursor = input_pipeline(call).begin(context, "")
    try:
        found = cursor.next()
        if found is None:
            raise call.error("the dataset is empty; it must have one element")
        if cursor.next() is not None:
            raise call.error("the dataset has more than one element; it must have one")
        return list(found)
    finally:
        cursor.close()
        context.streams.close()


@_op("DatasetCardinality", "ExperimentalDatasetCardinality")
def _cardinality(call: HostCall) -> list[Any]:
    return [np.array(input_pipeline(call).size(), np.int64)]


# Iterators


@_op("Iterator", "IteratorV2")
def _make_iterator(call: HostCall) -> list[Any]:
    _iterator(call)
    return []


def _iterator(call: HostCall, **more: Any) -> IteratorResource:
    dtypes, shapes = _elements(call)
    name = call.made.partition(" ")[2]
    found = call.resources.get_or_make(call.made, lambda: IteratorResource(name, dtypes, shapes, **more))
    if found.dtypes != tuple(dtypes):
        made, asked = ([d.name for d in x] for x in (found.dtypes, dtypes))
        raise call.error(f"{found} gives elements of dtypes {made}; {asked} are asked for under the same name")
    return found


@_op("OneShotIterator")
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


@_op("MakeIterator")
def _initialize(call: HostCall) -> list[Any]:
    _held(call).begin(input_pipeline(call))
    return []


def _held(call: HostCall) -> IteratorResource:
    """The iterator that the call's handle means."""
    key = call.handle()
    found = call.run_state.get(("iterator", key)) or call.resources.find(key)
    if not isinstance(found, IteratorResource):
        raise call.error(f"{key} does not exist; its handle must be made first", FailedPreconditionError)
    return found


@_op("IteratorGetNext", "IteratorGetNextSync")
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
    """An array that nobody else has, where it need not be copied again."""
    return array, call.device if array.flags.c_contiguous and array.flags.aligned else None


@_op("IteratorGetNextAsOptional")
def _next_as_optional(call: HostCall) -> list[Any]:
    element, _ = _held(call).next(call.cancel)
    return [(OptionalValue(None if element is None else tuple((x, None) for x in element)), None)]


@_op("IteratorToStringHandle")
def _to_string(call: HostCall) -> list[Any]:
    return [(_text(_held(call).handle), None)]


def _text(value: str) -> np.ndarray:
    made: np.ndarray = np.empty((), object)
    made[()] = value.encode()
    return made


@_op("IteratorFromStringHandle", "IteratorFromStringHandleV2")
def _from_string(call: HostCall) -> list[Any]:
    handle = scalar(call, 0, "string_handle").decode(errors="replace")
    found = call.resources.find(handle)
    if not isinstance(found, IteratorResource):
        raise call.error(
            f"string_handle is {handle!r}, which stands for no iterator of this session", InvalidArgumentError
        )
    dtypes = call.attrs["output_types"]
    if dtypes and tuple(dtypes) != found.dtypes:
        made, asked = ([d.name for d in x] for x in (found.dtypes, dtypes))
        raise call.error(f"{found} gives elements of dtypes {made}; {asked} are required")
    call.run_state["iterator", call.made] = found
    return []
