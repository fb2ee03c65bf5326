"""`tf.train`: optimizers, rates that change, the global step, averages of variables, checkpoints, queue runners."""

import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING

from timberframe.boundary import guard as _guard
from timberframe.lazy import lazy_names as _lazy_names
from timberframe.train.adaptive import AdadeltaOptimizer as AdadeltaOptimizer
from timberframe.train.adaptive import AdagradOptimizer as AdagradOptimizer
from timberframe.train.adaptive import AdamOptimizer as AdamOptimizer
from timberframe.train.adaptive import RMSPropOptimizer as RMSPropOptimizer
from timberframe.train.checkpoint_state import checkpoint_exists as checkpoint_exists
from timberframe.train.checkpoint_state import checkpoints_iterator as checkpoints_iterator
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
from timberframe.train.decays import linear_cosine_decay as linear_cosine_decay
from timberframe.train.decays import natural_exp_decay as natural_exp_decay
from timberframe.train.decays import noisy_linear_cosine_decay as noisy_linear_cosine_decay
from timberframe.train.decays import piecewise_constant as piecewise_constant
from timberframe.train.decays import piecewise_constant_decay as piecewise_constant_decay
from timberframe.train.decays import polynomial_decay as polynomial_decay
from timberframe.train.descent import GradientDescentOptimizer as GradientDescentOptimizer
from timberframe.train.descent import MomentumOptimizer as MomentumOptimizer
from timberframe.train.dual_averaging import AdagradDAOptimizer as AdagradDAOptimizer
from timberframe.train.ftrl import FtrlOptimizer as FtrlOptimizer
from timberframe.train.meta_graph import import_meta_graph as import_meta_graph
from timberframe.train.meta_graph_export import export_meta_graph as export_meta_graph
from timberframe.train.moving_averages import ExponentialMovingAverage as ExponentialMovingAverage
from timberframe.train.optimizer import Optimizer as Optimizer
from timberframe.train.queue_runner import QueueRunner as QueueRunner
from timberframe.train.queue_runner import add_queue_runner as add_queue_runner
from timberframe.train.queue_runner import start_queue_runners as start_queue_runners
from timberframe.train.saver import Saver as Saver
from timberframe.train.steps import assert_global_step as assert_global_step
from timberframe.train.steps import create_global_step as create_global_step
from timberframe.train.steps import get_global_step as get_global_step
from timberframe.train.steps import get_or_create_global_step as get_or_create_global_step
from timberframe.train.steps import global_step as global_step

if _TYPE_CHECKING:
    from timberframe.summary.writer import summary_iterator as summary_iterator
    from timberframe.train.basic_hooks import FeedFnHook as FeedFnHook
    from timberframe.train.basic_hooks import FinalOpsHook as FinalOpsHook
    from timberframe.train.basic_hooks import GlobalStepWaiterHook as GlobalStepWaiterHook
    from timberframe.train.basic_hooks import LoggingTensorHook as LoggingTensorHook
    from timberframe.train.basic_hooks import NanLossDuringTrainingError as NanLossDuringTrainingError
    from timberframe.train.basic_hooks import NanTensorHook as NanTensorHook
    from timberframe.train.basic_hooks import StopAtStepHook as StopAtStepHook
    from timberframe.train.basic_loops import basic_train_loop as basic_train_loop
    from timberframe.train.batching import batch as batch
    from timberframe.train.batching import batch_join as batch_join
    from timberframe.train.batching import maybe_batch as maybe_batch
    from timberframe.train.batching import maybe_batch_join as maybe_batch_join
    from timberframe.train.batching import maybe_shuffle_batch as maybe_shuffle_batch
    from timberframe.train.batching import maybe_shuffle_batch_join as maybe_shuffle_batch_join
    from timberframe.train.batching import shuffle_batch as shuffle_batch
    from timberframe.train.batching import shuffle_batch_join as shuffle_batch_join
    from timberframe.train.checkpoint_hooks import CheckpointSaverHook as CheckpointSaverHook
    from timberframe.train.checkpoint_hooks import CheckpointSaverListener as CheckpointSaverListener
    from timberframe.train.checkpoint_manager import CheckpointManager as CheckpointManager
    from timberframe.train.device_setter import replica_device_setter as replica_device_setter
    from timberframe.train.graph_files import write_graph as write_graph
    from timberframe.train.input_producers import input_producer as input_producer
    from timberframe.train.input_producers import limit_epochs as limit_epochs
    from timberframe.train.input_producers import match_filenames_once as match_filenames_once
    from timberframe.train.input_producers import range_input_producer as range_input_producer
    from timberframe.train.input_producers import slice_input_producer as slice_input_producer
    from timberframe.train.input_producers import string_input_producer as string_input_producer
    from timberframe.train.looper_thread import LooperThread as LooperThread
    from timberframe.train.monitored_session import MonitoredSession as MonitoredSession
    from timberframe.train.monitored_session import MonitoredTrainingSession as MonitoredTrainingSession
    from timberframe.train.monitored_session import SingularMonitoredSession as SingularMonitoredSession
    from timberframe.train.object_checkpoints import Checkpoint as Checkpoint
    from timberframe.train.progress_hook import ProgressHook as ProgressHook
    from timberframe.train.proximal import ProximalAdagradOptimizer as ProximalAdagradOptimizer
    from timberframe.train.proximal import ProximalGradientDescentOptimizer as ProximalGradientDescentOptimizer
    from timberframe.train.scaffold import Scaffold as Scaffold
    from timberframe.train.server import ClusterSpec as ClusterSpec
    from timberframe.train.server import Server as Server
    from timberframe.train.session_creators import ChiefSessionCreator as ChiefSessionCreator
    from timberframe.train.session_creators import SessionCreator as SessionCreator
    from timberframe.train.session_creators import WorkerSessionCreator as WorkerSessionCreator
    from timberframe.train.session_manager import SessionManager as SessionManager
    from timberframe.train.session_run_hook import SessionRunArgs as SessionRunArgs
    from timberframe.train.session_run_hook import SessionRunContext as SessionRunContext
    from timberframe.train.session_run_hook import SessionRunHook as SessionRunHook
    from timberframe.train.session_run_hook import SessionRunValues as SessionRunValues
    from timberframe.train.summary_hooks import ProfilerHook as ProfilerHook
    from timberframe.train.summary_hooks import StepCounterHook as StepCounterHook
    from timberframe.train.summary_hooks import SummarySaverHook as SummarySaverHook
    from timberframe.train.supervisor import Supervisor as Supervisor
    from timberframe.train.sync_replicas import SyncReplicasOptimizer as SyncReplicasOptimizer
    from timberframe.train.timers import SecondOrStepTimer as SecondOrStepTimer
    from timberframe.train.warm_starting import VocabInfo as VocabInfo
    from timberframe.train.warm_starting import warm_start as warm_start
    from timberframe_core.graphdef.messages import BytesList as BytesList
    from timberframe_core.graphdef.messages import ClusterDef as ClusterDef
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
    from timberframe_core.graphdef.messages import ServerDef as ServerDef
