"""`tf.contrib.opt`: further optimizers, and such as are outside the graph."""

import sys

from timberframe.boundary import guard
from timberframe_contrib.contrib.opt.adam import LazyAdamOptimizer as LazyAdamOptimizer
from timberframe_contrib.contrib.opt.adam import NadamOptimizer as NadamOptimizer
from timberframe_contrib.contrib.opt.external import ExternalOptimizerInterface as ExternalOptimizerInterface
from timberframe_contrib.contrib.opt.external import ScipyOptimizerInterface as ScipyOptimizerInterface
from timberframe_contrib.contrib.opt.moving_average import MovingAverageOptimizer as MovingAverageOptimizer
from timberframe_contrib.contrib.opt.weight_decay import AdamWOptimizer as AdamWOptimizer
from timberframe_contrib.contrib.opt.weight_decay import DecoupledWeightDecayExtension as DecoupledWeightDecayExtension
from timberframe_contrib.contrib.opt.weight_decay import MomentumWOptimizer as MomentumWOptimizer
from timberframe_contrib.contrib.opt.weight_decay import (
    extend_with_decoupled_weight_decay as extend_with_decoupled_weight_decay,
)

__all__ = [
    "AdamWOptimizer", "DecoupledWeightDecayExtension", "ExternalOptimizerInterface", "LazyAdamOptimizer",
    "MomentumWOptimizer", "MovingAverageOptimizer", "NadamOptimizer", "ScipyOptimizerInterface",
    "extend_with_decoupled_weight_decay",
]  # fmt: skip

guard([sys.modules[__name__]])  # here, since `import timberframe` does not load this package
