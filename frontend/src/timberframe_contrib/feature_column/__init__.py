"""`tf.feature_column`: which features a model has, and how they become the input of a network or a linear model."""

import sys

from timberframe.boundary import guard
from timberframe_contrib.feature_column.columns import bucketized_column as bucketized_column
from timberframe_contrib.feature_column.columns import (
    categorical_column_with_identity as categorical_column_with_identity,
)
from timberframe_contrib.feature_column.columns import numeric_column as numeric_column
from timberframe_contrib.feature_column.crosses import crossed_column as crossed_column
from timberframe_contrib.feature_column.crosses import weighted_categorical_column as weighted_categorical_column
from timberframe_contrib.feature_column.embeddings import embedding_column as embedding_column
from timberframe_contrib.feature_column.embeddings import indicator_column as indicator_column
from timberframe_contrib.feature_column.embeddings import shared_embedding_columns as shared_embedding_columns
from timberframe_contrib.feature_column.inputs import input_layer as input_layer
from timberframe_contrib.feature_column.inputs import linear_model as linear_model
from timberframe_contrib.feature_column.inputs import make_parse_example_spec as make_parse_example_spec
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
from timberframe_contrib.feature_column.words import (
    categorical_column_with_hash_bucket as categorical_column_with_hash_bucket,
)
from timberframe_contrib.feature_column.words import (
    categorical_column_with_vocabulary_file as categorical_column_with_vocabulary_file,
)
from timberframe_contrib.feature_column.words import (
    categorical_column_with_vocabulary_list as categorical_column_with_vocabulary_list,
)

guard([sys.modules[__name__]])  # here, since `import timberframe` does not load this package
