"""`tf.contrib.rnn`: the cells and networks of `tf.nn`, and a few more."""

import sys as _sys

from timberframe.boundary import guard as _guard
from timberframe.recurrent.base import RNNCell as LayerRNNCell  # noqa: F401 - a name of this module
from timberframe.recurrent.rnn_cell import *  # noqa: F403 - the same names
from timberframe.recurrent.static import static_bidirectional_rnn as static_bidirectional_rnn
from timberframe.recurrent.static import static_rnn as static_rnn
from timberframe.recurrent.static import static_state_saving_rnn as static_state_saving_rnn
from timberframe.recurrent.steps import best_effort_input_batch_size as best_effort_input_batch_size
from timberframe.recurrent.steps import transpose_batch_time as transpose_batch_time
from timberframe_contrib.contrib.cells import IntersectionRNNCell as IntersectionRNNCell
from timberframe_contrib.contrib.cells import NASCell as NASCell
from timberframe_contrib.contrib.cells import PhasedLSTMCell as PhasedLSTMCell
from timberframe_contrib.contrib.cells import UGRNNCell as UGRNNCell
from timberframe_contrib.contrib.convolutional_cells import Conv1DLSTMCell as Conv1DLSTMCell
from timberframe_contrib.contrib.convolutional_cells import Conv2DLSTMCell as Conv2DLSTMCell
from timberframe_contrib.contrib.convolutional_cells import Conv3DLSTMCell as Conv3DLSTMCell
from timberframe_contrib.contrib.convolutional_cells import ConvLSTMCell as ConvLSTMCell
from timberframe_contrib.contrib.fused_cells import FusedRNNCell as FusedRNNCell
from timberframe_contrib.contrib.fused_cells import FusedRNNCellAdaptor as FusedRNNCellAdaptor
from timberframe_contrib.contrib.fused_cells import GRUBlockCell as GRUBlockCell
from timberframe_contrib.contrib.fused_cells import GRUBlockCellV2 as GRUBlockCellV2
from timberframe_contrib.contrib.fused_cells import LSTMBlockCell as LSTMBlockCell
from timberframe_contrib.contrib.fused_cells import LSTMBlockFusedCell as LSTMBlockFusedCell
from timberframe_contrib.contrib.fused_cells import LSTMBlockWrapper as LSTMBlockWrapper
from timberframe_contrib.contrib.fused_cells import TimeReversedFusedRNN as TimeReversedFusedRNN
from timberframe_contrib.contrib.grid_cells import BidirectionalGridLSTMCell as BidirectionalGridLSTMCell
from timberframe_contrib.contrib.grid_cells import GridLSTMCell as GridLSTMCell
from timberframe_contrib.contrib.grid_cells import TimeFreqLSTMCell as TimeFreqLSTMCell
from timberframe_contrib.contrib.independent_cells import IndRNNCell as IndRNNCell
from timberframe_contrib.contrib.independent_cells import IndyGRUCell as IndyGRUCell
from timberframe_contrib.contrib.independent_cells import IndyLSTMCell as IndyLSTMCell
from timberframe_contrib.contrib.independent_cells import SRUCell as SRUCell
from timberframe_contrib.contrib.lstm_cells import CoupledInputForgetGateLSTMCell as CoupledInputForgetGateLSTMCell
from timberframe_contrib.contrib.lstm_cells import GLSTMCell as GLSTMCell
from timberframe_contrib.contrib.lstm_cells import LayerNormBasicLSTMCell as LayerNormBasicLSTMCell
from timberframe_contrib.contrib.lstm_cells import LayerNormLSTMCell as LayerNormLSTMCell
from timberframe_contrib.contrib.lstm_cells import WeightNormLSTMCell as WeightNormLSTMCell
from timberframe_contrib.contrib.stacked_networks import (
    stack_bidirectional_dynamic_rnn as stack_bidirectional_dynamic_rnn,
)
from timberframe_contrib.contrib.stacked_networks import stack_bidirectional_rnn as stack_bidirectional_rnn
from timberframe_contrib.contrib.wrapped_cells import AttentionCellWrapper as AttentionCellWrapper
from timberframe_contrib.contrib.wrapped_cells import CompiledWrapper as CompiledWrapper
from timberframe_contrib.contrib.wrapped_cells import EmbeddingWrapper as EmbeddingWrapper
from timberframe_contrib.contrib.wrapped_cells import HighwayWrapper as HighwayWrapper
from timberframe_contrib.contrib.wrapped_cells import InputProjectionWrapper as InputProjectionWrapper
from timberframe_contrib.contrib.wrapped_cells import OutputProjectionWrapper as OutputProjectionWrapper

_guard([_sys.modules[__name__]])  # here, since `import timberframe` does not load this module
