"""`tf.train`: optimizers, rates that change, the global step, averages of variables, checkpoints, queue runners."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from timberframe.lazy import lazy_names as _lazy_names
from timberframe.train.adaptive import AdadeltaOptimizer as AdadeltaOptimizer
from timberframe.train.adaptive import AdagradOptimizer as AdagradOptimizer
from timberframe.train.adaptive import AdamOptimizer as AdamOptimizer
from timberframe.train.adaptive import RMSPropOptimizer as RMSPropOptimizer
from timberframe.train.checkpoint_state import checkpoint_exists as checkpoint_exists
from timberframe.train.checkpoint_state import generate_checkpoint_state_proto as generate_checkpoint_state_proto
from timberframe.train.checkpoint_state import get_checkpoint_mtimes as get_checkpoint_mtimes
from timberframe.train.checkpoint_state import get_checkpoint_state as get_checkpoint_state
from timberframe.train.checkpoint_state import latest_checkpoint as latest_checkpoint
from timberframe.train.checkpoint_state import remove_checkpoint as remove_checkpoint
from timberframe.train.checkpoint_state import update_checkpoint_state as update_checkpoint_state
from timberframe.train.checkpoint_utils import NewCheckpointReader as NewCheckpointReader
from timberframe.train.checkpoint_utils import init_from_checkpoint as init_from_checkpoint
from timberframe.train.checkpoint_utils import list_variables as list_variables
from timberframe.train.checkpoint_utils import load_checkpoint as load_checkpoint
from timberframe.train.checkpoint_utils import load_variable as load_variable
from timberframe.train.coordinator import Coordinator as Coordinator
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
from timberframe.train.meta_graph import import_meta_graph as import_meta_graph
from timberframe.train.meta_graph_export import export_meta_graph as export_meta_graph
from timberframe.train.moving_averages import ExponentialMovingAverage as ExponentialMovingAverage
from timberframe.train.optimizer import Optimizer as Optimizer
from timberframe.train.queue_runner import QueueRunner as QueueRunner
from timberframe.train.queue_runner import add_queue_runner as add_queue_runner
from timberframe.train.queue_runner import start_queue_runners as start_queue_runners
from timberframe.train.saver import Saver as Saver
from timberframe.train.steps import create_global_step as create_global_step
from timberframe.train.steps import get_global_step as get_global_step
from timberframe.train.steps import get_or_create_global_step as get_or_create_global_step
from timberframe.train.steps import global_step as global_step

if _TYPE_CHECKING:
    from timberframe.summary.writer import summary_iterator as summary_iterator
    from timberframe_core.graphdef.messages import BytesList as BytesList
    from timberframe_core.graphdef.messages import Event as Event
    from timberframe_core.graphdef.messages import Example as Example
    from timberframe_core.graphdef.messages import Feature as Feature
    from timberframe_core.graphdef.messages import FeatureList as FeatureList
    from timberframe_core.graphdef.messages import FeatureLists as FeatureLists
    from timberframe_core.graphdef.messages import Features as Features
    from timberframe_core.graphdef.messages import FloatList as FloatList
    from timberframe_core.graphdef.messages import Int64List as Int64List
    from timberframe_core.graphdef.messages import SaverDef as SaverDef
    from timberframe_core.graphdef.messages import SequenceExample as SequenceExample
else:
    # What is made or imported when it is first used.
    _MESSAGES = (
        "BytesList", "Event", "Example", "Feature", "FeatureList", "FeatureLists", "Features", "FloatList", "Int64List",
        "SaverDef", "SequenceExample",
    )  # fmt: skip
    _LATER = {
        **{name: f"timberframe_core.graphdef.messages:{name}" for name in _MESSAGES},
        "summary_iterator": "timberframe.summary.writer:summary_iterator",
    }
    __getattr__ = _lazy_names(__name__, _LATER)

    def __dir__() -> list[str]:
        return sorted({*globals(), *_LATER})
