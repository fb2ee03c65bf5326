"""`tf.contrib.tensorboard`: what TensorBoard's plugins read beside event files."""

from timberframe.contrib.tensorboard import plugins as plugins
