"""`tf.distributions`: probability distributions, one for each element of a batch."""

import sys as _sys

from timberframe.boundary import guard as _guard
from timberframe.distributions import divergences as _divergences  # noqa: F401 - registers them
from timberframe.distributions.counts import DirichletMultinomial as DirichletMultinomial
from timberframe.distributions.counts import Multinomial as Multinomial
from timberframe.distributions.discrete import Bernoulli as Bernoulli
from timberframe.distributions.discrete import Categorical as Categorical
from timberframe.distributions.distribution import FULLY_REPARAMETERIZED as FULLY_REPARAMETERIZED
from timberframe.distributions.distribution import NOT_REPARAMETERIZED as NOT_REPARAMETERIZED
from timberframe.distributions.distribution import Distribution as Distribution
from timberframe.distributions.distribution import ReparameterizationType as ReparameterizationType
from timberframe.distributions.divergence import RegisterKL as RegisterKL
from timberframe.distributions.divergence import kl_divergence as kl_divergence
from timberframe.distributions.location_scale import Laplace as Laplace
from timberframe.distributions.location_scale import Normal as Normal
from timberframe.distributions.location_scale import StudentT as StudentT
from timberframe.distributions.location_scale import Uniform as Uniform
from timberframe.distributions.positive import Beta as Beta
from timberframe.distributions.positive import Dirichlet as Dirichlet
from timberframe.distributions.positive import Exponential as Exponential
from timberframe.distributions.positive import Gamma as Gamma

_guard([_sys.modules[__name__]])
