"""`tf.metrics`: what is counted over many batches. Each function gives a value and the update that adds a batch.

The state is in local variables: `tf.local_variables_initializer()` sets it to 0.
"""

import sys

from timberframe.boundary import guard
from timberframe.metrics.confusion import false_negatives as false_negatives
from timberframe.metrics.confusion import false_positives as false_positives
from timberframe.metrics.confusion import mean_iou as mean_iou
from timberframe.metrics.confusion import mean_per_class_accuracy as mean_per_class_accuracy
from timberframe.metrics.confusion import precision as precision
from timberframe.metrics.confusion import recall as recall
from timberframe.metrics.confusion import true_negatives as true_negatives
from timberframe.metrics.confusion import true_positives as true_positives
from timberframe.metrics.means import accuracy as accuracy
from timberframe.metrics.means import mean as mean
from timberframe.metrics.means import mean_absolute_error as mean_absolute_error
from timberframe.metrics.means import mean_cosine_distance as mean_cosine_distance
from timberframe.metrics.means import mean_relative_error as mean_relative_error
from timberframe.metrics.means import mean_squared_error as mean_squared_error
from timberframe.metrics.means import mean_tensor as mean_tensor
from timberframe.metrics.means import percentage_below as percentage_below
from timberframe.metrics.means import root_mean_squared_error as root_mean_squared_error
from timberframe.metrics.ranking import average_precision_at_k as average_precision_at_k
from timberframe.metrics.ranking import precision_at_k as precision_at_k
from timberframe.metrics.ranking import precision_at_top_k as precision_at_top_k
from timberframe.metrics.ranking import recall_at_k as recall_at_k
from timberframe.metrics.ranking import recall_at_top_k as recall_at_top_k
from timberframe.metrics.ranking import sparse_average_precision_at_k as sparse_average_precision_at_k
from timberframe.metrics.ranking import sparse_precision_at_k as sparse_precision_at_k
from timberframe.metrics.thresholds import auc as auc
from timberframe.metrics.thresholds import false_negatives_at_thresholds as false_negatives_at_thresholds
from timberframe.metrics.thresholds import false_positives_at_thresholds as false_positives_at_thresholds
from timberframe.metrics.thresholds import precision_at_thresholds as precision_at_thresholds
from timberframe.metrics.thresholds import recall_at_thresholds as recall_at_thresholds
from timberframe.metrics.thresholds import sensitivity_at_specificity as sensitivity_at_specificity
from timberframe.metrics.thresholds import specificity_at_sensitivity as specificity_at_sensitivity
from timberframe.metrics.thresholds import true_negatives_at_thresholds as true_negatives_at_thresholds
from timberframe.metrics.thresholds import true_positives_at_thresholds as true_positives_at_thresholds

guard([sys.modules[__name__]])  # here, since `import timberframe` does not load this package
