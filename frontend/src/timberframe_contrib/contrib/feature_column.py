"""`tf.contrib.feature_column`: columns of sequences, and the input layer of them."""

import sys as _sys

from timberframe.boundary import guard as _guard
from timberframe_contrib.feature_column.inputs import concatenate_context_input as concatenate_context_input
from timberframe_contrib.feature_column.inputs import sequence_input_layer as sequence_input_layer
from timberframe_contrib.feature_column.sequences import (
    sequence_categorical_column_with_hash_bucket as sequence_categorical_column_with_hash_bucket,
)
from timberframe_contrib.feature_column.sequences import (
    sequence_categorical_column_with_identity as sequence_categorical_column_with_identity,
)
from timberframe_contrib.feature_column.sequences import (
    sequence_categorical_column_with_vocabulary_file as sequence_categorical_column_with_vocabulary_file,
)
from timberframe_contrib.feature_column.sequences import (
    sequence_categorical_column_with_vocabulary_list as sequence_categorical_column_with_vocabulary_list,
)
from timberframe_contrib.feature_column.sequences import sequence_numeric_column as sequence_numeric_column

_guard([_sys.modules[__name__]])  # here, since `import timberframe` does not load this module
