"""What the executor does for the ops on datasets."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe.pipelines import (
    batches,
    caches,
    combinations,
    files,
    functions,
    generators,
    nested,
    order,
    record_files,
    sources,
    threads,
)
from timberframe.pipelines.base import Captured, Context, Pipeline, input_pipeline, scalar
from timberframe.pipelines.registry import dataset, elements, is_shared, op
from timberframe.pipelines.shuffling import Shuffle
from timberframe_core.plugin.host_ops import HostCall
from timberframe_core.runtime.functions import Streams

# Sources


@dataset("TensorDataset")
def _tensors(call: HostCall) -> Pipeline:
    return sources.Tensors(call, call.inputs, call.attrs["Toutput_types"])


dataset("TensorSliceDataset")(sources.slices)
dataset("RangeDataset")(sources.numbers)
dataset("RandomDataset", "ExperimentalRandomDataset")(sources.RandomNumbers)


@dataset("TextLineDataset")
def _lines(call: HostCall) -> Pipeline:
    return files.Lines(call, call.inputs[0], call.inputs[1], scalar(call, 2, "buffer_size"))


@dataset("TFRecordDataset")
def _records(call: HostCall) -> Pipeline:
    return record_files.Records(call, call.inputs[0], call.inputs[1], scalar(call, 2, "buffer_size"))


@dataset("FixedLengthRecordDataset", "FixedLengthRecordDatasetV2")
def _fixed(call: HostCall) -> Pipeline:
    compression = call.inputs[5] if len(call.inputs) > 5 else ""
    header, size, footer, buffer = (
        scalar(call, i, name)
        for i, name in enumerate(("header_bytes", "record_bytes", "footer_bytes", "buffer_size"), 1)
    )
    return files.FixedRecords(call, call.inputs[0], compression, buffer, header=header, size=size, footer=footer)


@dataset("GeneratorDataset")
def _generator(call: HostCall) -> Pipeline:
    attrs, values = call.attrs, iter(call.inputs)
    made = []
    for i, name in enumerate(("init", "next", "finalize")):
        types = attrs[f"T{name}_func_args"]
        given = [next(values) for t in types if t.name != "resource"]
        declared = 0 if not i else len(call.function(i).function.inputs) - len(types)
        made.append(Captured(call, i, declared, given, types))
    return generators.Generator(call, (made[0], made[1], made[2]), *elements(call))


# Order and number


@dataset("RepeatDataset")
def _repeat(call: HostCall) -> Pipeline:
    return order.Repeat(call, input_pipeline(call), scalar(call, 1, "count"))


@dataset("TakeDataset")
def _take(call: HostCall) -> Pipeline:
    return order.Take(call, input_pipeline(call), scalar(call, 1, "count"))


@dataset("SkipDataset")
def _skip(call: HostCall) -> Pipeline:
    return order.Skip(call, input_pipeline(call), scalar(call, 1, "count"))


@dataset("ShardDataset")
def _shard(call: HostCall) -> Pipeline:
    return order.Shard(call, input_pipeline(call), scalar(call, 1, "num_shards"), scalar(call, 2, "index"))


@dataset("ConcatenateDataset")
def _concatenate(call: HostCall) -> Pipeline:
    return combinations.Concatenate(call, [input_pipeline(call, 0), input_pipeline(call, 1)])


@dataset("ZipDataset")
def _zip(call: HostCall) -> Pipeline:
    return combinations.Zip(call, [input_pipeline(call, i) for i in range(len(call.inputs))])


@dataset("ShuffleDataset")
def _shuffle(call: HostCall) -> Pipeline:
    return _shuffled(call)


def _shuffled(call: HostCall, apart: bool = False) -> Shuffle:
    seeds = scalar(call, 2, "seed"), scalar(call, 3, "seed2")
    size, again = scalar(call, 1, "buffer_size"), call.attrs["reshuffle_each_iteration"]
    return Shuffle(call, input_pipeline(call), size, seeds, again, apart)


@dataset("ShuffleAndRepeatDataset")
def _shuffle_and_repeat(call: HostCall) -> Pipeline:
    return order.Repeat(call, _shuffled(call, apart=True), scalar(call, 4, "count"))


@dataset("CacheDataset")
def _cache(call: HostCall) -> Pipeline:
    return caches.Cache(call, input_pipeline(call), scalar(call, 1, "filename").decode())


@dataset("IgnoreErrorsDataset", "ExperimentalIgnoreErrorsDataset")
def _ignore(call: HostCall) -> Pipeline:
    return caches.IgnoreErrors(call, input_pipeline(call))


@dataset("ModelDataset", "OptimizeDataset", "OptionsDataset", "FinalizeDataset")
def _unchanged(call: HostCall) -> Pipeline:
    return input_pipeline(call)


@dataset("PrefetchDataset")
def _prefetch(call: HostCall) -> Pipeline:
    size = scalar(call, 1, "buffer_size")
    if size < -1:
        raise call.error(f"buffer_size is {size}; it must be zero or more, or -1")
    return threads.Prefetch(call, input_pipeline(call), size)


# Batches


@dataset("BatchDataset", "BatchDatasetV2")
def _batch(call: HostCall) -> Pipeline:
    drop = len(call.inputs) > 2 and scalar(call, 2, "drop_remainder")
    return batches.Batch(call, input_pipeline(call), scalar(call, 1, "batch_size"), drop)


@dataset("PaddedBatchDataset", "PaddedBatchDatasetV2")
def _padded(call: HostCall) -> Pipeline:
    count = call.attrs["N"]
    shapes, values = call.inputs[2 : 2 + count], call.inputs[2 + count : 2 + 2 * count]
    drop = len(call.inputs) > 2 + 2 * count and bool(call.inputs[-1])
    size = scalar(call, 1, "batch_size")
    return batches.PaddedBatch(call, input_pipeline(call), size, drop, shapes, values)


@dataset("UnbatchDataset", "ExperimentalUnbatchDataset")
def _unbatch(call: HostCall) -> Pipeline:
    return batches.Unbatch(call, input_pipeline(call), *elements(call))


@dataset("WindowDataset")
def _window(call: HostCall) -> Pipeline:
    size, shift, stride, drop = (
        scalar(call, i, name) for i, name in enumerate(("size", "shift", "stride", "drop_remainder"), 1)
    )
    return nested.Window(call, input_pipeline(call), size, shift, stride, drop)


# Functions


def _captured(call: HostCall, source: Pipeline, skip: int = 0) -> tuple[Captured, list[Any]]:
    """Returns the function of the node with what it was given besides elements, and the inputs after that.

    skip: how many inputs of the function precede the components of an element.
    """
    types = call.attrs["Targuments"]
    count = sum(t.name != "resource" for t in types)
    given = call.inputs[1 + skip :]
    return Captured(call, 0, skip + len(source.dtypes), given[:count], types), list(given[count:])


@dataset("MapDataset")
def _map(call: HostCall) -> Pipeline:
    source = input_pipeline(call)
    return functions.Map(call, source, _captured(call, source)[0], *elements(call))


@dataset("ParallelMapDataset", "ParallelMapDatasetV2")
def _parallel_map(call: HostCall) -> Pipeline:
    source = input_pipeline(call)
    function, (calls,) = _captured(call, source)
    if int(calls) < 1 and int(calls) != -1:
        raise call.error(f"num_parallel_calls is {int(calls)}; it must be greater than zero, or -1")
    return threads.ParallelMap(call, source, function, *elements(call), calls=int(calls))


@dataset("MapAndBatchDataset", "ExperimentalMapAndBatchDataset")
def _map_and_batch(call: HostCall) -> Pipeline:
    source = input_pipeline(call)
    function, (size, calls, drop) = _captured(call, source)
    dtypes, shapes = elements(call)
    rows = [None if s is None else s[1:] for s in shapes]
    mapped = threads.ParallelMap(call, source, function, dtypes, rows, calls=int(calls))
    return batches.Batch(call, mapped, int(size), bool(drop))


@dataset("FilterDataset")
def _filter(call: HostCall) -> Pipeline:
    source = input_pipeline(call)
    return functions.Filter(call, source, _captured(call, source)[0])


@dataset("TakeWhileDataset", "ExperimentalTakeWhileDataset")
def _take_while(call: HostCall) -> Pipeline:
    source = input_pipeline(call)
    return functions.TakeWhile(call, source, _captured(call, source)[0])


@dataset("FlatMapDataset")
def _flat_map(call: HostCall) -> Pipeline:
    source = input_pipeline(call)
    return nested.Interleave(call, source, _captured(call, source)[0], 1, 1, *elements(call))


@dataset(
    "InterleaveDataset", "ParallelInterleaveDatasetV2", "ParallelInterleaveDatasetV3", "ParallelInterleaveDatasetV4",
    "ParallelInterleaveDataset", "ExperimentalParallelInterleaveDataset", "LegacyParallelInterleaveDatasetV2",
)  # fmt: skip
def _interleave(call: HostCall) -> Pipeline:
    source = input_pipeline(call)
    function, (cycle, block, *more) = _captured(call, source)
    if call.op.startswith("ParallelInterleaveDatasetV"):
        _check_parallel(call, int(more[-1]), int(cycle))
    cycle = int(cycle) if int(cycle) != -1 else threads.processors()
    return nested.Interleave(call, source, function, cycle, int(block), *elements(call))


def _check_parallel(call: HostCall, parallel: int, cycle: int) -> None:
    """Raises InvalidArgumentError for a num_parallel_calls that no dataset is left for; -1 is any number."""
    if parallel < 1 and parallel != -1:
        raise call.error(f"num_parallel_calls is {parallel}; it must be greater than zero, or -1 (AUTOTUNE)")
    if parallel > cycle > 0:
        raise call.error(f"num_parallel_calls is {parallel} for cycle_length {cycle}; it must be no more than that")


@dataset("DirectedInterleaveDataset", "ExperimentalDirectedInterleaveDataset")
def _directed(call: HostCall) -> Pipeline:
    parts = [input_pipeline(call, i) for i in range(len(call.inputs))]
    return nested.DirectedInterleave(call, parts[0], parts[1:], call.attrs.get("stop_on_empty_dataset", False))


@dataset("ScanDataset", "ExperimentalScanDataset")
def _scan(call: HostCall) -> Pipeline:
    source, count = input_pipeline(call), len(call.attrs["Tstate"])
    function, _ = _captured(call, source, count)
    return functions.Scan(call, source, function, call.inputs[1 : 1 + count], *elements(call))


@dataset("GroupByWindowDataset", "ExperimentalGroupByWindowDataset")
def _group(call: HostCall) -> Pipeline:
    source, values = input_pipeline(call), iter(call.inputs[1:])
    made = []
    for i, (name, declared) in enumerate((("key", len(source.dtypes)), ("reduce", 2), ("window_size", 1))):
        types = call.attrs[f"T{name}_func_other_arguments"]
        made.append(Captured(call, i, declared, [next(values) for t in types if t.name != "resource"], types))
    return nested.GroupByWindow(call, source, (made[0], made[1], made[2]), *elements(call))


# Whole datasets


def _context(call: HostCall, pipeline: Pipeline) -> Context:
    context = Context(f"{call.path}/", Streams(), shared=is_shared(call, pipeline))
    context.cancel = call.cancel
    return context


@op("ReduceDataset")
def _reduce(call: HostCall) -> list[Any]:
    source, count = input_pipeline(call), len(call.attrs["Tstate"])
    function, _ = _captured(call, source, count)
    context = _context(call, source)
    try:
        return list(functions.reduce(source, context, function, call.inputs[1 : 1 + count]))
    finally:
        context.streams.close()


@op("DatasetToSingleElement")
def _single(call: HostCall) -> list[Any]:
    pipeline = input_pipeline(call)
    context = _context(call, pipeline)
    cursor = pipeline.begin(context, "")
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


@op("DatasetCardinality", "ExperimentalDatasetCardinality")
def _cardinality(call: HostCall) -> list[Any]:
    return [np.array(input_pipeline(call).size(), np.int64)]
