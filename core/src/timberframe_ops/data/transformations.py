"""Datasets of the elements of others, without functions: order, number, batches, threads."""

from __future__ import annotations

from timberframe_ops.data.signatures import define_dataset

_INPUT = "input_dataset: variant"
_SEEDS = ("seed: int64", "seed2: int64")
_PADDED = (_INPUT, "batch_size: int64", "padded_shapes: N * int64", "padding_values: Toutput_types")
_PADDED_TYPES = ("Toutput_types: list(type) >= 1", "output_shapes: list(shape) >= 1", "N: int >= 1")

define_dataset(
    "BatchDataset",
    "Batches of batch_size consecutive elements; the last one may have fewer.",
    [_INPUT, "batch_size: int64"],
)
define_dataset(
    "BatchDatasetV2",
    "Batches of batch_size consecutive elements. drop_remainder: leaves out a last one with fewer.",
    [_INPUT, "batch_size: int64", "drop_remainder: bool"],
    ["parallel_copy: bool = false"],
)
define_dataset(
    "PaddedBatchDataset",
    "Batches of elements that are padded with padding_values to padded_shapes, in which -1 is the largest size.",
    _PADDED,
    _PADDED_TYPES,
    elements=False,
)
define_dataset(
    "PaddedBatchDatasetV2",
    "PaddedBatchDataset that may leave out a last batch with fewer elements.",
    [*_PADDED, "drop_remainder: bool"],
    ["parallel_copy: bool = false", *_PADDED_TYPES],
    elements=False,
)
for _name in ("UnbatchDataset", "ExperimentalUnbatchDataset"):
    define_dataset(_name, "The rows of each element.", [_INPUT], metadata=_name == "UnbatchDataset")
define_dataset(
    "ShuffleDataset",
    "The elements in random order, drawn from a buffer. seed, seed2: what the order follows from; both 0: anything. "
    "reshuffle_each_iteration: each repetition has another order.",
    [_INPUT, "buffer_size: int64", *_SEEDS],
    ["reshuffle_each_iteration: bool = true"],
)
define_dataset(
    "ShuffleAndRepeatDataset",
    "ShuffleDataset, `count` times; -1: without an end.",
    [_INPUT, "buffer_size: int64", *_SEEDS, "count: int64"],
    ["reshuffle_each_iteration: bool = true"],
)
define_dataset("RepeatDataset", "The elements `count` times; -1: without an end.", [_INPUT, "count: int64"])
define_dataset("TakeDataset", "The first `count` elements; -1: all.", [_INPUT, "count: int64"])
define_dataset("SkipDataset", "The elements after the first `count`; -1: none.", [_INPUT, "count: int64"])
define_dataset(
    "ShardDataset",
    "Every num_shards-th element, from the one with the number `index`.",
    [_INPUT, "num_shards: int64", "index: int64"],
    ["require_non_empty: bool = false"],
)
define_dataset("ConcatenateDataset", "The elements of one and then of another.", [_INPUT, "another_dataset: variant"])
define_dataset(
    "ZipDataset",
    "Elements made of one of each, until one has no more.",
    ["input_datasets: N * variant"],
    ["N: int >= 1"],
)
define_dataset(
    "PrefetchDataset",
    "The elements, up to buffer_size of which a thread makes ahead; -1: as many as seems good.",
    [_INPUT, "buffer_size: int64"],
    ["slack_period: int = 0", "legacy_autotune: bool = true", "buffer_size_min: int = 0"],
)
define_dataset(
    "CacheDataset",
    "The elements, which are kept in memory or, with a filename, in a file when they are gone through the first time.",
    [_INPUT, "filename: string"],
)
define_dataset(
    "WindowDataset",
    "Datasets of `size` elements each, `stride` apart, which begin `shift` elements apart.",
    [_INPUT, "size: int64", "shift: int64", "stride: int64", "drop_remainder: bool"],
)
for _name in ("DirectedInterleaveDataset", "ExperimentalDirectedInterleaveDataset"):
    define_dataset(
        _name,
        "The next element of the dataset whose number the selector gives.",
        ["selector_input_dataset: variant", "data_input_datasets: N * variant"],
        ["N: int >= 1", *(() if _name[0] == "E" else ("stop_on_empty_dataset: bool = false",))],
        metadata=False,
    )
for _name in ("IgnoreErrorsDataset", "ExperimentalIgnoreErrorsDataset"):
    define_dataset(
        _name,
        "The elements that can be made: those whose making raises an error are left out.",
        [_INPUT],
        ["log_warning: bool = false"],
        metadata=False,
    )
for _name in ("DenseToSparseBatchDataset", "ExperimentalDenseToSparseBatchDataset"):
    define_dataset(
        _name,
        "Batches of elements of any sizes up to row_shape, as sparse tensors.",
        [_INPUT, "batch_size: int64", "row_shape: int64"],
        metadata=False,
    )
for _name, _attrs in (
    ("ModelDataset", ("algorithm: int = 0", "cpu_budget: int = 0", "ram_budget: int = 0")),
    ("FinalizeDataset", ("has_captured_ref: bool = false",)),
):
    define_dataset(_name, "The elements, unchanged.", [_INPUT], _attrs, metadata=False)
define_dataset("OptionsDataset", "The elements, unchanged.", [_INPUT], ["serialized_options: string"], metadata=True)
define_dataset(
    "OptimizeDataset",
    "The elements, unchanged.",
    [_INPUT, "optimizations: string"],
    ["optimization_configs: list(string) = []"],
    metadata=False,
)
