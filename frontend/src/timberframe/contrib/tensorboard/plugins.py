"""`tf.contrib.tensorboard.plugins`: the modules of TensorBoard's plugins that write files."""

from timberframe.contrib.tensorboard import projector as projector
