"""`tf.contrib.rnn`: the cells and networks of `tf.nn`, and a few more."""

import sys as _sys

from timberframe.boundary import guard as _guard
from timberframe.contrib.cells import LayerNormBasicLSTMCell as LayerNormBasicLSTMCell
from timberframe.contrib.cells import NASCell as NASCell
from timberframe.contrib.cells import UGRNNCell as UGRNNCell
from timberframe.contrib.convolutional_cells import Conv1DLSTMCell as Conv1DLSTMCell
from timberframe.contrib.convolutional_cells import Conv2DLSTMCell as Conv2DLSTMCell
from timberframe.contrib.convolutional_cells import Conv3DLSTMCell as Conv3DLSTMCell
from timberframe.contrib.convolutional_cells import ConvLSTMCell as ConvLSTMCell
from timberframe.contrib.fused_cells import FusedRNNCellAdaptor as FusedRNNCellAdaptor
from timberframe.contrib.fused_cells import GRUBlockCell as GRUBlockCell
from timberframe.contrib.fused_cells import GRUBlockCellV2 as GRUBlockCellV2
from timberframe.contrib.fused_cells import LSTMBlockCell as LSTMBlockCell
from timberframe.contrib.fused_cells import LSTMBlockFusedCell as LSTMBlockFusedCell
from timberframe.contrib.fused_cells import TimeReversedFusedRNN as TimeReversedFusedRNN
from timberframe.contrib.stacked_networks import stack_bidirectional_dynamic_rnn as stack_bidirectional_dynamic_rnn
from timberframe.contrib.stacked_networks import stack_bidirectional_rnn as stack_bidirectional_rnn
from timberframe.contrib.wrapped_cells import AttentionCellWrapper as AttentionCellWrapper
from timberframe.contrib.wrapped_cells import EmbeddingWrapper as EmbeddingWrapper
from timberframe.contrib.wrapped_cells import InputProjectionWrapper as InputProjectionWrapper
from timberframe.contrib.wrapped_cells import OutputProjectionWrapper as OutputProjectionWrapper
from timberframe.recurrent.rnn_cell import *  # noqa: F403 - the same names
from timberframe.recurrent.static import static_bidirectional_rnn as static_bidirectional_rnn
from timberframe.recurrent.static import static_rnn as static_rnn

_guard([_sys.modules[__name__]])  # here, since `import timberframe` does not load this module
