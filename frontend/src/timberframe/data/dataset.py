"""`tf.data.Dataset`: pipelines of elements, each a tensor or a structure of tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from timberframe.api.arrays import Assert, identity
from timberframe.api.framework import control_dependencies, get_static_value
from timberframe.api.random_seeds import get_seed
from timberframe.data import generators
from timberframe.data import iterator as iterators
from timberframe.data.options import Options
from timberframe.data.padding import padding_of
from timberframe.data.structure import (
    DatasetLeaf,
    Elements,
    TensorLeaf,
    attrs_of,
    check_same,
    flatten,
    flatten_up_to,
    leaf_of,
    map_leaves,
    pack,
    values_of,
)
from timberframe.data.tracing import Traced, trace
from timberframe_core.dtypes import int64, string
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.operation import Tensor
from timberframe_core.shapes import format_shape

AUTOTUNE = -1
"""As many, or as much, as seems good."""


class Dataset(Elements):
    """A pipeline of elements of one structure: a tensor, or tensors in tuples, named tuples and dicts.

    Its methods give datasets of its elements, changed; nothing is computed before an iterator goes through one.
    """

    def __init__(self, variant_tensor: Any, structure: Any = None, options: Options | None = None) -> None:
        super().__init__(variant_tensor, structure)
        self._options = options or Options()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} shapes: {self.output_shapes}, types: {self.output_types}>"

    def __iter__(self) -> Any:
        if get_default_graph().eager:
            return iterators.one_shot(self)
        raise InvalidTypeError(
            "a Dataset can be iterated only in eager mode; make_one_shot_iterator() makes an iterator"
        )

    def options(self) -> Options:
        """Returns the options of the dataset and of those that it was made of."""
        return self._options

    def with_options(self, options: Options) -> Dataset:
        """Returns the dataset with these options, which say how it is run and change none of its elements."""
        return Dataset(self.variant, self.structure, self._options.merge(options))

    def _of(
        self, op: str, inputs: Sequence[Any], structure: Any = None, attrs: Mapping[str, Any] | None = None
    ) -> Dataset:
        """Returns the dataset of an op whose first input is this one."""
        structure = self.structure if structure is None else structure
        made = apply_op(op, [self.variant, *inputs], {**attrs_of(structure), **(attrs or {})})
        return Dataset(made, structure, self._options)

    # Sources

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """Returns one element: `tensors`, which is a structure of what becomes tensors."""
        structure, made = converted(tensors)
        return _source(
            "TensorDataset", [made], structure, {"output_shapes": [leaf.shape for leaf in flatten(structure)]}
        )

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """Returns the rows of `tensors`, a structure of what becomes tensors of equal first dimensions."""
        whole, made = converted(tensors, rows=True)
        for t in made:
            if t.static_shape == ():
                raise InvalidArgumentError(
                    f"Dataset.from_tensor_slices: '{t.name}' is a scalar; tensors with rows are required"
                )
        sizes = {t.static_shape[0] for t in made if t.static_shape} - {None}
        if len(sizes) > 1:
            raise InvalidArgumentError(
                f"Dataset.from_tensor_slices: the tensors have {sorted(d for d in sizes if d is not None)} rows; "
                "all need as many"
            )
        structure = map_leaves(lambda leaf: leaf.row, whole)
        shapes = [leaf.shape for leaf in flatten(structure)]
        return _source("TensorSliceDataset", [made], structure, {"output_shapes": shapes})

    @staticmethod
    def from_generator(
        generator: Callable[..., Any], output_types: Any, output_shapes: Any = None, args: Sequence[Any] | None = None
    ) -> Dataset:
        """Returns what the iterable gives that ``generator(*args)`` returns, each time the dataset is gone through.

        output_types, output_shapes: of an element, in its structure. args: tensors, whose values the function gets.
        """
        made, structure = generators.from_generator(generator, output_types, output_shapes, traced)
        given = tuple(convert_to_tensor(x) for x in args or ())
        numbered = Dataset.from_tensors(given or 0)
        return numbered.flat_map(lambda *values: Dataset(made(values if given else ()), structure))

    @staticmethod
    def range(*args: Any) -> Dataset:
        """Returns the integers of ``range(*args)``, as int64."""
        if not 1 <= len(args) <= 3:
            raise InvalidArgumentError(f"Dataset.range: {len(args)} arguments are given; one to three are required")
        start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
        structure = TensorLeaf(int64, ())
        return _source("RangeDataset", [start, stop, step], structure, attrs_of(structure))

    @staticmethod
    def zip(datasets: Any) -> Dataset:
        """Returns elements made of one of each of a structure of datasets, until one has no more."""
        parts = flatten(datasets)
        for part in parts:
            if not isinstance(part, Dataset):
                raise InvalidTypeError(f"Dataset.zip: {part!r} is given; a structure of datasets is required")
        structure = pack(datasets, iter([p.structure for p in parts]))
        made = apply_op("ZipDataset", [[p.variant for p in parts]], attrs_of(structure))
        options = Options()
        for part in parts:
            options = options.merge(part.options())
        return Dataset(made, structure, options)

    @staticmethod
    def list_files(file_pattern: Any, shuffle: bool | None = None, seed: Any = None) -> Dataset:
        """Returns the names of the files that match a pattern or several; InvalidArgumentError where none does.

        shuffle: in random order, which is so unless it is False. seed: what the order follows from.
        """
        found = apply_op("MatchingFiles", [convert_to_tensor(file_pattern, string)])
        count = apply_op("Size", [found], {"out_type": int64})
        check = Assert(apply_op("Greater", [count, 0]), ["No files matched pattern: ", file_pattern])
        with control_dependencies([check]):
            found = identity(found)
        made = _source(
            "TensorSliceDataset", [[found]], TensorLeaf(string, ()), {"output_shapes": [()], "is_files": True}
        )
        if shuffle is False:
            return made
        return made.shuffle(apply_op("Maximum", [count, convert_to_tensor(1, int64)]), seed)

    # Number and order

    def concatenate(self, dataset: Dataset) -> Dataset:
        """Returns the elements of this dataset and then those of another of the same structure."""
        try:
            pairs = zip(flatten(self.structure), flatten_up_to(self.structure, dataset.structure), strict=True)
            leaves = [a.in_common(b) for a, b in pairs]
        except (InvalidTypeError, AssertionError) as e:
            raise InvalidTypeError(
                f"Dataset.concatenate: the datasets have elements of different structures: {e}"
            ) from None
        dtypes = [leaf.dtype for leaf in flatten(dataset.structure)]
        if [leaf.dtype for leaf in leaves] != dtypes:
            raise InvalidTypeError(
                f"Dataset.concatenate: the datasets have types {self.output_types} and {dataset.output_types}; "
                "they must be equal"
            )
        return self._of("ConcatenateDataset", [dataset.variant], pack(self.structure, iter(leaves)))

    def prefetch(self, buffer_size: Any) -> Dataset:
        """Returns the elements, up to buffer_size of which a thread makes ahead; AUTOTUNE: as many as seems good."""
        return self._of("PrefetchDataset", [AUTOTUNE if buffer_size is None else buffer_size])

    def repeat(self, count: Any = None) -> Dataset:
        """Returns the elements `count` times; None or -1: without an end."""
        return self._of("RepeatDataset", [-1 if count is None else count])

    def enumerate(self, start: Any = 0) -> Dataset:
        """Returns pairs of a number, from `start`, and an element."""
        return Dataset.zip((Dataset.range(start, int64.max), self))

    def shuffle(self, buffer_size: Any, seed: Any = None, reshuffle_each_iteration: bool | None = None) -> Dataset:
        """Returns the elements in random order, drawn from a buffer of buffer_size.

        seed: with the graph's, what the order follows from; it is TensorFlow's. reshuffle_each_iteration: whether each
        repetition has another order, which is so unless it is False.
        """
        seeds = data_seeds(seed)
        attrs = {"reshuffle_each_iteration": reshuffle_each_iteration is not False}
        return self._of("ShuffleDataset", [buffer_size, *seeds], attrs=attrs)

    def cache(self, filename: Any = "") -> Dataset:
        """Returns the elements, kept when they are gone through the first time: in memory, or in files of this name."""
        return self._of("CacheDataset", [filename])

    def take(self, count: Any) -> Dataset:
        """Returns the first `count` elements; -1: all."""
        return self._of("TakeDataset", [count])

    def skip(self, count: Any) -> Dataset:
        """Returns the elements after the first `count`; -1: none."""
        return self._of("SkipDataset", [count])

    def shard(self, num_shards: Any, index: Any) -> Dataset:
        """Returns every num_shards-th element, from the one with the number `index`."""
        return self._of("ShardDataset", [num_shards, index])

    # Batches

    def batch(self, batch_size: Any, drop_remainder: Any = False) -> Dataset:
        """Batches of batch_size elements. drop_remainder: leaves out a last one with fewer."""
        count = known_size(batch_size, drop_remainder)
        structure = map_leaves(lambda leaf: leaf.batched(count), self.structure)
        return self._of("BatchDatasetV2", [batch_size, drop_remainder], structure)

    def padded_batch(
        self, batch_size: Any, padded_shapes: Any = None, padding_values: Any = None, drop_remainder: Any = False
    ) -> Dataset:
        """Batches of elements that are padded to one shape.

        padded_shapes: for each component a shape in which None or -1 is the largest size of the batch; None: so for all
        sizes that are not known. padding_values: for each a scalar; None: 0, or "" for strings.
        """
        shapes, values, structure = padding_of(self.structure, padded_shapes, padding_values)
        count = known_size(batch_size, drop_remainder)
        structure = map_leaves(lambda leaf: leaf.batched(count), structure)
        attrs = {"Toutput_types": [v.dtype for v in values], "output_shapes": attrs_of(structure)["output_shapes"]}
        made = apply_op("PaddedBatchDatasetV2", [self.variant, batch_size, shapes, values, drop_remainder], attrs)
        return Dataset(made, structure, self._options)

    def unbatch(self) -> Dataset:
        """Returns the rows of each element."""
        return self._of("UnbatchDataset", [], map_leaves(lambda leaf: leaf.row, self.structure))

    def window(self, size: Any, shift: Any = None, stride: Any = 1, drop_remainder: Any = False) -> Dataset:
        """Datasets of `size` elements each, `stride` apart, which begin `shift` (by default `size`) elements apart.

        An element that is a structure becomes a structure of datasets.
        """
        structure = map_leaves(lambda leaf: DatasetLeaf(leaf, dataset_of), self.structure)
        return self._of("WindowDataset", [size, size if shift is None else shift, stride, drop_remainder], structure)

    # Functions

    def map(self, map_func: Callable[..., Any], num_parallel_calls: Any = None) -> Dataset:
        """Returns what a function makes of each element. It gets the parts of an element that is a tuple one by one.

        num_parallel_calls: how many calls may be made at the same time; the order stays. AUTOTUNE: as seems good.
        """
        f = traced(map_func, [self.structure], "map")
        if num_parallel_calls is None:
            return self._mapped("MapDataset", f, [])
        calls = convert_to_tensor(num_parallel_calls, int64, "num_parallel_calls")
        return self._mapped("ParallelMapDatasetV2", f, [calls])

    def map_with_legacy_function(self, map_func: Callable[..., Any], num_parallel_calls: Any = None) -> Dataset:
        """`map`."""
        return self.map(map_func, num_parallel_calls)

    def _mapped(self, op: str, f: Traced, inputs: Sequence[Any], structure: Any = None, **attrs: Any) -> Dataset:
        return self._of(
            op, [f.captures, *inputs], f.structure if structure is None else structure, {"f": f.graph, **attrs}
        )

    def flat_map(self, map_func: Callable[..., Any]) -> Dataset:
        """Returns the elements of the datasets that a function makes, one dataset after the other."""
        f = traced(map_func, [self.structure], "flat_map", "datasets")
        return self._mapped("FlatMapDataset", f, [], inner_structure(f, "flat_map"))

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: Any = AUTOTUNE,
        block_length: Any = 1,
        num_parallel_calls: Any = None,
    ) -> Dataset:
        """Returns the elements of the datasets that a function makes: block_length of each of
        cycle_length, in rotation.
        """
        f = traced(map_func, [self.structure], "interleave", "datasets")
        inner = inner_structure(f, "interleave")
        if num_parallel_calls is None:
            return self._mapped("InterleaveDataset", f, [cycle_length, block_length], inner)
        inputs = [cycle_length, block_length, num_parallel_calls]
        return self._mapped("ParallelInterleaveDatasetV2", f, inputs, inner)

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """Returns the elements for which a function gives true."""
        return self._filtered("FilterDataset", predicate, "filter")

    def filter_with_legacy_function(self, predicate: Callable[..., Any]) -> Dataset:
        """`filter`."""
        return self.filter(predicate)

    def _filtered(self, op: str, predicate: Callable[..., Any], transformation: str) -> Dataset:
        f = traced(predicate, [self.structure], transformation, "a bool")
        found = f.structure
        if not isinstance(found, TensorLeaf) or found.dtype.name != "bool" or found.shape not in ((), None):
            given = f"{found.dtype.name} {format_shape(found.shape)}" if isinstance(found, TensorLeaf) else found
            raise InvalidTypeError(
                f"Dataset.{transformation}: predicate returns {given}; a scalar of dtype bool is required"
            )
        return self._of(op, [f.captures], attrs={"predicate": f.graph})

    def reduce(self, initial_state: Any, reduce_func: Callable[..., Any]) -> Any:
        """Returns the last state, after a function has made the next one of a state and each element."""
        state, initial = converted(initial_state)
        f = traced(reduce_func, [state, self.structure], "reduce")
        check_same("Dataset.reduce: what reduce_func returns", f.structure, state)
        made = apply_op("ReduceDataset", [self.variant, initial, f.captures], {"f": f.graph, **attrs_of(f.structure)})
        return values_of(state, made if isinstance(made, list) else [made])

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """Returns what a function makes of the dataset."""
        made = transformation_func(self)
        if not isinstance(made, Dataset):
            raise InvalidTypeError(f"Dataset.apply: the function returns {made!r}; a Dataset is required")
        return made

    # Iterators

    def make_one_shot_iterator(self) -> iterators.Iterator:
        """Returns an iterator that needs no initialization, and goes through the dataset once.

        The dataset must not depend on placeholders, variables or other state.
        """
        return iterators.one_shot(self)

    def make_initializable_iterator(self, shared_name: str | None = None) -> iterators.Iterator:
        """Returns an iterator whose `initializer` puts it at the start of the dataset."""
        return iterators.initializable(self, shared_name)


def traced(function: Callable[..., Any], given: Sequence[Any], transformation: str, returns: str = "tensors") -> Traced:
    """Returns a function of elements of these structures, traced. returns: what it must return, for errors."""
    return trace(function, given, dataset_of, transformation, returns)


def dataset_of(variant: Tensor, structure: Any) -> Dataset:
    """Returns the dataset that a tensor of dtype variant is."""
    return Dataset(variant, structure)


def data_seeds(seed: Any) -> list[Any]:
    """Returns the seeds of a new op on datasets, as TensorFlow makes them of the graph's and its own."""
    if isinstance(seed, Tensor):
        return [convert_to_tensor(get_default_graph().seed or 0, int64), apply_op("Cast", [seed], {"DstT": int64})]
    first, second = get_seed(seed)
    return [convert_to_tensor(first or 0, int64, "seed"), convert_to_tensor(second or 0, int64, "seed2")]


