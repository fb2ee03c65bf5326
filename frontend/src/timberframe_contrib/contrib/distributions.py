"""`tf.contrib.distributions`: those of `tf.distributions`, and normal distributions of vectors."""

import sys as _sys

from timberframe.boundary import guard as _guard
from timberframe_contrib.contrib.normal_vectors import MultivariateNormalDiag as MultivariateNormalDiag
from timberframe_contrib.contrib.normal_vectors import (
    MultivariateNormalDiagWithSoftplusScale as MultivariateNormalDiagWithSoftplusScale,
)
from timberframe_contrib.contrib.normal_vectors import MultivariateNormalTriL as MultivariateNormalTriL
from timberframe_contrib.contrib.normal_vectors import NormalWithSoftplusScale as NormalWithSoftplusScale
from timberframe_contrib.distributions import *  # noqa: F403 - the same names

_guard([_sys.modules[__name__]])
