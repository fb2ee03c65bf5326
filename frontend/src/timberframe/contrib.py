"""`tf.contrib`: where TensorFlow 1 had what is elsewhere here: `tf.contrib.lookup` is `tf.lookup`."""

from timberframe import lookup as lookup
