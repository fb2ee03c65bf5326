"""`tf.data.experimental`: further transformations, most of them functions for `Dataset.apply`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from timberframe.data.csv import CsvDataset as CsvDataset
from timberframe.data.csv import make_csv_dataset as make_csv_dataset
from timberframe.data.dataset import AUTOTUNE as AUTOTUNE
from timberframe.data.dataset import Dataset, converted, data_seeds, dataset_of, inner_structure, known_size, traced
from timberframe.data.examples import make_batched_features_dataset as make_batched_features_dataset
from timberframe.data.examples import parse_example_dataset as parse_example_dataset
from timberframe.data.options import DistributeOptions as DistributeOptions
from timberframe.data.options import OptimizationOptions as OptimizationOptions
from timberframe.data.options import StatsOptions as StatsOptions
from timberframe.data.options import ThreadingOptions as ThreadingOptions
from timberframe.data.structure import (
    DatasetLeaf,
    TensorLeaf,
    attrs_of,
    check_same,
    flatten,
    map_leaves,
    pack,
    values_of,
)
from timberframe_core.dtypes import bool_, int64
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Counter",
    "CsvDataset",
    "DistributeOptions",
    "OptimizationOptions",
    "RandomDataset",
    "StatsOptions",
    "ThreadingOptions",
    "bucket_by_sequence_length",
    "cardinality",
    "choose_from_datasets",
    "enumerate_dataset",
    "get_single_element",
    "group_by_window",
    "ignore_errors",
    "make_batched_features_dataset",
    "make_csv_dataset",
    "map_and_batch",
    "parallel_interleave",
    "parse_example_dataset",
    "prefetch_to_device",
    "sample_from_datasets",
    "scan",
    "shuffle_and_repeat",
    "take_while",
    "unbatch",
]  # fmt: skip

INFINITE_CARDINALITY, UNKNOWN_CARDINALITY = -1, -2

Transformation = Callable[[Dataset], Dataset]


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: Any,
    num_parallel_batches: int | None = None,
    drop_remainder: Any = False,
    num_parallel_calls: Any = None,
) -> Transformation:
    """`map` and then `batch`, of num_parallel_calls elements (or num_parallel_batches batches) at the same time."""
    if num_parallel_batches is not None and num_parallel_calls is not None:
        raise InvalidArgumentError(
            "map_and_batch: num_parallel_batches and num_parallel_calls are given; one is enough"
        )
    calls = num_parallel_calls
    if calls is None:
        calls = 1 if num_parallel_batches is None else num_parallel_batches * batch_size

    def apply(dataset: Dataset) -> Dataset:
        f = traced(map_func, [dataset.structure], "map_and_batch")
        count = known_size(batch_size, drop_remainder)
        structure = map_leaves(lambda leaf: leaf.batched(count), f.structure)
        return dataset._mapped("MapAndBatchDataset", f, [batch_size, calls, drop_remainder], structure)

    return apply


def parallel_interleave(
    map_func: Callable[..., Any],
    cycle_length: Any,
    block_length: Any = 1,
    sloppy: Any = False,
    buffer_output_elements: Any = None,
    prefetch_input_elements: Any = None,
) -> Transformation:
    """`interleave`, whose datasets may be gone through at the same time; the order is always that of `interleave`."""

    def apply(dataset: Dataset) -> Dataset:
        f = traced(map_func, [dataset.structure], "parallel_interleave", "datasets")
        ahead = [-1 if x is None else x for x in (buffer_output_elements, prefetch_input_elements)]
        inputs = [cycle_length, block_length, convert_to_tensor(False if sloppy is None else sloppy, bool_), *ahead]
        inner = inner_structure(f, "parallel_interleave")
        return dataset._mapped("ParallelInterleaveDataset", f, inputs, inner)

    return apply


def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: Any = None) -> Transformation:
    """`shuffle` and then `repeat`."""

    def apply(dataset: Dataset) -> Dataset:
        return dataset._of("ShuffleAndRepeatDataset", [buffer_size, *data_seeds(seed), -1 if count is None else count])

    return apply


def group_by_window(
    key_func: Callable[..., Any],
    reduce_func: Callable[..., Any],
    window_size: Any = None,
    window_size_func: Callable[..., Any] | None = None,
) -> Transformation:
    """Returns the elements of the datasets that reduce_func makes of a key and a dataset of elements that have it.

    key_func: gives the key of an element, an int64. window_size: how many elements of one key make a dataset, or
    window_size_func: a function of the key that gives it.
    """
    if (window_size is None) == (window_size_func is None):
        given = "neither" if window_size is None else "both"
        raise InvalidArgumentError(
            f"group_by_window: {given} of window_size and window_size_func given; one is required"
        )
    size_func = window_size_func or (lambda key: convert_to_tensor(window_size, int64))

    def scalar(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: Any) -> Tensor:
            made: Tensor = apply_op("Cast", [convert_to_tensor(function(*values))], {"DstT": int64})
            return made

        return call

    def apply(dataset: Dataset) -> Dataset:
        key = traced(scalar(key_func), [dataset.structure], "group_by_window")
        leaf = TensorLeaf(int64, ())
        check_same("group_by_window: what key_func returns", key.structure, leaf)
        window = DatasetLeaf(dataset.structure, dataset_of)
        reduced = traced(reduce_func, [leaf, window], "group_by_window", "datasets")
        size = traced(scalar(size_func), [leaf], "group_by_window")
        functions = {"key_func": key.graph, "reduce_func": reduced.graph, "window_size_func": size.graph}
        inputs = [key.captures, reduced.captures, size.captures]
        return dataset._of("GroupByWindowDataset", inputs, inner_structure(reduced, "group_by_window"), functions)

    return apply


def bucket_by_sequence_length(
    element_length_func: Callable[..., Any],
    bucket_boundaries: Sequence[int],
    bucket_batch_sizes: Sequence[int],
    padded_shapes: Any = None,
    padding_values: Any = None,
    pad_to_bucket_boundary: bool = False,
    no_padding: bool = False,
    drop_remainder: bool = False,
) -> Transformation:
    """Batches of elements of similar length. bucket_boundaries: upper ends of the lengths of all buckets but the last.

    bucket_batch_sizes: of each bucket, one more. pad_to_bucket_boundary: to its end less 1, not to the longest element.
    """
    if len(bucket_batch_sizes) != len(bucket_boundaries) + 1:
        raise InvalidArgumentError(
            f"bucket_by_sequence_length: {len(bucket_batch_sizes)} batch sizes for {len(bucket_boundaries)} "
            "boundaries; one more than boundaries is required"
        )
    sizes = convert_to_tensor(list(bucket_batch_sizes), int64)

    def bucket(*element: Any) -> Tensor:
        length = apply_op("Cast", [element_length_func(*element)], {"DstT": int64})
        ends = convert_to_tensor(list(bucket_boundaries), int64)
        above = apply_op("Cast", [apply_op("GreaterEqual", [length, ends])], {"DstT": int64})
        found: Tensor = apply_op("Sum", [above, [0]])
        return found

    def batch_size(key: Tensor) -> Tensor:
        found: Tensor = apply_op("GatherV2", [sizes, key, 0])
        return found

    def reduced(key: Tensor, window: Dataset) -> Dataset:
        count = batch_size(key)
        if no_padding:
            return window.batch(count, drop_remainder)
        shapes = padded_shapes
        if shapes is None:
            shapes = map_leaves(lambda leaf: leaf.output_shape, window.structure)
        if pad_to_bucket_boundary:
            ends = convert_to_tensor([end - 1 for end in bucket_boundaries], int64)
            end = apply_op("GatherV2", [ends, key, 0])
            shapes = map_leaves(lambda shape: _to_boundary(shape, end), shapes)
        return window.padded_batch(count, shapes, padding_values, drop_remainder)

    def apply(dataset: Dataset) -> Dataset:
        return dataset.apply(group_by_window(bucket, reduced, None, batch_size))

    return apply


def _to_boundary(shape: Any, end: Tensor) -> Any:
    """Returns a padded shape with a bucket's end in place of sizes that are not known."""
    sizes = list(shape) if isinstance(shape, list | tuple) else shape.as_list()
    return (
        apply_op("Pack", [[end if d in (None, -1) else convert_to_tensor(d, int64) for d in sizes]]) if sizes else shape
    )


