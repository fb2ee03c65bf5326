"""Datasets of the features of tf.train.Examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from timberframe.api.examples import parse_example
from timberframe.data.dataset import AUTOTUNE, Dataset
from timberframe.data.readers import TFRecordDataset
from timberframe_core.dtypes import string
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError


def parse_example_dataset(
    features: Mapping[str, Any], num_parallel_calls: Any = 1, deterministic: bool | None = None
) -> Callable[[Dataset], Dataset]:
    """For `Dataset.apply`: batches of serialised Examples as dicts of what `tf.parse_example` makes of them.

    num_parallel_calls: batches that are parsed at the same time. deterministic changes nothing: the order stays.
    """
    if not features:
        raise InvalidArgumentError("parse_example_dataset: no features; at least one is required")
    return lambda dataset: dataset.map(lambda batch: parse_example(batch, features), num_parallel_calls)


def make_batched_features_dataset(
    file_pattern: Any,
    batch_size: Any,
    features: Mapping[str, Any],
    reader: Callable[..., Dataset] = TFRecordDataset,
    label_key: str | None = None,
    reader_args: Sequence[Any] | None = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    reader_num_threads: int | None = None,
    parser_num_threads: int | None = None,
    sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Dataset:
    """Batches of the features of Examples in files: dicts of tensors or, with label_key, pairs of a dict and that one.

    file_pattern: names of files, or patterns. features: as for `tf.parse_example`. reader: makes the dataset of
    Examples, or of keys and Examples, of a file's name and reader_args. num_epochs: how often the files are gone
    through, without end if None. reader_num_threads: files that are read in turn, 1 if None. drop_final_batch leaves
    out a last batch that is smaller.
    """
    if label_key is not None and label_key not in features:
        raise InvalidArgumentError(
            f"make_batched_features_dataset: label_key is {label_key!r}; it must be one of the features, "
            f"{', '.join(sorted(features))}"
        )
    names = Dataset.list_files(file_pattern, shuffle, shuffle_seed)
    found = names.interleave(lambda name: reader(name, *(reader_args or ())), max(1, reader_num_threads or 1))
    if found.output_types == (string, string):
        found = found.map(lambda _, example: example)
    if found.output_types is not string:
        raise InvalidTypeError(
            f"make_batched_features_dataset: reader gives elements of {found.output_types}; serialised Examples, which "
            "are strings, are required"
        )
    if shuffle:
        found = found.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        found = found.repeat(num_epochs)
    found = found.batch(batch_size, drop_final_batch or num_epochs is None)
    found = found.apply(parse_example_dataset(features, 2 if parser_num_threads is None else parser_num_threads))
    if label_key is not None:
        found = found.map(lambda made: ({k: v for k, v in made.items() if k != label_key}, made[label_key]))
    return found.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)
