"""`tf.train`: optimizers, learning rates that change, the global step, averages of variables."""

from timberframe.train.adaptive import AdadeltaOptimizer as AdadeltaOptimizer
from timberframe.train.adaptive import AdagradOptimizer as AdagradOptimizer
from timberframe.train.adaptive import AdamOptimizer as AdamOptimizer
from timberframe.train.adaptive import RMSPropOptimizer as RMSPropOptimizer
from timberframe.train.decays import cosine_decay as cosine_decay
from timberframe.train.decays import cosine_decay_restarts as cosine_decay_restarts
from timberframe.train.decays import exponential_decay as exponential_decay
from timberframe.train.decays import inverse_time_decay as inverse_time_decay
from timberframe.train.decays import natural_exp_decay as natural_exp_decay
from timberframe.train.decays import piecewise_constant as piecewise_constant
from timberframe.train.decays import piecewise_constant_decay as piecewise_constant_decay
from timberframe.train.decays import polynomial_decay as polynomial_decay
from timberframe.train.descent import GradientDescentOptimizer as GradientDescentOptimizer
from timberframe.train.descent import MomentumOptimizer as MomentumOptimizer
from timberframe.train.ftrl import FtrlOptimizer as FtrlOptimizer
from timberframe.train.moving_averages import ExponentialMovingAverage as ExponentialMovingAverage
from timberframe.train.optimizer import Optimizer as Optimizer
from timberframe.train.steps import create_global_step as create_global_step
from timberframe.train.steps import get_global_step as get_global_step
from timberframe.train.steps import get_or_create_global_step as get_or_create_global_step
from timberframe.train.steps import global_step as global_step
