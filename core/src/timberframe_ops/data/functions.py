"""Datasets of what functions make of elements."""

from __future__ import annotations

from collections.abc import Sequence

from timberframe_ops.data.signatures import ELEMENTS, METADATA, component_shapes, define, define_dataset

_INPUT = ("input_dataset: variant", "other_arguments: Targuments")
_TYPES = "Targuments: list(type) >= 0"
_FUNCTION = ("f: func", _TYPES)
_SERIAL = "use_inter_op_parallelism: bool = true"
_COUNTED = "preserve_cardinality: bool = false"
_CYCLE = (*_INPUT, "cycle_length: int64", "block_length: int64")
_ORDERED = "deterministic: string = 'default'"
_BUFFERS = ("buffer_output_elements: int64", "prefetch_input_elements: int64")

define_dataset(
    "MapDataset",
    "`f` of each element.",
    _INPUT,
    [*_FUNCTION, _SERIAL, _COUNTED, "force_synchronous: bool = false"],
)
define_dataset(
    "ParallelMapDataset",
    "`f` of each element, for up to num_parallel_calls at a time; the order stays.",
    [*_INPUT, "num_parallel_calls: int32"],
    [*_FUNCTION, _SERIAL, "sloppy: bool = false", _COUNTED],
)
define_dataset(
    "ParallelMapDatasetV2",
    "`f` of each element, for up to num_parallel_calls at a time; the order stays.",
    [*_INPUT, "num_parallel_calls: int64"],
    [*_FUNCTION, _SERIAL, _ORDERED, _COUNTED, "use_unbounded_threadpool: bool = false"],
)
for _name in ("MapAndBatchDataset", "ExperimentalMapAndBatchDataset"):
    define_dataset(
        _name,
        "Batches of what `f` makes of batch_size consecutive elements.",
        [*_INPUT, "batch_size: int64", "num_parallel_calls: int64", "drop_remainder: bool"],
        [*_FUNCTION, _COUNTED],
        metadata=_name == "MapAndBatchDataset",
    )
define_dataset("FlatMapDataset", "The elements of the datasets that `f` makes, one after the other.", _INPUT, _FUNCTION)
define_dataset(
    "InterleaveDataset",
    "The elements of the datasets that `f` makes: block_length of each of cycle_length, in rotation.",
    _CYCLE,
    _FUNCTION,
)
for _name, _inputs, _attrs in (
    ("ParallelInterleaveDatasetV2", ("num_parallel_calls: int64",), ("sloppy: bool = false",)),
    ("ParallelInterleaveDatasetV3", ("num_parallel_calls: int64",), (_ORDERED,)),
    ("ParallelInterleaveDatasetV4", (*_BUFFERS, "num_parallel_calls: int64"), (_ORDERED,)),
    ("ParallelInterleaveDataset", ("sloppy: bool", *_BUFFERS), ()),
    ("ExperimentalParallelInterleaveDataset", ("sloppy: bool", *_BUFFERS), ()),
    ("LegacyParallelInterleaveDatasetV2", _BUFFERS, (_ORDERED,)),
):
    define_dataset(
        _name,
        "InterleaveDataset whose datasets are gone through at the same time; the order stays.",
        [*_CYCLE, *_inputs],
        ["f: func", *_attrs, _TYPES],
        metadata=_name[0] != "E",
    )
define_dataset("FilterDataset", "The elements for which `predicate` gives true.", _INPUT, ["predicate: func", _TYPES])
for _name in ("TakeWhileDataset", "ExperimentalTakeWhileDataset"):
    define_dataset(
        _name,
        "The elements before the first one for which `predicate` gives false.",
        _INPUT,
        ["predicate: func", _TYPES],
        metadata=_name == "TakeWhileDataset",
    )
for _name in ("ScanDataset", "ExperimentalScanDataset"):
    define_dataset(
        _name,
        "What `f` makes of a state and each element, after the next state.",
        ["input_dataset: variant", "initial_state: Tstate", "other_arguments: Targuments"],
        [
            "f: func",
            "Tstate: list(type) >= 1",
            _TYPES,
            _COUNTED,
            *(("use_default_device: bool = true",) if _name == "ScanDataset" else ()),
        ],
        metadata=_name == "ScanDataset",
    )
_WINDOW = ("key_func", "reduce_func", "window_size_func")
for _name in ("GroupByWindowDataset", "ExperimentalGroupByWindowDataset"):
    define_dataset(
        _name,
        "The elements of the datasets that reduce_func makes of a key and a window of elements with that key.",
        ["input_dataset: variant", *(f"{f}_other_arguments: T{f}_other_arguments" for f in _WINDOW)],
        [*(f"{f}: func" for f in _WINDOW), *(f"T{f}_other_arguments: list(type) >= 0" for f in _WINDOW)],
        metadata=_name == "GroupByWindowDataset",
    )


def _define_result(name: str, doc: str, inputs: Sequence[str], attrs: Sequence[str] = ()) -> None:
    """Defines an op that goes through a whole dataset."""
    define(
        name,
        inputs=inputs,
        outputs=["components: output_types"],
        attrs=[*attrs, *ELEMENTS, METADATA],
        doc=doc,
        shape=component_shapes,
        stateful=True,
        on_host=True,
    )


_define_result(
    "ReduceDataset",
    "The last state, after `f` has made the next one of a state and each element.",
    ["input_dataset: variant", "initial_state: Tstate", "other_arguments: Targuments"],
    ["f: func", "Tstate: list(type) >= 1", _TYPES, _SERIAL],
)
_define_result("DatasetToSingleElement", "The only element of a dataset.", ["dataset: variant"])
for _name, _attrs in (
    ("DatasetCardinality", ("cardinality_options: string = ''",)),
    ("ExperimentalDatasetCardinality", ()),
):
    define(
        _name,
        inputs=["input_dataset: variant"],
        outputs=["cardinality: int64"],
        attrs=_attrs,
        doc="How many elements a dataset has; -1: without an end, -2: not known before they are gone through.",
        shape=lambda c: [()],
        on_host=True,
    )
