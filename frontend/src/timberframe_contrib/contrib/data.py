"""`tf.contrib.data`: what is now in `tf.data.experimental`, under its older names."""

import sys as _sys
from collections.abc import Callable as _Callable
from typing import Any as _Any

from timberframe.boundary import guard as _guard
from timberframe.data.csv import CsvDataset as CsvDataset
from timberframe.data.csv import make_csv_dataset as make_csv_dataset
from timberframe.data.dataset import AUTOTUNE as AUTOTUNE
from timberframe.data.dataset import Dataset as Dataset
from timberframe.data.experimental import Counter as Counter
from timberframe.data.experimental import RandomDataset as RandomDataset
from timberframe.data.experimental import bucket_by_sequence_length as bucket_by_sequence_length
from timberframe.data.experimental import choose_from_datasets as choose_from_datasets
from timberframe.data.experimental import enumerate_dataset as enumerate_dataset
from timberframe.data.experimental import get_single_element as get_single_element
from timberframe.data.experimental import group_by_window as group_by_window
from timberframe.data.experimental import ignore_errors as ignore_errors
from timberframe.data.experimental import make_batched_features_dataset as make_batched_features_dataset
from timberframe.data.experimental import map_and_batch as map_and_batch
from timberframe.data.experimental import parallel_interleave as parallel_interleave
from timberframe.data.experimental import prefetch_to_device as prefetch_to_device
from timberframe.data.experimental import sample_from_datasets as sample_from_datasets
from timberframe.data.experimental import scan as scan
from timberframe.data.experimental import shuffle_and_repeat as shuffle_and_repeat
from timberframe.data.experimental import unbatch as unbatch
from timberframe.data.iterator import Iterator as Iterator
from timberframe.data.readers import FixedLengthRecordDataset as FixedLengthRecordDataset
from timberframe.data.readers import TextLineDataset as TextLineDataset
from timberframe.data.readers import TFRecordDataset as TFRecordDataset


def batch_and_drop_remainder(batch_size: _Any) -> _Callable[[Dataset], Dataset]:
    """`batch` without a last one that has fewer elements."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(
    batch_size: _Any, padded_shapes: _Any, padding_values: _Any = None
) -> _Callable[[Dataset], Dataset]:
    """`padded_batch` without a last one that has fewer elements."""
    return lambda dataset: dataset.padded_batch(batch_size, padded_shapes, padding_values, drop_remainder=True)


_guard([_sys.modules[__name__]])