else:
    # What is made or imported when it is first used.
    _MESSAGES = (
        "BytesList", "ClusterDef", "Event", "Example", "Feature", "FeatureList", "FeatureLists", "Features",
        "FloatList", "Int64List", "SaverDef", "SequenceExample", "ServerDef",
    )  # fmt: skip
    _BATCHING = (
        "batch", "batch_join", "maybe_batch", "maybe_batch_join", "maybe_shuffle_batch", "maybe_shuffle_batch_join",
        "shuffle_batch", "shuffle_batch_join",
    )  # fmt: skip
    _PRODUCERS = (
        "input_producer", "limit_epochs", "match_filenames_once", "range_input_producer", "slice_input_producer",
        "string_input_producer",
    )  # fmt: skip
    _FAMILIES = {
        "basic_hooks": "FeedFnHook FinalOpsHook GlobalStepWaiterHook LoggingTensorHook NanLossDuringTrainingError "
        "NanTensorHook StopAtStepHook",
        "basic_loops": "basic_train_loop",
        "checkpoint_hooks": "CheckpointSaverHook CheckpointSaverListener",
        "checkpoint_manager": "CheckpointManager",
        "looper_thread": "LooperThread",
        "monitored_session": "MonitoredSession MonitoredTrainingSession SingularMonitoredSession",
        "progress_hook": "ProgressHook",
        "proximal": "ProximalAdagradOptimizer ProximalGradientDescentOptimizer",
        "object_checkpoints": "Checkpoint",
        "scaffold": "Scaffold",
        "server": "ClusterSpec Server",
        "session_creators": "ChiefSessionCreator SessionCreator WorkerSessionCreator",
        "session_manager": "SessionManager",
        "session_run_hook": "SessionRunArgs SessionRunContext SessionRunHook SessionRunValues",
        "summary_hooks": "ProfilerHook StepCounterHook SummarySaverHook",
        "supervisor": "Supervisor",
        "sync_replicas": "SyncReplicasOptimizer",
        "timers": "SecondOrStepTimer",
        "warm_starting": "VocabInfo warm_start",
    }
    _LATER = {
        "replica_device_setter": "timberframe.train.device_setter:replica_device_setter",
        "write_graph": "timberframe.train.graph_files:write_graph",
        **{name: f"timberframe.train.batching:{name}" for name in _BATCHING},
        **{name: f"timberframe.train.input_producers:{name}" for name in _PRODUCERS},
        **{name: f"timberframe.train.{file}:{name}" for file, names in _FAMILIES.items() for name in names.split()},
        **{name: f"timberframe_core.graphdef.messages:{name}" for name in _MESSAGES},
        "summary_iterator": "timberframe.summary.writer:summary_iterator",
    }
    __getattr__ = _lazy_names(__name__, _LATER)

    def __dir__() -> list[str]:
        return sorted({*globals(), *_LATER})


_guard([_sys.modules[__name__]])  # here, since `import timberframe` does not load this package