def converted(values: Any, rows: bool = False) -> tuple[Any, list[Tensor]]:
    """Returns the structure of what becomes tensors, and these; rows: whose rows are to be the elements."""
    tensors: list[Tensor] = []

    def leaf(value: Any) -> Any:
        if isinstance(value, Dataset):
            tensors.append(value.variant)
            return DatasetLeaf(value.structure, dataset_of)
        found, tensor = leaf_of(value, rows)
        tensors.append(tensor)
        return found

    structure = map_leaves(leaf, values)
    if not tensors:
        raise InvalidArgumentError("a dataset of no tensors is asked for; its elements must have one at least")
    return structure, tensors


def _source(op: str, inputs: Sequence[Any], structure: Any, attrs: Mapping[str, Any]) -> Dataset:
    return Dataset(apply_op(op, inputs, attrs), structure)


def known_size(batch_size: Any, drop_remainder: Any) -> int | None:
    """Returns the size of all batches, where it is known."""
    if isinstance(batch_size, Tensor):
        batch_size = get_static_value(batch_size)
    if isinstance(drop_remainder, Tensor):
        drop_remainder = get_static_value(drop_remainder)
    return int(batch_size) if drop_remainder and batch_size is not None else None


def inner_structure(f: Traced, transformation: str) -> Any:
    """Returns the structure of the elements of the datasets that a function makes."""
    if not isinstance(f.structure, DatasetLeaf):
        raise InvalidTypeError(f"Dataset.{transformation}: the function returns {f.structure}; a Dataset is required")
    return f.structure.structure