def unbatch() -> Transformation:
    """Returns the rows of each element."""
    return lambda dataset: dataset.unbatch()


def enumerate_dataset(start: Any = 0) -> Transformation:
    """Returns pairs of a number, from `start`, and an element."""
    return lambda dataset: dataset.enumerate(start)


def ignore_errors() -> Transformation:
    """Returns the elements that can be made: those whose making raises an error are left out."""
    return lambda dataset: dataset._of("IgnoreErrorsDataset", [])


def take_while(predicate: Callable[..., Any]) -> Transformation:
    """Returns the elements before the first one for which a function gives false."""
    return lambda dataset: dataset._filtered("TakeWhileDataset", predicate, "take_while")


def scan(initial_state: Any, scan_func: Callable[..., Any]) -> Transformation:
    """Returns what a function makes of a state and each element: it returns the next state
    and what the new element is.
    """
    state, initial = converted(initial_state)

    def apply(dataset: Dataset) -> Dataset:
        f = traced(scan_func, [state, dataset.structure], "scan")
        if not isinstance(f.structure, tuple) or len(f.structure) != 2:
            raise InvalidTypeError(
                f"scan: scan_func returns {f.structure}; a pair of the next state and an element is required"
            )
        check_same("scan: the state that scan_func returns", f.structure[0], state)
        inner = f.structure[1]
        return dataset._of("ScanDataset", [initial, f.captures], inner, {"f": f.graph})

    return apply


