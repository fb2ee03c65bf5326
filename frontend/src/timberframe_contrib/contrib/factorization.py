"""`tf.contrib.factorization`: k-means, as a graph and as an estimator."""

import sys as _sys

from timberframe.boundary import guard as _guard
from timberframe_contrib.estimator.canned.clustering import COSINE_DISTANCE as COSINE_DISTANCE
from timberframe_contrib.estimator.canned.clustering import KMEANS_PLUS_PLUS_INIT as KMEANS_PLUS_PLUS_INIT
from timberframe_contrib.estimator.canned.clustering import RANDOM_INIT as RANDOM_INIT
from timberframe_contrib.estimator.canned.clustering import SQUARED_EUCLIDEAN_DISTANCE as SQUARED_EUCLIDEAN_DISTANCE
from timberframe_contrib.estimator.canned.clustering import KMeans as KMeans
from timberframe_contrib.estimator.canned.kmeans import KMeansClustering as KMeansClustering

_guard([_sys.modules[__name__]])  # here, since `import timberframe` does not load this module
