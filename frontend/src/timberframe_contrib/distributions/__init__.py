"""`tf.distributions`: probability distributions, one for each element of a batch."""

import sys as _sys

from timberframe.boundary import guard as _guard
from timberframe_contrib.distributions import divergences as _divergences  # noqa: F401 - registers them
from timberframe_contrib.distributions.counts import DirichletMultinomial as DirichletMultinomial
from timberframe_contrib.distributions.counts import Multinomial as Multinomial
from timberframe_contrib.distributions.discrete import Bernoulli as Bernoulli
from timberframe_contrib.distributions.discrete import Categorical as Categorical
from timberframe_contrib.distributions.distribution import FULLY_REPARAMETERIZED as FULLY_REPARAMETERIZED
from timberframe_contrib.distributions.distribution import NOT_REPARAMETERIZED as NOT_REPARAMETERIZED
from timberframe_contrib.distributions.distribution import Distribution as Distribution
from timberframe_contrib.distributions.distribution import ReparameterizationType as ReparameterizationType
from timberframe_contrib.distributions.divergence import RegisterKL as RegisterKL
from timberframe_contrib.distributions.divergence import kl_divergence as kl_divergence
from timberframe_contrib.distributions.location_scale import Laplace as Laplace
from timberframe_contrib.distributions.location_scale import Normal as Normal
from timberframe_contrib.distributions.location_scale import StudentT as StudentT
from timberframe_contrib.distributions.location_scale import Uniform as Uniform
from timberframe_contrib.distributions.positive import Beta as Beta
from timberframe_contrib.distributions.positive import Dirichlet as Dirichlet
from timberframe_contrib.distributions.positive import Exponential as Exponential
from timberframe_contrib.distributions.positive import Gamma as Gamma

_guard([_sys.modules[__name__]])