def prefetch_to_device(device: str, buffer_size: Any = None) -> Transformation:
    """`prefetch`; elements go to the device when a run asks for them there."""
    return lambda dataset: dataset.prefetch(buffer_size)


def get_single_element(dataset: Dataset) -> Any:
    """Returns the only element of a dataset; InvalidArgumentError when it is run and there is none or are several."""
    made = apply_op("DatasetToSingleElement", [dataset.variant], attrs_of(dataset.structure))
    return values_of(dataset.structure, made)


def cardinality(dataset: Dataset) -> Tensor:
    """Returns how many elements a dataset has; -1: without an end, -2: not known before they are gone through."""
    found: Tensor = apply_op("DatasetCardinality", [dataset.variant])
    return found


def Counter(start: Any = 0, step: Any = 1, dtype: Any = int64) -> Dataset:  # noqa: N802 - TensorFlow's name
    """Returns the numbers start, start + step, ... without an end."""
    made = Dataset.range(start, int64.max if not isinstance(step, int) or step > 0 else int64.min, step)
    return made if dtype is int64 else made.map(lambda x: apply_op("Cast", [x], {"DstT": dtype}))


class RandomDataset(Dataset):
    """Random integers of 32 bits, as int64, without an end."""

    def __init__(self, seed: Any = None) -> None:
        """seed: with the graph's, what the numbers follow from."""
        structure = TensorLeaf(int64, ())
        super().__init__(apply_op("RandomDataset", data_seeds(seed), attrs_of(structure)), structure)


