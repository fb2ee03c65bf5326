"""`tf.contrib.tensorboard.plugins`: the modules of TensorBoard's plugins that write files."""

from timberframe_contrib.contrib.tensorboard import projector as projector
