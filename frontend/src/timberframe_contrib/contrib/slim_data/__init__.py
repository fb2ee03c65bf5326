"""The readers of data sets of `tf.contrib.slim`."""