def sample_from_datasets(datasets: Sequence[Dataset], weights: Any = None, seed: Any = None) -> Dataset:
    """Returns the next element of a dataset that is drawn at random.

    weights: how often each is, all equally if None: floats, one for each, or a dataset of these. A dataset of weight 0
    is left out; where weights are a tensor it counts as one that has ended.
    """
    if isinstance(weights, Dataset):
        choices = Dataset.zip((weights, RandomDataset(seed).batch(2))).map(
            lambda chances, pair: _draw(apply_op("Log", [chances]), pair)
        )
        return _directed(choices, datasets)
    if not isinstance(weights, Tensor):
        return _sampled(datasets, weights, seed)
    given = _floating(weights)
    logits = apply_op("Log", [given])
    possible = apply_op("Greater", [given, apply_op("ZerosLike", [given])])
    all_or_none = apply_op("Sub", [apply_op("Cast", [apply_op("LogicalNot", [possible])], {"DstT": int64}), 1])
    counts = apply_op("Unpack", [all_or_none], {"num": len(datasets), "axis": 0})
    limited = [dataset.take(count) for dataset, count in zip(datasets, counts, strict=True)]
    if len(limited) == 1:
        return limited[0]
    never = Dataset.from_tensor_slices(apply_op("Where", [apply_op("LogicalNot", [possible])])).map(_scalar)
    return _directed(never.concatenate(_choices(logits, seed)), limited)


def _choices(logits: Tensor, seed: Any) -> Dataset:
    """Returns numbers of datasets, without end; to make it takes the seed of an op."""
    return RandomDataset(seed).batch(2).map(lambda pair: _draw(logits, pair))


def _sampled(datasets: Sequence[Dataset], weights: Any, seed: Any) -> Dataset:
    """Returns the next element of a dataset that is drawn by known weights; the others are not even gone through."""
    logits = convert_to_tensor([1.0] * len(datasets))
    if weights is not None:
        if len(weights) != len(datasets):
            raise InvalidArgumentError(
                f"sample_from_datasets: {len(weights)} weights for {len(datasets)} datasets; each needs one"
            )
        pairs = [(d, w) for d, w in zip(datasets, weights, strict=True) if w > 0] or [(datasets[0].take(0), 1.0)]
        datasets, logits = [d for d, _ in pairs], apply_op("Log", [_floating([w for _, w in pairs])])
    if len(datasets) == 1:
        return datasets[0]
    return _directed(_choices(logits, seed), datasets)


def _floating(weights: Any) -> Tensor:
    given = convert_to_tensor(weights)
    if given.dtype.name not in ("float32", "float64"):
        raise InvalidTypeError(f"sample_from_datasets: weights are {given.dtype.name}; float32 or float64 is required")
    return given


def _draw(logits: Tensor, seed: Tensor) -> Tensor:
    """Returns the number of a dataset, by the logarithms of weights."""
    return _scalar(apply_op("StatelessMultinomial", [apply_op("ExpandDims", [logits, 0]), 1, seed]))


def _scalar(x: Tensor) -> Tensor:
    found: Tensor = apply_op("Reshape", [x, []])
    return found


def choose_from_datasets(datasets: Sequence[Dataset], choice_dataset: Dataset) -> Dataset:
    """Returns the next element of the dataset whose number choice_dataset gives."""
    check_same("choose_from_datasets: choice_dataset", choice_dataset.structure, TensorLeaf(int64, ()))
    return _directed(choice_dataset, datasets)


def _directed(selector: Dataset, datasets: Sequence[Dataset]) -> Dataset:
    first, *others = datasets
    structure = first.structure
    for other in others:
        wanted = map_leaves(lambda leaf: leaf.of_any_shape, structure)
        check_same("datasets to choose from", other.structure, wanted)
        pairs = zip(flatten(structure), flatten(other.structure), strict=True)
        structure = pack(structure, iter([a.in_common(b) for a, b in pairs]))
    inputs = [selector.variant, [d.variant for d in datasets]]
    return Dataset(apply_op("ExperimentalDirectedInterleaveDataset", inputs, attrs_of(structure)), structure)
