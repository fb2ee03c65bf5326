"""`tf.nn.rnn_cell`: cells of recurrent networks."""

from timberframe.recurrent.base import RNNCell as RNNCell
from timberframe.recurrent.cells import BasicLSTMCell as BasicLSTMCell
from timberframe.recurrent.cells import BasicRNNCell as BasicRNNCell
from timberframe.recurrent.cells import GRUCell as GRUCell
from timberframe.recurrent.cells import LSTMCell as LSTMCell
from timberframe.recurrent.cells import LSTMStateTuple as LSTMStateTuple
from timberframe.recurrent.wrappers import DeviceWrapper as DeviceWrapper
from timberframe.recurrent.wrappers import DropoutWrapper as DropoutWrapper
from timberframe.recurrent.wrappers import MultiRNNCell as MultiRNNCell
from timberframe.recurrent.wrappers import ResidualWrapper as ResidualWrapper
