"""`tf.contrib.rnn`: the cells and networks of `tf.nn`, and a few more."""

from timberframe.recurrent.rnn_cell import *  # noqa: F403 - the same names
from timberframe.recurrent.static import static_bidirectional_rnn as static_bidirectional_rnn
from timberframe.recurrent.static import static_rnn as static_rnn
