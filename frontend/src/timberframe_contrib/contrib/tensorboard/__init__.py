"""`tf.contrib.tensorboard`: what TensorBoard's plugins read beside event files."""

from timberframe_contrib.contrib.tensorboard import plugins as plugins
