"""`tf.data`: datasets, which are pipelines of elements, and iterators, which go through them in a session."""

import sys

from timberframe.boundary import guard
from timberframe.data import experimental as experimental
from timberframe.data.dataset import AUTOTUNE as AUTOTUNE
from timberframe.data.dataset import Dataset as Dataset
from timberframe.data.experimental import INFINITE_CARDINALITY as INFINITE_CARDINALITY
from timberframe.data.experimental import UNKNOWN_CARDINALITY as UNKNOWN_CARDINALITY
from timberframe.data.iterator import Iterator as Iterator
from timberframe.data.iterator import get_output_classes as get_output_classes
from timberframe.data.iterator import get_output_shapes as get_output_shapes
from timberframe.data.iterator import get_output_types as get_output_types
from timberframe.data.iterator import initializable as make_initializable_iterator
from timberframe.data.iterator import one_shot as make_one_shot_iterator
from timberframe.data.options import Options as Options
from timberframe.data.readers import FixedLengthRecordDataset as FixedLengthRecordDataset
from timberframe.data.readers import TextLineDataset as TextLineDataset
from timberframe.data.readers import TFRecordDataset as TFRecordDataset

__all__ = [
    "AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "Dataset", "FixedLengthRecordDataset", "Iterator",
    "Options", "TFRecordDataset", "TextLineDataset", "experimental", "get_output_classes", "get_output_shapes",
    "get_output_types", "make_initializable_iterator", "make_one_shot_iterator",
]  # fmt: skip

guard([sys.modules[__name__], experimental])  # here, since `import timberframe` does not load this package
